"""The command group: names each command and imports its file only when it is called."""

from __future__ import annotations

import sys
from typing import Any

import click

from mdmem import __version__
from mdmem.cli.lazy import LazyGroup

# name -> (module:attribute, one-line help shown in the list of commands)
COMMANDS: dict[str, tuple[str, str]] = {
    "quickstart": ("mdmem.cli.cmd_quickstart:command", "Make a store, keep a first memory, find it again."),
    "init": ("mdmem.cli.cmd_init:command", "Make a store of notes."),
    "remember": ("mdmem.cli.cmd_remember:command", "Keep one memory."),
    "recall": ("mdmem.cli.cmd_recall:command", "Find notes by words and by meaning."),
    "show": ("mdmem.cli.cmd_show:command", "Print one note."),
    "list": ("mdmem.cli.cmd_list:command", "List notes by their fields."),
    "query": ("mdmem.cli.cmd_query:command", "Ask the notes with SQL."),
    "stats": ("mdmem.cli.cmd_query:stats", "The usual figures."),
    "set": ("mdmem.cli.cmd_set:command", "Change fields of a note."),
    "edit": ("mdmem.cli.cmd_edit:command", "Open a note in your editor."),
    "forget": ("mdmem.cli.cmd_forget:command", "Take notes out of recall."),
    "prune": ("mdmem.cli.cmd_prune:command", "Archive what expired, faded or is contradicted."),
    "consolidate": ("mdmem.cli.cmd_consolidate:command", "Draw memories from sessions."),
    "capture": ("mdmem.cli.cmd_capture:command", "What was kept of a session, and why."),
    "review": ("mdmem.cli.cmd_review:command", "Settle what may contradict or repeat."),
    "feedback": ("mdmem.cli.cmd_feedback:command", "Say whether a note helped."),
    "export": ("mdmem.cli.cmd_export:command", "Write notes elsewhere: a folder, a vault, one file."),
    "import": ("mdmem.cli.cmd_import:command", "Bring notes in from elsewhere."),
    "sync-memories": ("mdmem.cli.cmd_sync_memories:command", "Sync Claude Code's own memory folder with the store."),
    "task": ("mdmem.cli.cmd_task:command", "Tasks: what is to be done, by whom, what it waits for."),
    "message": ("mdmem.cli.cmd_message:command", "Send messages to other agents."),
    "inbox": ("mdmem.cli.cmd_message:inbox", "List the messages to you."),
    "reply": ("mdmem.cli.cmd_message:reply", "Answer a message."),
    "ack": ("mdmem.cli.cmd_message:ack", "Mark a message as read."),
    "thread": ("mdmem.cli.cmd_message:thread", "Show a thread of messages."),
    "handoff": ("mdmem.cli.cmd_handoff:command", "What whoever comes next should know."),
    "log": ("mdmem.cli.cmd_log:command", "Log what was done, in one line."),
    "sessions": ("mdmem.cli.cmd_sessions:command", "List sessions."),
    "session": ("mdmem.cli.cmd_session:command", "One session, with its commits."),
    "agents": ("mdmem.cli.cmd_agents:command", "Who was last seen where, on what."),
    "heartbeat": ("mdmem.cli.cmd_heartbeat:command", "Say that you are at work."),
    "graph": ("mdmem.cli.cmd_graph:command", "What belongs to what and what waits for what."),
    "sync": ("mdmem.cli.cmd_sync:command", "Commit, merge with the remote, push."),
    "clone": ("mdmem.cli.cmd_clone:command", "Bring a store from elsewhere to this machine."),
    "remote": ("mdmem.cli.cmd_remote:command", "Where this store meets others."),
    "history": ("mdmem.cli.cmd_history:command", "What happened to a note."),
    "diff": ("mdmem.cli.cmd_diff:command", "What changed between two moments."),
    "restore": ("mdmem.cli.cmd_restore:command", "Bring back an old version of a note."),
    "undo": ("mdmem.cli.cmd_undo:command", "Take back mdmem's last commit."),
    "lease": ("mdmem.cli.cmd_lease:command", "Exclusive rights to edit a note, across machines."),
    "conflicts": ("mdmem.cli.cmd_conflicts:command", "List what a merge could not decide."),
    "resolve": ("mdmem.cli.cmd_conflicts:resolve", "Settle a conflict."),
    "status": ("mdmem.cli.cmd_status:command", "The store at a glance."),
    "check": ("mdmem.cli.cmd_check:command", "Look for what is wrong in notes."),
    "fmt": ("mdmem.cli.cmd_fmt:command", "Bring notes into the form that merges well."),
    "bench": ("mdmem.cli.cmd_bench:command", "Measure recall on a file of questions, or on your own store."),
    "index": ("mdmem.cli.cmd_index:command", "Look at, refresh or rebuild the search index."),
    "scan-secrets": ("mdmem.cli.cmd_scan_secrets:command", "Name secrets in notes and commits, never their value."),
    "install": ("mdmem.cli.cmd_install:command", "Put mdmem into Claude Code, git, MCP programs, AGENTS.md."),
    "uninstall": ("mdmem.cli.cmd_uninstall:command", "Take out what install put in."),
    "serve": ("mdmem.cli.cmd_serve:command", "Keep model and indexes loaded for hooks and recall."),
    "doctor": ("mdmem.cli.cmd_doctor:command", "Look at everything, mend what is safe."),
    "dashboard": ("mdmem.cli.cmd_dashboard:command", "Look at the store in a browser."),
    "mcp": ("mdmem.cli.cmd_mcp:command", "The MCP server on stdin and stdout."),
    "config": ("mdmem.cli.cmd_config:command", "Show and change your settings."),
    "trust": ("mdmem.cli.cmd_trust:command", "Trust the store that you are in."),
    "schema": ("mdmem.cli.cmd_schema:command", "The frontmatter's fields as JSON Schema."),
    "completion": ("mdmem.cli.cmd_completion:command", "Print a shell's completion script."),
}
# Names that people know from elsewhere, kept out of the list.
HIDDEN: dict[str, tuple[str, str]] = {
    "check-blockers": ("mdmem.cli.cmd_graph_blockers:command", ""),
    "semantic-diff": ("mdmem.cli.cmd_graph_diff:command", ""),
    "gen-handoff": ("mdmem.cli.cmd_handoff:command", ""),
}


class Mdmem(LazyGroup):
    """The commands of the program."""

    listed, hidden_names = COMMANDS, HIDDEN


@click.group(cls=Mdmem, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="mdmem", message="%(prog)s %(version)s")
@click.option("-C", "directory", metavar="DIR", help="Use the store that DIR is in, instead of looking upwards from here.")
@click.pass_context
def group(ctx: click.Context, directory: str | None) -> None:
    """A memory for coding agents, kept in a git repository of markdown files.

    \b
    Examples:
      mdmem init ~/memory
      mdmem remember decision "We stay with PostgreSQL 16" --tags database
      mdmem recall "which database do we use"
    """
    ctx.obj = {"directory": directory}


def run(args: list[str]) -> int:
    """Run one command line; returns the exit code. Never raises."""
    from mdmem.cli.output import guarded

    return guarded(group, args)


def main(**_: Any) -> None:  # pragma: no cover - for `python -m mdmem.cli.main`
    sys.exit(run(sys.argv[1:]))
