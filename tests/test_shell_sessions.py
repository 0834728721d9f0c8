"""Shell sessions in tests/transcripts/, run as written: what a user types and what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SESSIONS = sorted((HERE / "transcripts").glob("*.t"))


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_transcript(session: Path, tmp_path: Path) -> None:
    run_session(session, tmp_path)


def run_session(session: Path, tmp_path: Path) -> None:
    """Run a shell session file; what each command prints must be what stands below it."""
    tools = tmp_path / "bin"
    tools.mkdir()
    program = tools / "mdmem"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mdmem "$@"\n')
    program.chmod(0o755)
    env = dict(
        os.environ,
        PATH=f"{tools}{os.pathsep}{os.environ['PATH']}",
        PYTHONPATH=str(HERE.parent),
        MDMEM_DEVICE="laptop",
        MDMEM_AGENT="tester",
        MDMEM_NOW="2026-11-30T09:00:00Z",
        NO_COLOR="1",
        COLUMNS="100",
    )
    done = subprocess.run(
        [sys.executable, "-m", "prysk", "--preserve-env", str(session)],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
