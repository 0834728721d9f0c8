"""The spool: bounded, deduplicated, redacted before it is cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mdmem.memory import journal, spool


@pytest.fixture
def common(tmp_path: Path) -> str:
    return str(tmp_path / "git" / "mdmem")


def test_a_repeat_within_five_minutes_is_one_record(common: str) -> None:
    record = {"k": "tool", "tool": "Read", "files": ["a.py"], "ok": True}
    assert spool.add(common, "s1", record, 1000.0)
    assert not spool.add(common, "s1", record, 1299.0)
    assert spool.add(common, "s1", {**record, "ok": False}, 1299.5)
    assert spool.add(common, "s1", record, 1301.0)
    assert spool.add(common, "s2", record, 1302.0)
    assert [r["t"] for r in spool.records(common, "s1")] == [1000.0, 1299.5, 1301.0]


def test_files_are_the_users_alone(common: str) -> None:
    spool.add(common, "s1", {"k": "said", "text": "x"}, 1.0)
    path = Path(spool.file_of(common, "s1"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_size_is_bounded_and_the_oldest_give_way_with_a_mark(common: str) -> None:
    spool.add(common, "s1", {"k": "start", "source": "startup"}, 0.0)
    spool.add(common, "s1", {"k": "prompt", "text": "the goal"}, 0.5)
    for number in range(400):
        spool.add(common, "s1", {"k": "said", "text": f"{number} " + "x" * 4000}, float(number))
    assert os.path.getsize(spool.file_of(common, "s1")) <= spool.LARGEST
    records = spool.records(common, "s1")
    assert [r["k"] for r in records[:3]] == ["start", "prompt", "dropped"]
    assert records[2]["count"] + len(records) - 1 == 402
    assert records[-1]["text"].startswith("399 ")


def test_session_ids_that_are_no_file_names(common: str) -> None:
    for session in ("../../etc/passwd", "a/b", "", "会话", "x" * 300, "\ud800"):
        spool.add(common, session, {"k": "start"}, 1.0)
        path = spool.file_of(common, session)
        assert os.path.dirname(path) == os.path.join(common, "spool")
        assert os.path.exists(path)
    assert spool.safe("a/b") != spool.safe("a_b")


def test_writers_at_once_lose_nothing(common: str) -> None:
    code = (
        "import sys; from mdmem.memory import spool\n"
        "for i in range(50): spool.add(sys.argv[1], 's', {'k': 'said', 'text': f'{sys.argv[2]}-{i} ' + 'y' * 9000}, float(i))"
    )
    top = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": str(top)}
    running = [subprocess.Popen([sys.executable, "-c", code, common, str(n)], env=env) for n in range(4)]
    assert [process.wait(60) for process in running] == [0, 0, 0, 0]
    data = Path(spool.file_of(common, "s")).read_bytes()
    lines = data.splitlines()
    records = [json.loads(line) for line in lines]
    dropped = sum(r.get("count", 0) for r in records if r["k"] == "dropped")
    assert len(records) + dropped - (1 if dropped else 0) == 200


def test_a_torn_last_line_spoils_no_other(common: str) -> None:
    spool.add(common, "s", {"k": "said", "text": "one"}, 1.0)
    with open(spool.file_of(common, "s"), "ab") as stream:
        stream.write(b'{"t": 2, "k": "sa')
    spool.add(common, "s", {"k": "said", "text": "two"}, 3.0)
    assert [r["text"] for r in spool.records(common, "s")] == ["one", "two"]


def test_expiry(common: str) -> None:
    spool.add(common, "old", {"k": "start"}, 0.0)
    spool.add(common, "new", {"k": "start"}, 0.0)
    os.utime(spool.file_of(common, "old"), (1000, 1000))
    os.utime(spool.file_of(common, "new"), (31 * 86400, 31 * 86400))
    assert spool.expire(common, 31 * 86400.0) == 1
    assert [name for name, _ in spool.sessions(common)] == ["new"]


def test_p12_redaction_comes_before_the_cut() -> None:
    token = "ghp_" + "a1B2" * 9
    text = "x" * 85 + " " + token + " tail"
    for limit in (90, 96, 110):
        assert "ghp_a1B2" not in spool.keepable(text, limit)
    far = "y " * 5000 + token + " " + "z " * 40000
    assert "a1B2a1B2" not in spool.keepable(far, 12000)
    assert len(spool.keepable("word " * 100000, 4000)) <= 4003


def test_what_cannot_be_redacted_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mdmem.notes.redact", None)
    assert "hello" not in spool.keepable("hello", 100)


def test_take_and_append_lose_no_record(tmp_path: Path) -> None:
    path, taken = str(tmp_path / "q"), str(tmp_path / "q.taken")
    journal.append(path, {"n": 1})
    assert journal.take(path, taken) == [{"n": 1}]
    journal.append(path, {"n": 2})
    # A taker that died left its records: the next one gets them too.
    assert journal.take(path, taken) == [{"n": 1}, {"n": 2}]
    assert journal.read(taken) == [{"n": 1}, {"n": 2}]
    os.unlink(taken)
    assert journal.take(path, taken) == []


def test_purge_takes_out_the_records_with_a_text_and_no_other(common: str) -> None:
    spool.add(common, "s1", {"k": "prompt", "text": 'why is "the old key" 旧密钥 still there?'}, 1.0)
    spool.add(common, "s1", {"k": "prompt", "text": "something else"}, 2.0)
    spool.add(common, "s2", {"k": "tool", "tool": "Edit", "files": ["memories/old-mem-1.md"], "ok": True}, 3.0)
    assert spool.purge(common, ['"the old key" 旧密钥', "memories/old-mem-1.md", ""]) == 2
    assert [r["text"] for r in spool.records(common, "s1")] == ["something else"]
    assert spool.records(common, "s2") == []
    assert Path(spool.file_of(common, "s1")).stat().st_mode & 0o777 == 0o600
