"""Records a terminal session: runs the commands below in a terminal of their own and writes what they print.

    python tools/make_demo.py           docs/demo/session.cast (asciinema 2, with the times that it took) and session.svg
    python tools/make_demo.py --check   exit 1 when a command no longer prints what is recorded

The session runs in a folder of its own as HOME, so nothing of yours is read or written.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
CAST, SVG = ROOT / "docs/demo/session.cast", ROOT / "docs/demo/session.svg"
WIDE, HIGH = 100, 40
TYPING, PAUSE = 0.03, 1.2  # seconds a letter of a command, and between two commands

COMMANDS = (
    "mdmem init memory && cd memory",
    'mdmem remember decision "We stay with PostgreSQL 16 until the next LTS" --tags database',
    'mdmem recall "which database do we use"',
    "mdmem recall 我们用哪个数据库",
    "cat memories/*.md",
    "git log --format='%s'",
)


def environment(home: Path) -> dict[str, str]:
    """Return the environment of the session."""
    tools = home / ".bin"
    tools.mkdir()
    program = tools / "mdmem"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mdmem "$@"\n')
    program.chmod(0o755)
    (home / ".gitconfig").write_text("[user]\n\tname = Me\n\temail = me@example.org\n[init]\n\tdefaultBranch = main\n")
    return {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLUMNS": str(WIDE),
        "NO_COLOR": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PAGER": "cat",
        "MDMEM_SERVE": "off",
        "MDMEM_AGENT": "me",
        "MDMEM_DEVICE": "laptop",
        "MDMEM_NOW": "2026-11-30T09:00:00Z",
    }


def record() -> list[tuple[float, str]]:
    """Run the commands, one shell for all; returns (seconds since the start, text) of each piece of output."""
    events: list[tuple[float, str]] = []
    now = 0.5
    with tempfile.TemporaryDirectory() as folder:
        home = Path(os.path.realpath(folder))
        env, where = environment(home), home
        for command in COMMANDS:
            typed = f"$ {command}"
            events += [(now + TYPING * place, letter) for place, letter in enumerate(typed)]
            now += TYPING * len(typed) + 0.3
            events.append((now, "\r\n"))
            begin = time.perf_counter()
            text, where = run(f"{command}; pwd > '{home}/.where'", env, where, home)
            now += time.perf_counter() - begin
            events.append((now, text))
            now += PAUSE
    return [(round(moment, 3), text) for moment, text in events]


def run(command: str, env: dict[str, str], where: Path, home: Path) -> tuple[str, Path]:
    """Run one command line in a terminal; returns what it printed and the folder that the shell is in then."""
    above, below = pty.openpty()
    process = subprocess.Popen(["bash", "-c", command], cwd=where, env=env, stdin=below, stdout=below, stderr=below)
    os.close(below)
    out = b""
    while True:
        try:
            piece = os.read(above, 65536)
        except OSError:  # Linux says so when the last writer is gone
            piece = b""
        if not piece:
            break
        out += piece
    os.close(above)
    if process.wait():
        raise SystemExit(f"{command}: exit code {process.returncode}\n{out.decode()}")
    return out.decode("utf-8"), Path((home / ".where").read_text().strip())


def cast(events: list[tuple[float, str]]) -> str:
    """Return the session as an asciinema file, version 2."""
    head = {"version": 2, "width": WIDE, "height": HIGH, "title": "mdmem in one screen", "env": {"TERM": "xterm-256color"}}
    lines = [json.dumps(head), *(json.dumps([moment, "o", text], ensure_ascii=False) for moment, text in events)]
    return "\n".join(lines) + "\n"


def shown(events: list[tuple[float, str]]) -> list[str]:
    """Return the lines that stand on the screen in the end; long ones are broken at its width."""
    out = []
    for line in "".join(text for _, text in events).replace("\r", "").rstrip("\n").split("\n"):
        part, width = "", 0
        for letter in line:
            cells = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
            if width + cells > WIDE:
                out.append(part)
                part, width = "", 0
            part, width = part + letter, width + cells
        out.append(part)
    return out


def svg(lines: list[str]) -> str:
    """Return the screen as a picture."""
    step, left, top = 18, 16, 44
    wide, high = left * 2 + round(WIDE * 8.05), top + step * len(lines) + 8
    font = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img">',
        "<title>mdmem: a decision is kept, found again in English and in Chinese, and is a file under git</title>",
        f'<rect width="{wide}" height="{high}" rx="8" fill="#14201c"/>',
        *(f'<circle cx="{20 + 18 * n}" cy="18" r="5" fill="{c}"/>' for n, c in enumerate(("#e2726e", "#e0b354", "#6bbf73"))),
        f'<g font-family="{font}" font-size="13.3" fill="#d5ded9">',
    ]
    for number, line in enumerate(lines):
        strong = ' fill="#8be0c0" font-weight="600"' if line.startswith("$ ") else ""
        text = escape(line).replace(" ", "\u00a0")  # a plain space at the start of a line would be dropped
        parts.append(f'<text x="{left}" y="{top + step * number}"{strong}>{text}</text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


def main() -> int:
    """Record, or compare with what is recorded; returns the exit code."""
    events = record()
    text = "".join(piece for _, piece in events)
    if "--check" in sys.argv:
        lines = CAST.read_text("utf-8").splitlines() if CAST.is_file() else []
        said = "".join(json.loads(line)[2] for line in lines[1:])
        good = said == text and SVG.read_text("utf-8") == svg(shown(events))
        if not good:
            print("the recorded session is not what the program prints: python tools/make_demo.py")
        return 0 if good else 1
    CAST.parent.mkdir(parents=True, exist_ok=True)
    CAST.write_text(cast(events), "utf-8")
    SVG.write_text(svg(shown(events)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
