"""Promise 8: whatever way a text comes in, no secret in it reaches a disk: neither files, commits, index, spool nor logs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from mdmem.cli.main import run
from mdmem.store import Store
from tests.hooks.host import payload, run_hook, wait_until, workers_of
from tests.mcp.test_mcp import Client
from tests.notes.redact_probes import CAUGHT, fill

KEY = "sk_live_" + "a1B2c3D4" * 4
# Shapes that meet every way in, beside the shared probes: (text, what must be nowhere).
OWN = [
    (f"charged with {KEY} today", KEY),
    ('{"password": "Tr0ub4dor3", "port": 5432}', "Tr0ub4dor3"),
    ("数据库密码：Tr0ub4dor4，勿外传", "Tr0ub4dor4"),
    ("see <private>the blue heron flies</private> then", "blue heron"),
    ("postgres://bob:Tr0ub4dor5@db.example/app works", "Tr0ub4dor5"),
]


def probes() -> list[tuple[str, list[str]]]:
    """Return (text, secrets) of our own probes and, where the data is beside the checkout, of the shared ones."""
    found = [(text, [secret]) for text, secret in OWN]
    found += [(fill(text), [fill(part) for part in gone]) for text, gone, _ in CAUGHT[::25]]
    for folder in [os.environ.get("MDMEM_TEST_DATA", ""), *(str(p / "shared/data") for p in Path(__file__).resolve().parents)]:
        file = Path(folder or "/nowhere") / "privacy_probes.json"
        if file.is_file():
            found += [(p["input"], p["must_not_contain"]) for p in json.loads(file.read_text("utf-8")) if p["must_not_contain"]]
            break
    return found


def cli(*words: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run(list(words))
    assert code in (0, None), out.getvalue()


def everything(root: Path) -> bytes:
    """Return every byte below a folder: files, names, unpacked git objects and unpacked index blocks."""
    found = []
    for path in root.rglob("*"):
        found.append(os.fsencode(path.name))
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            found.append(data)
            with contextlib.suppress(zlib.error):
                found.append(zlib.decompress(data))
    for git in root.rglob(".git"):
        log = ["git", "-C", str(git.parent), "log", "-p", "--all", "--format=%B"]
        found.append(subprocess.run(log, capture_output=True, check=False).stdout)
    return b"\n".join(found)


def by_remember(store: Store, text: str, number: int, work: Path) -> None:
    cli("remember", "fact", "--", text)


def by_file(store: Store, text: str, number: int, work: Path) -> None:
    folder = work / f"notes{number}"
    folder.mkdir()
    (folder / "a.md").write_text(f"---\ntitle: Of {number}\ntype: fact\n---\n{text}\n", "utf-8")
    cli("import", str(folder))
    (work / f"{number}.json").write_text(json.dumps([{"content": text, "type": "fact"}]), "utf-8")
    cli("import", str(work / f"{number}.json"))


def by_work(store: Store, text: str, number: int, work: Path) -> None:
    cli("task", "add", text[:150] if len(text) < 150 else text, "--priority", "high")
    cli("message", "send", "reviewer", "--", text)
    cli("log", "found", "--", text)


def by_mcp(store: Store, text: str, number: int, work: Path) -> None:
    client = Client(Path(store.root))
    try:
        client.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
        for given, _ in probes() if number == 0 else ():
            assert not client.tool("memory_add", type="fact", text=given)[1]
            assert not client.tool("memory_task", action="add", task="Look", text=given)[1]
            assert not client.tool("memory_message", action="send", to="reviewer", subject="Look", text=given)[1]
    finally:
        client.close()


def by_transcript(store: Store, text: str, number: int, work: Path) -> None:
    base = {"sessionId": f"t{number}", "cwd": str(work), "version": "2", "timestamp": "2026-11-29T10:00:00.000Z"}
    lines = [
        {**base, "type": "user", "uuid": "a", "parentUuid": None, "message": {"role": "user", "content": text}},
        {**base, "type": "assistant", "uuid": "b", "parentUuid": "a",
         "message": {"role": "assistant", "id": "m", "content": [{"type": "text", "text": f"I used {text}"}]}},
    ]  # fmt: skip
    file = work / f"t{number}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    cli("import", "transcripts", str(file))


WAYS = (by_remember, by_file, by_work, by_mcp, by_transcript)


@pytest.mark.parametrize("way", WAYS, ids=[way.__name__ for way in WAYS])
def test_p5_no_secret_reaches_the_store(
    way: Callable[[Store, str, int, Path], None],
    make_store: Callable[..., Store],
    tmp_path: Path,
    own_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "off")
    store = make_store("one")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(store.root)
    taken = probes()
    for number, (text, _) in enumerate(taken):
        way(store, text, number, work)
    cli("sync")
    written = everything(Path(store.root)) + everything(own_home)
    assert b"redacted:" in written
    left = [secret for _, secrets in taken for secret in secrets if secret.encode() in written]
    assert not left


def test_p5_no_secret_reaches_the_disk_by_hooks(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.hooks.host import make_store as make

    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "off")
    monkeypatch.setenv("MDMEM_WORKER_SETTLE", "0.05")
    store = make(tmp_path / "store")
    taken = probes()
    # Several probes a call: what opens in one must not hide the next, so each has an event of its own kind.
    for number, (text, _) in enumerate(taken):
        event, fields = (
            ("UserPromptSubmit", {"prompt": text}),
            ("Stop", {"last_assistant_message": text}),
            ("PostCompact", {"compact_summary": text, "trigger": "auto"}),
            ("PostToolUse", {"tool_name": "Bash", "tool_input": {"command": text, "description": text}}),
            ("PostToolUseFailure", {"tool_name": "WebFetch", "tool_input": {"path": text[:200]}, "error": text}),
        )[number % 5]
        assert run_hook(event, {**payload(event, store), **fields}, cwd=store).code == 0
    for text, _ in taken[:6]:
        for event, name in (("UserPromptSubmit", "prompt"), ("Stop", "last_assistant_message")):
            assert run_hook(event, {**payload(event, store), name: text}, cwd=store).code == 0
    spooled = everything(store)
    run_hook("SessionEnd", {**payload("SessionEnd", store), "reason": "other"}, cwd=store)
    wait_until(lambda: not workers_of(tmp_path), 30)
    written = spooled + everything(store) + everything(own_home)
    assert b"redacted:" in written and re.search(rb"sessions/\d{4}", written)
    left = [secret for _, secrets in taken for secret in secrets if secret.encode() in written]
    assert not left
