"""Text on stdin is taken as it is or refused, never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from mdmem.cli.main import group


@pytest.mark.parametrize(
    ("data", "code"),
    [("Grüße aus Köln".encode("latin-1"), 2), ("Grüße aus Köln".encode("utf-16"), 0), ("\ufeffGrüße".encode(), 0)],
)
def test_remember_refuses_bytes_that_it_would_have_to_replace(tmp_path: Path, data: bytes, code: int) -> None:
    runner = CliRunner()
    assert runner.invoke(group, ["init", str(tmp_path / "s")]).exit_code == 0
    done = runner.invoke(group, ["-C", str(tmp_path / "s"), "remember", "fact", "-"], input=data)
    assert bool(done.exit_code) == bool(code), done.output
    texts = [path.read_text("utf-8") for path in (tmp_path / "s" / "memories").glob("*.md")]
    assert len(texts) == (0 if code else 1)
    assert all("Grüße" in text and "\ufffd" not in text and "\ufeff" not in text for text in texts)
