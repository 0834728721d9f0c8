"""A note of another agent's scope that an editor saved by half: its block cannot be read, and its words are still not shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdmem.cli.main import run
from mdmem.config import user_file
from tests.hooks.host import payload, run_hook

HALVES = (
    b"---\nid: mem-zqhidden\ntitle: zqhidden: plan\nscope: user:ann\n---\nzqhidden harbor\n",
    b"---\ntitle: zqhidden\nscope: user:ann\nzqhidden harbor\n",
    b"---\ntitle: zqhidden harbor\n",
    b"---\ntitle: zqhidden\nscope: [user:ann]\n---\nzqhidden harbor\n",
)


@pytest.mark.parametrize("data", HALVES)
def test_a_half_saved_private_note_is_shown_to_nobody_else(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    top = tmp_path / "store"
    assert run(["init", str(top)]) == 0
    assert run(["-C", str(top), "remember", "fact", "The harbor opens at nine."]) == 0
    (top / "memories" / "half.md").write_bytes(data)
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text('[agents."*"]\nscopes = ["shared", "agent:*"]\n')
    monkeypatch.setenv("MDMEM_AGENT", "bot")
    for words in (
        ("recall", "harbor", "--keyword", "--json"),
        ("list", "--json"),
        ("show", "memories/half.md"),
        ("query", "select * from notes"),
        ("query", "select * from passages"),
        ("export", "--format", "jsonl"),
        ("graph", "health", "--json"),
        ("handoff", "--json"),
    ):
        capsys.readouterr()
        run(["-C", str(top), *words])
        told = capsys.readouterr()
        assert "zqhidden" not in told.out + told.err, words
    for event in ("SessionStart", "UserPromptSubmit"):
        done = run_hook(event, {**payload(event, top), "prompt": "when does the zqhidden harbor open?"}, cwd=top)
        assert done.code == 0 and b"zqhidden" not in done.out
    monkeypatch.setenv("MDMEM_AGENT", "bot")
    user_file().unlink()
    capsys.readouterr()
    assert run(["-C", str(top), "recall", "zqhidden", "--keyword", "--json"]) == 0
    assert "zqhidden" in capsys.readouterr().out  # who reads everything still finds it
