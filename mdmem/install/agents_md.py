"""The block about mdmem in an AGENTS.md, for agents that have no hooks: put in, renewed, taken out; the rest stays."""

from __future__ import annotations

from pathlib import Path

from mdmem.errors import Refused
from mdmem.install.claude import Installed
from mdmem.install.settings_file import read_settings
from mdmem.install.template import template

BEGIN = "<!-- mdmem:begin (written by `mdmem install agents-md`) -->"
END = "<!-- mdmem:end -->"


def install_agents_md(path: Path, *, dry_run: bool = False) -> Installed:
    """Bring the block in `path` to today's text; the file is made when absent. Raises Refused for a half block."""
    file = read_settings(path)
    newline = "\r\n" if "\r\n" in file.text else "\n"
    block = f"{BEGIN}\n{template('agents.md').strip()}\n{END}\n".replace("\n", newline)
    start, end = _find(file.text, path)
    if start < 0:
        gap = "" if not file.text else newline if file.text.endswith("\n") else newline * 2
        text = file.text + gap + block
    else:
        text = file.text[:start] + block + file.text[end:]
    changed = text != file.text
    written = file.write(text) if changed and not dry_run else False
    return Installed(str(path), changed, written, diff=file.diff(text))


def uninstall_agents_md(path: Path, *, dry_run: bool = False) -> Installed:
    """Take the block out of `path`; a file that held nothing else is removed."""
    file = read_settings(path)
    start, end = _find(file.text, path)
    if start < 0:
        return Installed(str(path), False, False)
    before, after = file.text[:start], file.text[end:]
    if not after:
        for gap in ("\r\n\r\n", "\n\n"):
            if before.endswith(gap):
                before = before[: -len(gap) // 2]
                break
    text = before + after
    if not dry_run:
        if text:
            file.write(text)
        else:
            file.delete()
    return Installed(str(path), True, not dry_run, diff=file.diff(text))


def _find(text: str, path: Path) -> tuple[int, int]:
    """Return where the block starts and ends, (-1, -1) when there is none."""
    start = text.find("<!-- mdmem:begin")
    end = text.find(END)
    if start < 0 and end < 0:
        return -1, -1
    if start < 0 or end < start or text.count("<!-- mdmem:begin") > 1 or text.count(END) > 1:
        raise Refused(f"{path} holds half a block of mdmem", hint="remove the lines with mdmem:begin and mdmem:end")
    stop = end + len(END)
    for newline in ("\r\n", "\n"):
        if text.startswith(newline, stop):
            return start, stop + len(newline)
    return start, stop
