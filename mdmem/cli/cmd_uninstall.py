"""mdmem uninstall: take out what `mdmem install` put in."""

from __future__ import annotations

from pathlib import Path

import click

from mdmem.cli.cmd_install import client_argument, dry_run_option, print_change, print_git, scope_options
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import emit, json_option, place, say


@click.group("uninstall")
@examples("mdmem uninstall claude-code", "mdmem uninstall git-hooks", "mdmem uninstall mcp cursor")
def command() -> None:
    """Take out what `mdmem install` put in; everything else stays as it is. Notes are never touched."""


@command.command("claude-code")
@scope_options
@dry_run_option
@json_option
@examples("mdmem uninstall claude-code", "mdmem uninstall claude-code --user --dry-run")
def uninstall_claude(scope: str | None, dry_run: bool, as_json: bool) -> None:
    """Take mdmem's hooks and its auto-memory setting out of Claude Code; without a scope, out of every one."""
    from mdmem.install.claude import SCOPES, settings_path, uninstall_hooks

    paths = dict.fromkeys(settings_path(name, Path.cwd()) for name in ([scope] if scope else SCOPES))
    results = [uninstall_hooks(path, dry_run=dry_run) for path in paths]
    changed = [done for done in results if done.changed]

    def human() -> None:
        for done in changed:
            say(done.diff.rstrip("\n") if dry_run else f"Hooks taken out: {place(done.file)}")
        if not changed:
            say("No hooks of mdmem found")

    emit({"files": [done.as_dict() for done in results], "dry_run": dry_run}, as_json, human)


@command.command("git-hooks")
@dry_run_option
@json_option
@click.pass_context
@examples("mdmem uninstall git-hooks", "mdmem uninstall git-hooks --dry-run")
def uninstall_git(ctx: click.Context, dry_run: bool, as_json: bool) -> None:
    """Take mdmem's git hooks out; a hook that was there before is put back as it was."""
    from mdmem.install.git_hooks import uninstall_git_hooks

    print_git(uninstall_git_hooks(open_store(ctx).git.path("hooks"), dry_run=dry_run), as_json)


@command.command("mcp")
@client_argument
@click.option("--project", is_flag=True, help="Out of the file beside the project's code.")
@dry_run_option
@json_option
@examples("mdmem uninstall mcp claude", "mdmem uninstall mcp vscode --project")
def uninstall_mcp_command(client: str, project: bool, dry_run: bool, as_json: bool) -> None:
    """Take mdmem's MCP server out of a program's configuration."""
    from mdmem.install.mcp import uninstall_mcp

    done = uninstall_mcp(client, "project" if project else "user", Path.cwd(), dry_run=dry_run)
    print_change(done, dry_run, as_json, f"MCP server taken out of {client}")


@command.command("agents-md")
@click.argument("path", type=click.Path(dir_okay=False), default="AGENTS.md")
@dry_run_option
@json_option
@examples("mdmem uninstall agents-md", "mdmem uninstall agents-md ../shop/AGENTS.md")
def uninstall_agents(path: str, dry_run: bool, as_json: bool) -> None:
    """Take mdmem's block out of AGENTS.md."""
    from mdmem.install.agents_md import uninstall_agents_md

    print_change(uninstall_agents_md(Path(path), dry_run=dry_run), dry_run, as_json, "Block taken out")
