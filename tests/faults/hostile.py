"""What the tests of hostile repositories share: the trap, what a terminal would obey, and the frame of injected text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.repo.conftest import plain_git

ESC, CSI, OSC = "\x1b[31;1mred\x1b[0m", "\x9b31m", "\x1b]0;owned\x07"
BIDI = "\u202egpj.exe\u202c\u2066x\u2069\u200f"
# What a terminal would obey: control characters but tab and newline, C1, and what turns the direction of text around.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
@dataclass
class Trap:
    """What must not happen: `sentinel` made, or anything in `outside` changed or quoted."""

    folder: Path

    @property
    def sentinel(self) -> Path:
        return self.folder / "PWNED"

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    @property
    def command(self) -> str:
        return f"touch '{self.sentinel}'"

    def arm(self) -> None:
        self.outside.mkdir()
        (self.outside / "secret.md").write_text("---\nid: mem-outside\ntitle: OUTSIDEWORD\n---\nOUTSIDEWORD of the user\n")
        (self.outside / "deep").mkdir()
        (self.outside / "deep" / "more.md").write_text("OUTSIDEWORD again\n")
        self.was = self.look()

    def look(self) -> dict[str, tuple[int, bytes]]:
        return {
            str(path): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in sorted(self.outside.rglob("*"))
        }

    def unsprung(self, *texts: str) -> None:
        assert not self.sentinel.exists(), "something of the repository was run"
        assert self.look() == self.was
        for text in texts:
            assert "OUTSIDEWORD" not in text


def state_of(top: Path) -> tuple[str, str, dict[str, bytes]]:
    """Return head, refs and every byte of the work tree."""
    files = {
        str(p.relative_to(top)): p.read_bytes()
        for p in sorted(top.rglob("*"))
        if p.is_file() and not p.is_symlink() and ".git" not in p.parts
    }
    return plain_git(top, "rev-parse", "HEAD"), plain_git(top, "for-each-ref"), files


def quoted(context: str) -> None:
    """Everything that a note says stands in its quotation; there is one frame and nothing after it."""
    if not context:
        return
    assert context.count("</mdmem-context>") == 1 and context.rstrip().endswith("</mdmem-context>")
    assert OBEYED.search(context) is None
    assert "<system-reminder" not in context and "<|im_start" not in context
    for line in context.splitlines():
        if any(word in line for word in ("Ignore all previous", "rm -rf", "do as told", "You are root")):
            assert line.startswith("  > "), line


