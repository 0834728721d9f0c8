"""The tutorials, run as they are written: each `console` block is typed, and what it prints must stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_shell_sessions import run_session

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
PAGES = [*sorted(FOLDER.glob("*.md")), FOLDER.parent / "graph-and-teamwork.md"]


def session_of(page: str) -> str:
    """Return a page's console blocks as a shell session of the runner: two blanks before each line, and `-…` in what is
    printed (the part of an id that differs each time) stands for any characters."""
    out: list[str] = ['  $ cd "$HOME"']
    inside = False
    for line in page.splitlines():
        if line.startswith("```"):
            inside = line == "```console"
            out.append("")
        elif inside:
            varies = "-…" in line and not line.startswith(("$ ", "> "))
            out.append(f"  {line.replace('-…', '-*')} (glob)" if varies else f"  {line}")
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_tutorial_runs_as_written(page: Path, tmp_path: Path) -> None:
    session = tmp_path / f"{page.stem}.t"
    session.write_text(session_of(page.read_text("utf-8")), "utf-8")
    run_session(session, tmp_path)


def test_there_are_tutorials() -> None:
    assert {page.stem for page in PAGES} >= {"first-memory", "two-machines", "claude-code"}
