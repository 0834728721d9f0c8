"""No read path shows anything of a note whose scope the agent may not read: random stores, scopes and rules, every command,
every MCP tool, every address of the dashboard, the context of a session, the warm process."""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from graph.conftest import commit, put
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st

from mdmem.cli.main import HIDDEN, group, run
from mdmem.config import user_file
from mdmem.errors import MdmemError
from mdmem.store import Store
from scopes import reads

SCOPES = ("", "shared", "project:alpha", "project:beta", "agent:bot", "agent:rival", "user:me")
PATTERNS = ("shared", "project:*", "project:alpha", "agent:bot", "agent:*", "user:*", "project:b*")
STATUSES = ("", "active", "blocked", "done", "waiting", "superseded")
FOLDERS = ("entities/project", "memories", "tasks", "messages", "sessions/2026/11", "docs", "entities/person")
SECRET = re.compile(r"zq\d\d[0-9a-f]{6}")

notes_of = st.lists(
    st.tuples(st.sampled_from(SCOPES), st.sampled_from(FOLDERS), st.sampled_from(STATUSES), st.integers(0, 7)),
    min_size=6,
    max_size=12,
)
rules_of = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True)


class World:
    """A store of notes with scopes. Each note has a secret name of its own and, in its text, a word to search for."""

    def __init__(self, root: Path, drawn: list[tuple[str, str, str, int]]) -> None:
        self.root = root
        self.notes: list[dict[str, Any]] = []
        for number, (scope, folder, status, link) in enumerate(drawn):
            secret = f"zq{number:02d}{hash_of(number, len(drawn)):06x}"
            note = {"scope": scope, "secret": secret, "word": f"word{number:02d}", "status": status, "link": link}
            self.notes.append({**note, "path": f"{folder}/{secret}.md"})
        for version in (1, 2):
            for note in self.notes:
                write(root, note, self.notes, version)
            trailers = ("Mdmem-Agent: bot", "Mdmem-Device: here", f"Mdmem-Session: run{version}")
            subject = f"remember: all of {' '.join(n['secret'] for n in self.notes)}"
            self.rev = commit(root, f"2026-11-{20 + version}T09:00:00 +0000", subject, *trailers)
        # One commit a note, as mdmem makes them: its subject names the note.
        for note in self.notes:
            write(root, note, self.notes, 3)
            commit(root, "2026-11-23T09:00:00 +0000", f"set: {note['secret']}", *trailers)


def write(root: Path, note: dict[str, Any], notes: list[dict[str, Any]], version: int) -> None:
    """Write a version of a note with everything that could give it away: names, tags, links, a next step, a secret."""
    secret = note["secret"]
    fields = {"title": f"Of {secret}", "id": f"{secret}-id", "tags": f"[t{secret}]", "session": f"s{secret}"}
    if note["scope"]:
        fields["scope"] = note["scope"]
    if note["path"].startswith("messages"):
        fields |= {"to": "[all]", "agent": "sender", "device": "desk"}
    elif note["status"] and version > 1:
        fields["status"] = note["status"]
    # Who may read a note may read the names in it: they point only at notes of the same scope, or nowhere.
    other = notes[note["link"] % len(notes)]
    if other["scope"] == note["scope"]:
        fields["blocked_by"] = f"{other['secret']}-id"
    if note["link"] == 3:
        fields["relates_to"] = f"nobody-{secret}"
    body = f"common text {note['word']} {secret} version {version}\n\n## Next\n\n- step {secret}"
    if note["link"] == 5:
        body += f'\n\n<!-- mdmem:conflict -->\nkey{secret}: "ghp_{hash_of(1, 2):036x}"'
    put(root, note["path"], body, **fields)


def hash_of(*numbers: int) -> int:
    return sum((number + 7) * 7919 ** (place + 1) for place, number in enumerate(numbers)) % 16**6


def said(*args: str) -> str:
    """Run a command in this process; return what it printed on both streams."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run(list(args))
    return b"".join(stream.buffer.getvalue() for stream in (out, err)).decode()  # type: ignore[attr-defined]


def by_commands(note: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    for ask in reads.ASKED.values():
        for args in ask(note):
            args = tuple(word.replace("+", " ") if args[0] == "query" else word for word in args)
            yield args, said(*args)


def by_tools(note: dict[str, Any], root: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    from mdmem.mcp.protocol import BadParams
    from mdmem.mcp.server import SCHEME, Memory

    memory = Memory(str(root))
    for name, ask in reads.TOOLS.items():
        for given_ in ask(note):
            yield (name, *map(str, given_.values())), json.dumps(memory.call(name, given_))
    yield ("resources/list",), json.dumps(memory.resources({}))
    for what in reads.names(note):
        with contextlib.suppress(BadParams):
            yield ("resources/read", what), json.dumps(memory.read(SCHEME + what))
    for prompt in ("handoff", "review"):
        yield ("prompts/get", prompt), json.dumps(memory.prompt(prompt, {"hours": "720"}))


def by_pages(note: dict[str, Any], store: Store) -> Iterator[tuple[tuple[str, ...], str]]:
    from mdmem.web import answers, page

    for name, ask in reads.PAGES.items():
        for given_ in ask(note):
            try:
                text = json.dumps(answers.READS[name](store, given_), default=str)
            except MdmemError as error:
                text = f"{error} {error.hint}"
            yield (name, *(value for values in given_.values() for value in values)), text
    yield ("page",), json.dumps(page.snapshot(store), default=str)


def by_session(note: dict[str, Any], root: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    from mdmem.hooks.session_start import session_start
    from mdmem.hooks.user_prompt import user_prompt
    from mdmem.warm.answers import Answers

    payload = {"cwd": str(root), "session_id": f"s-{note['secret']}", "source": "startup"}
    yield ("SessionStart",), json.dumps(session_start(payload))
    prompt = f"what do we know about {note['word']} and common text {note['secret']}"
    yield ("UserPromptSubmit", note["secret"]), json.dumps(user_prompt({**payload, "session_id": "other", "prompt": prompt}))
    asked = {"op": "prompt", "root": str(root), "scope": "shared", "agent": "bot", "device": "here", "prompt": prompt}
    yield ("warm", note["secret"]), json.dumps(Answers().answer({**asked, "own": False, "budget": 900, "seen": []}))


def test_every_command_tool_address_and_event_is_asked_or_known_to_be_silent() -> None:
    from mdmem.hooks.entry import HANDLERS
    from mdmem.mcp.tools import BY_NAME
    from mdmem.web.answers import READS

    assert reads.unclassified(reads.commands(group, HIDDEN)) == []
    assert set(reads.TOOLS) == set(BY_NAME)
    assert set(reads.PAGES) == set(READS)
    assert set(HANDLERS) == reads.TOLD | reads.TAKES


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    for name, value in (("AGENT", "bot"), ("DEVICE", "here"), ("NOW", "2026-11-30T09:00:00Z"), ("EMBEDDING_BACKEND", "none")):
        monkeypatch.setenv(f"MDMEM_{name}", value)
    # What a session start leaves for its worker is not this test's matter.
    monkeypatch.setattr("mdmem.hooks.queue.put", lambda *args, **kwargs: None)
    monkeypatch.setenv("EDITOR", "cat")
    return tmp_path


MIXED = [("" if n % 2 else "agent:rival", FOLDERS[n % 7], STATUSES[n % 6], n % 8) for n in range(12)]


# An example asks 300 questions, so that a smaller failing store is not looked for: the message names the question.
@settings(
    max_examples=3,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(drawn=notes_of, patterns=rules_of, by_star=st.booleans(), pick=st.integers(0, 99))
@example(drawn=MIXED, patterns=["shared"], by_star=False, pick=1)
def test_a_hidden_scope_is_as_if_it_did_not_exist(
    place: Path, drawn: list[tuple[str, str, str, int]], patterns: list[str], by_star: bool, pick: int
) -> None:
    def fits(scope: str) -> bool:
        return any(fnmatchcase(scope or "shared", pattern) for pattern in patterns)

    seen = [n for n, (scope, *_) in enumerate(drawn) if fits(scope)]
    assume(seen and len(seen) < len(drawn))
    from mdmem.setup import init

    user_file().write_text("")
    root = place / "store"
    shutil.rmtree(root, ignore_errors=True)
    init(root)
    world = World(root, drawn)
    rules = '"*"' if by_star else "bot"
    user_file().write_text(f"[agents.{rules}]\nscopes = {json.dumps(patterns)}\n")
    os.chdir(root)
    readable = [world.notes[n] for n in seen]
    hidden = [note for note in world.notes if note not in readable]
    before = {note["path"]: (root / note["path"]).read_bytes() for note in hidden}
    secrets = {note["secret"] for note in hidden}
    mine, lost = readable[pick % len(readable)], hidden[pick % len(hidden)]
    store = Store.open(root, need="write", cwd=root)
    shown: set[str] = set()
    for note in (mine, lost):
        asked = {**note, "hidden": "yes" if note is lost else "", "other": mine["secret"], "rev": world.rev}
        for ways in (by_commands(asked), by_tools(asked, root), by_pages(asked, store), by_session(asked, root)):
            for args, text in ways:
                for word in sorted(filter(SECRET.search, args), key=len, reverse=True):
                    text = text.replace(word, "")  # an error repeats the name that was asked for
                found = set(SECRET.findall(text))
                assert not found & secrets, (args, patterns, text[:3000])
                shown |= found
    assert shown == {note["secret"] for note in readable}
    assert {path: (root / path).read_bytes() for path in before} == before


FIGURES = (
    "status --json",
    "index status --json",
    "index verify --json",
    "index refresh --json",
    "fmt --check --json",
    "stats --json",
    "check --json",
    "graph health --json",
    "graph reconcile --json",
    "graph export --json",
    "agents --json",
    "sessions --json",
    "handoff --no-save --hours 999h --json",
    "recall common+text --json --explain --mode keyword --limit 50",
    "recall wor* --json --explain --query-syntax --mode keyword",
    "recall common+text --json --explain --mode keyword --as-of 2026-11-21",
    "bench self --system keyword --json",
    "query select+path,bm25('common')+from+notes --json",
    "query select+count(*),count(target_note)+from+edges --json",
    "query select+code,path+from+problems --json",
    "doctor --offline --json",
    "scan-secrets --json",
    "graph search common --all-time --json",
    "export - --format ndjson",
    "list --json --status any",
)
# Ids of commits and of the store, and how long a thing took, differ between any two stores.
OWN = re.compile(r'\b[0-9a-f]{40}\b|\b[0-9a-f]{10}\b|_ms": [\d.]+|store-[0-9a-f]{12}')


def test_every_figure_is_that_of_a_store_without_the_hidden_notes(place: Path) -> None:
    """Counts, statistics and scores: two stores, one of which never had the notes that may not be read."""
    from mdmem.hooks.user_prompt import user_prompt
    from mdmem.setup import init

    answers: list[dict[str, str]] = []
    notes = [
        {"scope": scope, "secret": f"zq{n:02d}{hash_of(n, 3):06x}", "word": f"word{n % 3}", "status": status, "link": 5}
        for n, (scope, _, status, _) in enumerate(MIXED)
    ]
    for note, (_, folder, _, _) in zip(notes, MIXED):
        note["path"] = f"{folder}/{note['secret']}.md"
    shown = [note for note in notes if not note["scope"]]
    closed = next(note for note in notes if note["scope"])
    for with_hidden in (True, False):
        root = place / "store"
        shutil.rmtree(root, ignore_errors=True)
        user_file().write_text("")
        init(root)
        who = ("Mdmem-Agent: bot", "Mdmem-Device: here")
        if with_hidden:
            for note in notes:
                if note["scope"]:
                    write(root, note, notes, 2)
            commit(root, "2026-11-21T08:00:00 +0000", f"remember: {closed['secret']}", *who)
        for note in shown:
            write(root, note, notes, 2)
        # A link to a note of a hidden scope leads nowhere.
        body = f"common text [[{closed['secret']}-id]] [[{shown[0]['secret']}-id]]"
        put(root, "docs/plain.md", body, id="plain-id", title="Plain")
        commit(root, "2026-11-21T09:00:00 +0000", "all", *who)
        user_file().write_text('[agents.bot]\nscopes = ["shared"]\n')
        os.chdir(root)
        found = {line: said(*(word.replace("+", " ") for word in line.split())) for line in FIGURES}
        prompt = "what is in the common text about word0 and word1 of the plain document"
        found["prompt"] = json.dumps(user_prompt({"cwd": str(root), "session_id": f"s{with_hidden}", "prompt": prompt}))
        answers.append({line: OWN.sub("", text) for line, text in found.items()})
    differing = {
        line: [*difflib.unified_diff(answers[1][line].splitlines(), answers[0][line].splitlines(), n=0, lineterm="")][2:12]
        for line in answers[0]
        if answers[0][line] != answers[1][line]
    }
    assert not differing, differing


def test_what_may_not_be_read_today_may_not_be_read_as_it_was(place: Path) -> None:
    """A note that was shared and is not any more: every way into the past knows nothing of it, renamed or not."""
    from mdmem.setup import init

    root = place / "store"
    init(root)
    fields = {"id": "zq00aaaaaa-id", "title": "Of zq00aaaaaa"}
    put(root, "memories/zq00aaaaaa.md", "common text", **fields)
    put(root, "memories/open.md", "common text, open", id="open-id", title="Open")
    commit(root, "2026-11-20T09:00:00 +0000", "remember: zq00aaaaaa", "Mdmem-Agent: bot", "Mdmem-Device: here")
    (root / "memories/zq00aaaaaa.md").unlink()
    put(root, "memories/zq00aaaaaa-two.md", "common text", **fields, scope="agent:rival")
    commit(root, "2026-11-22T09:00:00 +0000", "set: zq00aaaaaa", "Mdmem-Agent: bot", "Mdmem-Device: here")
    user_file().write_text('[agents.bot]\nscopes = ["shared"]\n')
    os.chdir(root)
    for line in (
        "recall common --as-of 2026-11-21 --keyword --json --explain",
        "diff 2026-11-01 2026-11-21 --json",
        "diff 2026-11-21 --json",
        "graph diff 2026-11-01 2026-11-21 --json",
        "graph diff 2026-11-21 --json",
        "history memories/open.md --json",
        "graph timeline open-id --json",
        "agents --json",
        "undo --dry-run --json",
        "query select+*+from+history --json",
        "handoff --no-save --since 2026-11-01 --json",
    ):
        text = said(*(word.replace("+", " ") for word in line.split()))
        assert not SECRET.search(text), (line, text)
        assert "memories/open.md" in text or not line.startswith(("recall", "history")), (line, text)
    for name in ("zq00aaaaaa-id", "memories/zq00aaaaaa.md"):
        for words in (("show", name, "--at", "2026-11-21"), ("history", name), ("restore", name, "--at", "2026-11-21")):
            text = said(*words)
            assert "common text" not in text and not SECRET.search(text.replace(name, "")), (words, text)
