"""No read command shows anything of a note whose scope the agent may not read: random scopes, agents and notes."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from graph.conftest import commit, put

from mdmem.cli.main import COMMANDS, HIDDEN, run
from mdmem.config import user_file
from mdmem.store import Store

SCOPES = ("", "shared", "project:alpha", "project:beta", "agent:bot", "agent:rival", "user:me")
PATTERNS = ("shared", "project:*", "project:alpha", "agent:bot", "agent:*", "user:*", "project:b*")
STATUSES = ("", "active", "blocked", "done", "waiting", "superseded")
# Commands that show no note: they write, set up, or look at the machine. Every other one must be asked below.
SILENT = {
    "quickstart", "init", "clone", "trust", "config", "completion", "serve", "mcp", "dashboard", "install", "uninstall", "sync",
    "remote", "remember", "import", "sync-memories", "fmt", "index", "bench", "message", "reply", "log", "heartbeat",
    "scan-secrets", "undo", "doctor", "lease", "edit", "restore", "resolve", "rate", "demo", "hook", "merge-driver",
}  # fmt: skip


class World:
    """A store of notes with scopes. Each note has a secret name of its own and, in its text, a word to search for."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        self.notes: list[dict[str, str]] = []
        kinds = ["entities/project", "entities/person", "memories", "tasks", "messages", "sessions/2026/11", "docs"]
        for number in range(24):
            scope = rng.choice(SCOPES)
            secret, word = f"secret{number:02d}{rng.randrange(16**6):06x}", f"word{number:02d}"
            self.notes.append({"scope": scope, "secret": secret, "word": word, "folder": rng.choice(kinds)})
        for version in (1, 2):
            for note in self.notes:
                fields = {"title": f"Of {note['secret']}", "id": f"{note['secret']}-id", "tags": f"[t{note['secret']}]"}
                if note["scope"]:
                    fields["scope"] = note["scope"]
                fields["status"] = rng.choice(STATUSES)
                if note["folder"] == "messages":
                    fields |= {"to": "[all]", "agent": "sender", "device": "desk"}
                    del fields["status"]
                others = rng.sample(self.notes, 2)
                # Who may read a note may read the names in it: they point only at notes of the same scope.
                for rel, other in zip(("blocked_by", "relates_to"), others):
                    if other["scope"] == note["scope"]:
                        fields[rel] = f"{other['secret']}-id"
                body = f"common text {note['word']} {note['secret']} version {version}\n\n## Next\n\n- step {note['secret']}"
                put(root, f"{note['folder']}/{note['secret']}.md", body, **{k: v for k, v in fields.items() if v})
            trailers = ("Mdmem-Agent: other", "Mdmem-Device: desk", f"Mdmem-Session: run{version}")
            commit(root, f"2026-11-{20 + version}T09:00:00 +0000", f"version {version}", *trailers)


def say(capture: list[str], *args: str) -> str:
    """Run a command in this process; return what it printed on both streams."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run(list(args))
    capture.append(args[0])
    return b"".join(stream.buffer.getvalue() for stream in (out, err)).decode()  # type: ignore[attr-defined]


def questions(seen: dict[str, str], hidden: dict[str, str] | None) -> Iterator[tuple[str, ...]]:
    """Yield every read command, in every form that could show a note; names of hidden notes are asked for too."""
    yield ("list", "--json", "--status", "any")
    yield ("recall", "common text", "--json", "--explain", "--limit", "50", "--budget", "4000", "--mode", "keyword")
    yield ("graph", "search", "common", "--all-time", "--json", "--limit", "50")
    yield ("graph", "blockers", "--stale-days", "0", "--json")
    yield ("check-blockers", "--stale-days", "0")
    yield ("graph", "diff", "2026-01-01", "--limit", "0", "--json", "--kind", "session", "--kind", "memory", "--kind", "entity")
    yield ("semantic-diff", "2026-11-22", "--limit", "0")
    yield ("graph", "reconcile", "--json")
    yield ("graph", "health", "--json")
    yield ("graph", "export", "--isolated", "--json")
    yield ("graph", "export", "--isolated", "--format", "dot")
    yield ("graph", "export", "--format", "mermaid")
    yield ("handoff", "--no-save", "--since", "2026-01-01", "--json")
    yield ("gen-handoff", "--no-save", "--hours", "999h", "--for", "rival")
    yield ("inbox", "--all", "--json")
    yield ("task", "list", "--all", "--json")
    yield ("task", "next", "--json")
    yield ("task", "current", "--json")
    yield ("sessions", "--last", "all", "--json")
    yield ("session", "show", "run1", "--json")
    yield ("agents", "--json")
    yield ("status", "--json")
    yield ("conflicts", "--json")
    yield ("review", "--json")
    yield ("check", "--json")
    yield ("diff", "2026-01-01", "--json")
    yield ("diff", "2026-11-21", "2026-11-22")
    yield ("stats", "--json")
    yield ("export", "-", "--format", "ndjson")
    yield ("export", "-", "--format", "es-bulk")
    yield ("query", "select * from notes", "--json")
    yield ("query", "select * from edges", "--json")
    for note in filter(None, (seen, hidden)):
        secret, path = note["secret"], f"{note['folder']}/{note['secret']}.md"
        yield ("recall", note["word"], "--json", "--explain", "--mode", "keyword")
        for name in (path, f"{secret}-id", secret[:10], f"Of {secret}"):
            yield ("show", name, "--json")
        yield ("show", path, "--at", "2026-11-21", "--json")
        yield ("history", path, "--json")
        yield ("thread", f"{secret}-id")
        yield ("ack", f"{secret}-id") if note is hidden else ("inbox",)
        yield ("set", f"{secret}-id", "priority=high") if note is hidden else ("list",)
        yield ("review", "settle", f"{secret}-id", "supersede") if note is hidden else ("review",)
        yield ("feedback", f"{secret}-id", "useful") if note is hidden else ("list",)
        yield ("forget", f"{secret}-id", "--json") if note is hidden else ("list",)
        yield ("session", "show", f"{secret}-id", "--json")
        for verb in ("related", "timeline"):
            yield ("graph", verb, f"{secret}-id", "--json")
        yield ("graph", "related", f"{secret}-id", "--depth", "4", "--limit", "0")
        yield ("graph", "path", f"{secret}-id", f"{seen['secret']}-id", "--json")
        yield ("graph", "export", "--around", f"{secret}-id")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_hidden_scope_is_as_if_it_did_not_exist(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    store = make_store()
    world = World(store.root, rng)
    patterns = rng.sample(PATTERNS, rng.randint(1, 3))
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(f"[agents.bot]\nscopes = {json.dumps(patterns)}\n[embedding]\nbackend = 'none'\n")
    monkeypatch.setenv("MDMEM_AGENT", "bot")
    monkeypatch.setenv("MDMEM_DEVICE", "here")
    monkeypatch.setenv("MDMEM_NOW", "2026-11-30T09:00:00Z")
    monkeypatch.chdir(store.root)
    readable = [n for n in world.notes if any(fnmatchcase(n["scope"] or "shared", p) for p in patterns)]
    hidden = [n for n in world.notes if n not in readable]
    assert readable and hidden, "a seed that shows nothing"
    asked: list[str] = []
    shown = set()
    for _ in range(2):
        lost = rng.choice(hidden)
        for args in questions(rng.choice(readable), lost):
            text = say(asked, *args)
            for word in args:  # an error repeats the name that was asked for
                text = text.replace(word, "")
            found = set(re.findall(r"secret\d{2}[0-9a-f]{6}", text))
            leaked = found & {n["secret"] for n in hidden}
            assert not leaked, (args, patterns, text[:2000])
            shown |= found
    assert shown == {n["secret"] for n in readable}
    for note in hidden:
        assert f"common text {note['word']}" in (store.root / note["folder"] / f"{note['secret']}.md").read_text()
        assert "priority" not in (store.root / note["folder"] / f"{note['secret']}.md").read_text()
    unasked = {*COMMANDS, *HIDDEN} - set(asked) - SILENT
    assert not unasked, f"read commands that this test does not ask: {sorted(unasked)}"
