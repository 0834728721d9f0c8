"""Every command, tool, address and event, with how each is asked what it shows, or why it shows no note.

A new one that stands in none of these tables makes the test fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

Note = dict[str, str]
Ask = Callable[[Note], list[tuple[str, ...]]]

# Commands that show no note, by the reason.
SILENT = {
    "sets up or looks at the machine": (
        "quickstart", "init", "clone", "trust", "config get", "config list", "config set", "config unset", "completion",
        "install agents-md", "install claude-code", "install git-hooks", "install mcp", "uninstall agents-md",
        "uninstall claude-code", "uninstall git-hooks", "uninstall mcp", "schema", "remote add", "remote list",
        "remote remove",
        "remote set",
    ),
    "starts a face that has its own table below": ("serve", "mcp", "dashboard"),
    "asks a file of questions in a store of its own": ("bench recall",),
    "needs a server, and is run for a whole store after a merge": ("index push",),
    "writes what its caller gives, and shows that": (
        "log", "heartbeat", "task add", "message send", "import", "sync-memories",
    ),
}  # fmt: skip


def names(note: Note) -> list[str]:
    """Return what a note can be called by."""
    return [note["path"], f"{note['secret']}-id", note["secret"][:10], f"Of {note['secret']}", note["secret"]]


def _once(*lines: str) -> Ask:
    return lambda note: [tuple(line.split()) for line in lines]


def _named(*words: str, tail: tuple[str, ...] = ()) -> Ask:
    return lambda note: [(*words, name, *tail) for name in names(note)[:4]]


def _write(*words: str, tail: tuple[str, ...] = ()) -> Ask:
    """Ask for a change, of a hidden note only: it must not be found, and not be changed."""
    return lambda note: [(*words, f"{note['secret']}-id", *tail)] if note["hidden"] else []


ASKED: dict[str, Ask] = {
    "remember": lambda note: [
        ("remember", "fact", f"common text {note['word']}", "--json"),
        *_write("remember", "fact", f"no {note['word']} any more", "--supersedes")(note),
    ],
    "fmt": _once("fmt --check --json", "fmt --json"),
    "index refresh": _once("index refresh --json"),
    "index rebuild": _once("index rebuild text --json"),
    "list": _once("list --json --status any", "list --json --status any --sort title"),
    "recall": lambda note: [
        ("recall", "common text", "--json", "--explain", "--limit", "50", "--budget", "4000", "--mode", "keyword"),
        ("recall", note["word"], "--json", "--explain", "--mode", "keyword"),
        ("recall", note["secret"], "--mode", "keyword", "--as-of", "2026-11-21"),
        ("recall", note["word"] + "*", "--json", "--query-syntax", "--mode", "keyword"),
    ],
    "show": lambda note: [
        *_named("show", tail=("--json",))(note), ("show", note["path"], "--at", "2026-11-21", "--json"),
    ],
    "query": _once(*(f"query select+*+from+{name} --json" for name in (
        "notes", "tags", "passages", "edges", "problems", "sessions", "tasks", "messages", "agents", "usage", "history",
    )), "query select+*,bm25('common')+from+notes --json"),
    "stats": _once("stats --json"),
    "set": _write("set", tail=("priority=high",)),
    "edit": _write("edit"),
    "forget": _write("forget", tail=("--json",)),
    "prune": _once("prune --dry-run --retier --json", "prune --dry-run"),
    "feedback": _write("feedback", tail=("useful",)),
    "export": _once("export - --format ndjson", "export - --format es-bulk"),
    "task list": _once("task list --all --json", "task list"),
    "task next": _once("task next --json"),
    "task current": _once("task current --json"),
    **{f"task {verb}": _write("task", verb) for verb in ("start", "claim", "release", "done", "fail", "cancel", "block")},
    "task note": _write("task", "note", tail=("a word",)),
    "task update": _write("task", "update", tail=("--priority", "high")),
    "inbox": _once("inbox --all --json", "inbox"),
    "reply": _write("reply", tail=("a word",)),
    "ack": _write("ack"),
    "thread": _named("thread"),
    "handoff": _once("handoff --no-save --since 2026-01-01 --json", "handoff --no-save --hours 999h --for rival"),
    "gen-handoff": _once("gen-handoff --no-save --since 2026-01-01"),
    "sessions": _once("sessions --last all --json", "sessions"),
    "session show": lambda note: [("session", "show", "run1", "--json"), *_named("session", "show")(note)],
    "agents": _once("agents --json"),
    "graph search": lambda note: [
        ("graph", "search", "common", "--all-time", "--json", "--limit", "50"),
        ("graph", "search", note["word"], "--all-time"),
    ],
    "graph related": lambda note: [
        *_named("graph", "related", tail=("--json",))(note),
        ("graph", "related", f"{note['secret']}-id", "--depth", "4", "--limit", "0"),
    ],
    "graph path": lambda note: [("graph", "path", f"{note['secret']}-id", f"{note['other']}-id", "--json")],
    "graph blockers": _once("graph blockers --stale-days 0 --json", "graph blockers --stale-days 0"),
    "check-blockers": _once("check-blockers --stale-days 0"),
    "graph diff": _once(
        "graph diff 2026-01-01 --limit 0 --json --kind session --kind memory --kind entity", "graph diff 2026-11-22"
    ),
    "semantic-diff": _once("semantic-diff 2026-11-22 --limit 0"),
    "graph timeline": _named("graph", "timeline", tail=("--json",)),
    "graph reconcile": _once("graph reconcile --json"),
    "graph health": _once("graph health --json"),
    "graph export": lambda note: [
        ("graph", "export", "--isolated", "--json"), ("graph", "export", "--isolated", "--format", "dot"),
        ("graph", "export", "--format", "mermaid"), ("graph", "export", "--around", f"{note['secret']}-id"),
    ],
    "sync": _once("sync --dry-run --json", "sync --no-push --json"),
    "history": _named("history", tail=("--json",)),
    "diff": _once("diff 2026-01-01 --json", "diff 2026-11-21 2026-11-22"),
    "restore": _write("restore", tail=("--at", "2026-11-21")),
    "undo": _once("undo --dry-run --json"),
    "lease acquire": _write("lease", "acquire"),
    "lease renew": _write("lease", "renew"),
    "lease release": _write("lease", "release"),
    "lease list": _once("lease list --json"),
    "conflicts": _once("conflicts --json", "conflicts"),
    "consolidate": _once("consolidate --dry-run --json", "consolidate --json"),
    "capture log": _once("capture log --json"),
    "review": _once("review --json", "review"),
    "review settle": _write("review", "settle", tail=("supersede",)),
    "resolve": _write("resolve", tail=("--keep", "1")),
    "status": _once("status --json", "status"),
    "check": _once("check --json", "check"),
    "bench self": _once("bench self --system keyword --json"),
    "index status": _once("index status --json"),
    "index verify": _once("index verify --json"),
    "scan-secrets": _once("scan-secrets --json", "scan-secrets --history --json", "scan-secrets --unpushed"),
    "doctor": _once("doctor --offline --json", "doctor --offline --deep"),
}  # fmt: skip


def commands(root: click.Group, hidden: dict[str, Any]) -> Iterator[str]:
    """Yield the full name of every command there is, hidden ones too."""

    def walk(command: click.Command, name: str) -> Iterator[str]:
        if not isinstance(command, click.Group):
            yield name
            return
        if command.invoke_without_command:
            yield name
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from walk(found, f"{name} {below}".strip())

    context = click.Context(root)
    yield from walk(root, "")
    yield from hidden


def unclassified(found: Iterator[str]) -> list[str]:
    """Return the commands that stand in no table, or in two."""
    silent = [name for some in SILENT.values() for name in some]
    return [name for name in found if (name in ASKED) + silent.count(name) != 1]


# Tools of the MCP server: arguments that show something.
TOOLS: dict[str, Callable[[Note], list[dict[str, Any]]]] = {
    "memory_search": lambda note: [
        {"query": "common text", "limit": 50, "mode": "keyword"}, {"query": note["word"], "mode": "keyword"},
    ],
    "memory_get": lambda note: [{"note": name} for name in names(note)] + [{"note": note["path"], "at": "2026-11-21"}],
    "memory_add": lambda note: [],
    "memory_update": lambda note: [{"note": f"{note['secret']}-id", "set": {"priority": "high"}}] if note["hidden"] else [],
    "memory_forget": lambda note: [{"note": f"{note['secret']}-id"}] if note["hidden"] else [],
    "memory_list": lambda note: [{"limit": 200}, {"limit": 200, "kind": "message"}, {"status": "done"}],
    "memory_related": lambda note: [{"note": f"{note['secret']}-id", "depth": 3}],
    "memory_context": lambda note: [{"query": "common text", "budget": 8000}],
    "memory_feedback": lambda note: [{"note": f"{note['secret']}-id", "rating": "useful"}] if note["hidden"] else [],
    "memory_handoff": lambda note: [{"hours": 720, "budget": 8000}],
    "memory_task": lambda note: [{"action": "list"}, {"action": "next"}]
    + ([{"action": "done", "task": f"{note['secret']}-id"}] if note["hidden"] else []),
    "memory_message": lambda note: [{"action": "inbox"}]
    + ([{"action": "ack", "message": f"{note['secret']}-id"}] if note["hidden"] else []),
    "memory_sync": lambda note: [{"push": False}],
    "memory_query": lambda note: [{"sql": f"select * from {name}"} for name in ("notes", "edges", "history", "passages")],
}  # fmt: skip

# Addresses of the dashboard that read.
PAGES: dict[str, Callable[[Note], list[dict[str, list[str]]]]] = {
    **{name: lambda note: [{}] for name in ("overview", "sessions", "recent", "graph", "blockers", "conflicts", "devices")},
    "search": lambda note: [{"q": [note["word"]], "mode": ["keyword"]}, {"q": ["common"], "mode": ["keyword"]}],
    "note": lambda note: [{"note": [name]} for name in names(note)],
    "timeline": lambda note: [{"note": [f"{note['secret']}-id"]}],
    "diff": lambda note: [{"note": [f"{note['secret']}-id"], "rev": [note["rev"]]}],
}

# Events of the host: those that answer with notes, and those that only take.
TOLD = {"SessionStart", "UserPromptSubmit"}
TAKES = {
    "PostToolUse", "PostToolUseFailure", "PostToolBatch", "FileChanged", "PreCompact", "PostCompact", "Stop", "SubagentStart",
    "SubagentStop", "SessionEnd",
}  # fmt: skip
