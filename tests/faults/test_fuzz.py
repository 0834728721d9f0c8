"""Any input that comes from outside: transcripts, exports of other programs, queries, payloads of the host, paths out of git.

Frontmatter, merge, redaction, the analyzer, MCP and the dashboard are fuzzed beside the code that they belong to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mdmem.cli.main import run
from mdmem.errors import MdmemError, UsageError
from mdmem.hooks.entry import HANDLERS
from mdmem.memory.import_records import import_records
from mdmem.memory.remember import Memory, remember
from mdmem.memory.transcripts import read_transcript
from mdmem.recall.query import Query
from mdmem.recall.recall import recall
from mdmem.recall.when import closeness, periods
from mdmem.repo.own import unsafe
from mdmem.store import Store
from tests.examples import examples
from tests.hooks.host import SAMPLES, make_store, payload
from tests.injected import count
from tests.repo.conftest import plain_git

QUICK = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def known(names: tuple[str, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with the names that the reader looks for, and any values in them."""
    return st.dictionaries(st.sampled_from(names) | st.text(max_size=8), values, max_size=8)


# --- transcripts ---------------------------------------------------------------------------------

BLOCK = known(("type", "text", "id", "name", "input", "content", "tool_use_id", "is_error"), JSON) | st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking"])},
    optional={"text": JSON, "input": JSON, "id": JSON},
)
TURN = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["user", "assistant", "summary", "system", "ai-title"]) | JSON,
        "uuid": st.sampled_from(["a", "b", "c"]) | JSON,
        "message": st.fixed_dictionaries({"content": st.lists(BLOCK, max_size=3) | JSON}, optional={"id": JSON}) | JSON,
    },
    optional={
        "parentUuid": st.sampled_from(["a", "b", "c"]) | JSON, "timestamp": st.just("2026-11-30T09:00:00.000Z") | JSON,
        "cwd": JSON, "sessionId": JSON, "summary": JSON, "isMeta": JSON, "isSidechain": JSON, "isCompactSummary": JSON,
        "logicalParentUuid": JSON, "toolUseResult": JSON, "aiTitle": JSON,
    },
)  # fmt: skip


@QUICK
@given(st.lists(TURN | JSON, max_size=8), st.binary(max_size=40))
def test_h30_any_transcript_is_read_or_holds_no_talk(tmp_path: Path, turns: list[Any], rest: bytes) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(b"".join(json.dumps(turn).encode() + b"\n" for turn in turns) + rest)
    found = read_transcript(file)
    if found is not None:
        assert found.started <= found.ended and all(isinstance(text, str) for text in found.said)


# --- imports -------------------------------------------------------------------------------------

RECORD = known(
    ("id", "type", "content", "text", "memory", "title", "tags", "metadata", "created_at", "timestamp", "entityType", "name")
    + ("observations", "relationType", "from", "to", "_source", "index", "key", "value", "scope", "status", "role", "message"),
    JSON,
)


@QUICK
@given(st.lists(RECORD | JSON, max_size=5), st.sampled_from(["lines", "list", "object"]), st.binary(max_size=20))
def test_f35_any_export_is_imported_or_named_and_twice_is_once(records: list[Any], form: str, rest: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        store = Store.open(make_store(root / "store"), need="write", options={"agent": "a", "device": "d"})
        file = root / "in.json"
        if form == "lines":
            file.write_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in records) + rest)
        else:
            file.write_bytes(json.dumps(records if form == "list" else {"memories": records}).encode() + rest)
        try:
            first = import_records(store, file)
        except MdmemError:
            return
        again = import_records(store, file)
        assert again.created == 0, (first.as_dict(), again.as_dict())
        for path in first.paths:
            assert store.folder.read(path).ok
        assert plain_git(store.root, "status", "--porcelain", "--", "*.md") == ""


@pytest.mark.parametrize(
    "name", ["../out.md", "/tmp/mdmem-out.md", "a/../../out.md", "C:\\out.md", ".git/x.md", "a\0.md", "x" * 300 + ".md"]
)
def test_a_zip_with_names_that_lead_outside_writes_inside_only(name: str, store: Store, tmp_path: Path) -> None:
    file = tmp_path / "in.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), "---\nid: mem-out\ntitle: out\n---\nout\n")
        archive.writestr("memories/good.md", "---\nid: mem-good\ntitle: good\n---\ngood\n")
    done = import_records(store, file)
    assert any("good" in path for path in done.paths)
    assert not list(tmp_path.glob("out.md")) and not Path("/tmp/mdmem-out.md").exists()
    outside = [path for path in tmp_path.rglob("*.md") if store.root not in path.parents]
    assert outside == []
    assert not (store.root / ".git" / "x.md").exists()


# --- queries -------------------------------------------------------------------------------------

QUERY = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [
            "AND",
            "OR",
            "NOT",
            "(",
            ")",
            '"',
            "*",
            "~2",
            "title:",
            "quokka",
            "数据库",
            "^3",
            "[a TO",
            "\\",
            "'",
            "50%",
            "--",
            "\0",
        ]
    ),
    max_size=10,
).map(" ".join)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        root = make_store(tmp_path_factory.mktemp("queries") / "store")
        store = Store.open(root, need="write", options={"agent": "a", "device": "d", "embedding.backend": "off"})
        for text in ("The quokka lives on Rottnest.", "数据库在周四部署。", "50% of a_b\\c"):
            remember(store, Memory("fact", text))
        return store


@QUICK
@given(QUERY, st.booleans())
def test_any_query_text_is_answered(filled: Store, text: str, syntax: bool) -> None:
    try:
        found = recall(filled, Query(text, mode="keyword", query_syntax=syntax))
    except UsageError:
        return
    for hit in found.results:
        assert hit.path and hit.score == hit.score
    now = datetime(2026, 11, 30, tzinfo=timezone.utc)
    for period in periods(text, now):
        assert 0.0 <= closeness(period, now.date()) <= 1.0


@QUICK
@given(st.text(max_size=30), st.text(max_size=30))
def test_i42_any_filter_is_a_literal(filled: Store, tag: str, type_: str) -> None:
    from mdmem.recall.query import Filters

    found = recall(filled, Query("quokka", mode="keyword", filters=Filters(tags=(tag,), types=(type_,))))
    assert found.results == [] or type_ == "fact"


NAME = st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name)


# --- paths ---------------------------------------------------------------------------------------


@QUICK
@given(st.lists(st.sampled_from([b"..", b".", b".git", b".GIT", b"git~1", b"a"]) | NAME, min_size=1, max_size=4))
def test_n1_n3_any_path_of_bytes_survives_the_way_through_git_and_back(parts: list[bytes]) -> None:
    """A path is read with -z and decoded as a file name; what is written back is the same bytes, or refused as unsafe."""
    raw = b"/".join(parts)
    path = os.fsdecode(raw)
    assert os.fsencode(path) == raw
    inner = raw.split(b"/")
    if not unsafe(path):
        assert not raw.startswith(b"/") and all(part not in (b"", b".", b"..") for part in inner)
        assert all(part.lower() != b".git" for part in inner)
        assert os.path.normpath(os.path.join("/top", path)).startswith("/top/")
    else:
        assert (
            raw.startswith(b"/")
            or raw.endswith(b"/")
            or any(part in (b"", b".", b"..") or b"git" in part.lower().replace(b"\xe2\x80", b"") for part in inner)
        )


# --- payloads of the host ------------------------------------------------------------------------

SERVER = """
import json, os, sys
from mdmem.hooks.entry import HANDLERS, run_hook
for target in HANDLERS.values():
    __import__(target.partition(":")[0])
for line in sys.stdin.buffer:
    event, text = json.loads(line)
    given, taken = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(given[0], 0); os.dup2(taken[1], 1)
        for number in (*given, *taken): os.close(number)
        os._exit(run_hook([event]))
    os.close(given[0]); os.close(taken[1])
    os.write(given[1], text.encode("utf-8", "surrogatepass")); os.close(given[1])
    out = b""
    while part := os.read(taken[0], 65536): out += part
    os.close(taken[0])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([code, out.decode()]), flush=True)
"""
FIELDS = (
    "session_id",
    "transcript_path",
    "cwd",
    "hook_event_name",
    "source",
    "prompt",
    "tool_name",
    "tool_input",
    "tool_response",
)
FIELDS += (
    "tool_calls",
    "file_path",
    "event",
    "trigger",
    "compact_summary",
    "last_assistant_message",
    "agent_id",
    "reason",
    "error",
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_h21_any_payload_is_answered_with_0_and_one_document_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "off")
    monkeypatch.setenv("MDMEM_WORKER_SETTLE", "0.01")
    store = make_store(tmp_path / "store")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    server = subprocess.Popen([sys.executable, "-c", SERVER], env=env, cwd=store, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None
    log = Path(os.environ["XDG_DATA_HOME"]) / "mdmem" / "log" / "hooks.log"

    @settings(max_examples=examples(60))
    @given(st.sampled_from(sorted(HANDLERS)), st.dictionaries(st.sampled_from(FIELDS), JSON | st.just(str(store)), max_size=4))
    def ask(event: str, odd: dict[str, Any]) -> None:
        count("examples in faults/test_fuzz.py: hook payloads")
        given_ = {**payload(event, store), **SAMPLES[event], **odd}
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps([event, json.dumps(given_)]).encode() + b"\n")
        server.stdin.flush()
        code, out = json.loads(server.stdout.readline())
        assert code == 0 and (not out or isinstance(json.loads(out), dict)), (event, odd, out)
        assert not log.exists(), (event, odd, log.read_text())

    try:
        ask()
    finally:
        server.stdin.close()
        server.wait(30)
        from tests.hooks.host import wait_until, workers_of

        wait_until(lambda: not workers_of(tmp_path), 60)


def test_an_odd_query_on_the_command_line_is_no_traceback(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("\udcff", "a\0b", "\u202e", "x" * 20_000, "-" * 50, " "):
        code = run(["-C", str(store.root), "recall", "--keyword", "--json", "--", text])
        told = capsys.readouterr()
        assert code in (0, 2) and "unexpected" not in told.err, (text[:20], told)
        json.loads(told.out)
