"""What other systems lack is done without: no fcntl, no pread, no setsid, no alarm."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mdmem.hooks import queue
from mdmem.memory import journal, spool

# The beginning of a script that writes what it is told to into the file that its first argument names.
TELL = "import os, sys\ndef tell(*words): open(sys.argv[1], 'w').write(' '.join(map(str, words)))\n"


def test_without_fcntl_single_writes_still_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    path = str(tmp_path / "a" / "q.jsonl")
    journal.append(path, {"n": 1})
    journal.append(path, {"n": 2})
    assert journal.take(path, path + ".taken") == [{"n": 1}, {"n": 2}]
    held = queue.hold_lock(str(tmp_path / "state"))
    assert held is not None
    os.close(held)


def test_without_pread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pread")
    common = str(tmp_path)
    assert spool.add(common, "s", {"k": "said", "text": "x"}, 1.0)
    assert not spool.add(common, "s", {"k": "said", "text": "x"}, 2.0)
    with open(spool.file_of(common, "s"), "ab") as stream:
        stream.write(b"torn")
    assert spool.add(common, "s", {"k": "said", "text": "y"}, 3.0)
    assert [r["text"] for r in spool.records(common, "s")] == ["x", "y"]


def test_without_setsid_a_child_is_started_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem import detach
    from tests.hooks.host import wait_until

    script = tmp_path / "child.py"
    script.write_text(TELL + "tell(os.getsid(0), os.getpid(), os.environ['MDMEM_HOOK'])\n")

    def refuse(*args: object, **more: object) -> int:
        raise NotImplementedError("setsid")

    monkeypatch.setattr(os, "posix_spawn", refuse)
    detach.start(str(script), [str(tmp_path / "out")])
    wait_until(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text())
    session, process, marker = (tmp_path / "out").read_text().split()
    assert session == process and marker == "1"


def test_a_detached_child_gets_no_messaging_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem import detach
    from tests.hooks.host import wait_until

    monkeypatch.setenv("CLAUDE_CODE_MESSAGING_TOKEN", "secret")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/c")
    script = tmp_path / "child.py"
    script.write_text(TELL + "tell(*sorted(k for k in os.environ if k.startswith('CLAUDE')), 'end')\n")
    detach.start(str(script), [str(tmp_path / "out")])
    wait_until(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text())
    assert (tmp_path / "out").read_text() == "CLAUDE_CONFIG_DIR end"


def test_without_unix_sockets_there_is_no_warm_process(monkeypatch: pytest.MonkeyPatch) -> None:

    from mdmem.warm import client, starting

    monkeypatch.setenv("MDMEM_SERVE", "auto")
    monkeypatch.delattr(os, "getuid")
    monkeypatch.delattr(client.socket, "AF_UNIX")
    assert not client.allowed()
    assert client.ask({"op": "status"}) is None
    assert not starting.start()
