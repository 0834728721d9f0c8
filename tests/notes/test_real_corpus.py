"""The check over files that other people wrote: what it notices, and (long form) thousands of them out of packages."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("real_corpus", ROOT / "tools" / "real_corpus.py")
assert _spec is not None and _spec.loader is not None
script = importlib.util.module_from_spec(_spec)
sys.modules["real_corpus"] = script
_spec.loader.exec_module(script)

# Forms that were met in packages: description over several lines, tools as a flow list, quotes, CRLF, no final newline, a BOM.
MET = (
    b"---\nname: review\ndescription: |\n  Use when: asked.\n  Two lines.\ntools: [Read, Grep]\nmodel: sonnet\n---\nbody\n",
    b"---\r\ntitle: 'it''s'\r\ntags:\r\n  - a\r\n---\r\nbody\r\n",
    b"\xef\xbb\xbf---\ntitle: a # comment\nsidebar_position: 2\n---\nbody",
    b"---\ntitle: >-\n  folded\n  text\nnested:\n  title: inner\n---\n",
)


@pytest.mark.parametrize("data", MET)
def test_real_forms_are_left_as_they_are(data: bytes) -> None:
    counts = script.Counts()
    script.check("a.md", data, counts)
    assert (counts.good, counts.wrong) == (1, []) and counts.edits >= 2


def test_a_bad_block_is_counted_and_not_written_to() -> None:
    counts = script.Counts()
    script.check("a.md", b"---\ndescription: Use this: always\n---\nbody\n", counts)
    assert (counts.bad, counts.good, counts.wrong) == (1, 0, [])


def test_an_editor_that_touches_another_line_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.notes import frontmatter

    real = frontmatter.edit
    monkeypatch.setattr(frontmatter, "edit", lambda data, changes: real(data, changes).replace(b"b: 2", b"b:  2"))
    counts = script.Counts()
    script.check("a.md", b"---\na: one\nb: 2\n---\nbody\n", counts)
    assert counts.wrong


def test_an_archive_cannot_write_outside(tmp_path: Path) -> None:
    for name in ("../a.md", "/a.md", "x/../../a.md", "good/a.md", "good/a.txt"):
        script.keep(tmp_path / "place", name, lambda: b"x")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")] == ["place/good/a.md"]


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_three_thousand_real_files_keep_their_bytes(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not here to fetch packages with")
    command = [sys.executable, str(ROOT / "tools/real_corpus.py"), str(tmp_path / "corpus")]
    done = subprocess.run(command, capture_output=True, text=True)
    if "CalledProcessError" in done.stderr:
        pytest.skip(f"the packages could not be fetched: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stdout[-3000:]
