"""mdmem install: put mdmem into the programs around it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, place, say
from mdmem.errors import UsageError

if TYPE_CHECKING:
    from mdmem.install.claude import Installed
    from mdmem.install.git_hooks import GitHooks

F = TypeVar("F", bound=Callable[..., Any])

dry_run_option = click.option("--dry-run", is_flag=True, help="Show the change, write nothing.")
client_argument = click.argument("client", type=click.Choice(["claude", "codex", "cursor", "vscode"]))


def scope_options(function: F) -> F:
    """Add --user, --project and --local; the command gets `scope`, None for none of them."""
    for name, text in (
        ("local", "This project on this machine: .claude/settings.local.json."),
        ("project", "This project, for everybody: .claude/settings.json."),
        ("user", "All your projects: ~/.claude/settings.json."),
    ):
        function = click.option(f"--{name}", "scope", flag_value=name, help=text)(function)
    return function


@click.group("install")
@examples("mdmem install claude-code", "mdmem install git-hooks", "mdmem install mcp cursor", "mdmem install agents-md")
def command() -> None:
    """Put mdmem into Claude Code, git, programs that speak MCP, or an AGENTS.md.

    Only mdmem's own entries are written; everything else in a file stays as it is. Doing it twice changes nothing.
    """


def print_change(done: Installed, dry_run: bool, as_json: bool, what: str) -> None:
    """Print what an installer did to one file."""

    def human() -> None:
        if dry_run:
            say(done.diff.rstrip("\n") if done.diff else f"{done.file}: nothing to change")
        elif done.changed:
            say(f"{what}: {place(done.file)}")
        else:
            say(f"Nothing to change: {place(done.file)}")

    emit({**done.as_dict(), "dry_run": dry_run}, as_json, human)
    for text in done.notices:
        note(f"note: {clean(text)}")


@command.command("claude-code")
@scope_options
@click.option("--auto-memory", is_flag=True, help="Let Claude Code keep its own memory of this project in the store.")
@dry_run_option
@json_option
@click.pass_context
@examples(
    "mdmem install claude-code", "mdmem install claude-code --project --dry-run", "mdmem install claude-code --auto-memory"
)
def install_claude(ctx: click.Context, scope: str | None, auto_memory: bool, dry_run: bool, as_json: bool) -> None:
    """Let Claude Code's events reach mdmem: context at the start, recall at each prompt, a record of each session.

    Without a scope the hooks go into your user settings. --auto-memory is a matter of one project, so it goes into that
    project's local settings; what Claude Code remembers there already is brought into the store first.
    """
    from mdmem.install.claude import install_hooks, settings_path

    cwd = Path.cwd()
    scope = scope or "user"
    done = install_hooks(settings_path(scope, cwd), dry_run=dry_run)
    if scope == "project":
        done.notices.append("this file is shared and now names this machine's Python; --local keeps it to yourself")
    if auto_memory:
        _auto_memory(ctx, cwd, dry_run, done)
    print_change(done, dry_run, as_json, "Hooks installed")


def _auto_memory(ctx: click.Context, cwd: Path, dry_run: bool, done: Installed) -> None:
    from mdmem.install.claude import set_memory, settings_path
    from mdmem.locate import project_name
    from mdmem.memory.automemory import adopt, store_folder

    store = open_store(ctx, need="write")
    project = project_name(cwd) or cwd.name
    if not project:
        raise UsageError("no project here for --auto-memory", hint="cd into the project")
    folder = store.root / store_folder(project)
    path = settings_path("local", cwd)
    set_memory(path, str(folder), dry_run=True)
    if not dry_run:
        adopted = adopt(store, cwd)
        done.notices += [f"{row['path']}: {row['reason']}" for row in adopted.failed]
    change = set_memory(path, str(folder), dry_run=dry_run)
    done.notices.append(f"Claude Code's memory of {project} is kept in {folder} ({path.name})")
    done.changed, done.written = done.changed or change.changed, done.written or change.written
    done.diff += change.diff


@command.command("git-hooks")
@dry_run_option
@json_option
@click.pass_context
@examples("mdmem install git-hooks", "mdmem -C ~/memory install git-hooks --dry-run")
def install_git(ctx: click.Context, dry_run: bool, as_json: bool) -> None:
    """Check for secrets before your own commits and pushes, and refresh the index after a merge or checkout.

    A hook that is there already is kept and runs first. mdmem's own commits do not need these hooks.
    """
    from mdmem.install.git_hooks import install_git_hooks
    from mdmem.repo.hook_files import hooks_folder

    print_git(install_git_hooks(hooks_folder(open_store(ctx).git), dry_run=dry_run), as_json)


def print_git(done: GitHooks, as_json: bool) -> None:
    """Print what an installer did to git hooks."""

    def human() -> None:
        for verb, names in (("Installed", done.written), ("Installed already", done.present), ("Taken out", done.removed)):
            if names:
                say(
                    f"{verb}: {', '.join(names)}"
                    + (" (nothing written)" if done.dry_run and verb != "Installed already" else "")
                )
        if done.chained:
            say(f"Runs first, as before: your own {', '.join(done.chained)}")

    emit(dict(done.__dict__), as_json, human)
    for name, why in done.left.items():
        note(f"left alone: {name}: {clean(why)}")


@command.command("mcp")
@client_argument
@click.option("--project", is_flag=True, help="Only this project, in a file beside its code.")
@dry_run_option
@json_option
@examples("mdmem install mcp claude", "mdmem install mcp codex", "mdmem install mcp vscode --project --dry-run")
def install_mcp_command(client: str, project: bool, dry_run: bool, as_json: bool) -> None:
    """Offer mdmem's tools to a program through MCP."""
    from mdmem.install.mcp import install_mcp

    if client == "codex" and project:
        raise UsageError("Codex has one configuration for all projects", hint="mdmem install mcp codex")
    done = install_mcp(client, "project" if project else "user", Path.cwd(), dry_run=dry_run)
    print_change(done, dry_run, as_json, f"MCP server named for {client}")


@command.command("agents-md")
@click.argument("path", type=click.Path(dir_okay=False), default="AGENTS.md")
@dry_run_option
@json_option
@examples("mdmem install agents-md", "mdmem install agents-md ../shop/AGENTS.md --dry-run")
def install_agents(path: str, dry_run: bool, as_json: bool) -> None:
    """Tell agents without hooks (Codex, Cursor) about the memory, in a marked block of AGENTS.md."""
    from mdmem.install.agents_md import install_agents_md

    print_change(install_agents_md(Path(path), dry_run=dry_run), dry_run, as_json, "Block written")
