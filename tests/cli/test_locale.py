"""A locale of another coding than UTF-8: no letter of a name or a text is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parents[2])
OLD = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": ROOT}


def mdmem(top: Path, *words: str, stdin: bytes = b"") -> tuple[int, bytes]:
    command = [sys.executable, "-m", "mdmem", "-C", str(top), *words]
    done = subprocess.run(command, env={**os.environ, **OLD}, capture_output=True, input=stdin, check=False)
    return done.returncode, done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX locale")
def test_words_and_names_are_what_they_are_in_any_locale(tmp_path: Path) -> None:
    top = tmp_path / "store"
    subprocess.run([sys.executable, "-m", "mdmem", "init", str(top)], env={**os.environ, **OLD}, check=True)
    code, out = mdmem(top, "remember", "fact", "日本 lantern, è", "--json")
    saved = json.loads(out)
    assert code == 0 and saved["committed"]
    assert "日本 lantern, è" in next((top / "memories").iterdir()).read_text("utf-8")
    code, out = mdmem(top, "remember", "fact", "-", stdin="港口九点开门".encode())
    assert code == 0
    code, out = mdmem(top, "recall", "港口", "--keyword", "--json")
    assert code == 0 and "港口九点开门" in json.loads(out)["results"][0]["title"]
    code, out = mdmem(top, "recall", "lantern", "--keyword")
    assert code == 0 and b"lantern" in out  # in the terminal's coding, with marks for what it lacks
    assert subprocess.run(["git", "-C", str(top), "status", "--porcelain"], capture_output=True, check=True).stdout == b""
