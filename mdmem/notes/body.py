"""Another body under a block that stays: line ends are those of the file."""

from __future__ import annotations

from mdmem.notes.frontmatter import encode, parse


def replace_body(data: bytes, body: str) -> bytes:
    """Return data with another body; a CRLF file gets CRLF, lines at both ends that stay keep their bytes."""
    now = parse(data)
    if now.body == body:
        return data
    head, raw = data[: now.body_at], data[now.body_at :]
    if now.has_block and body:
        end = now.newline.encode()
        if not head.endswith(b"\n"):
            head += end
        if not now.separated and body.startswith("\n"):
            head += end
    old = raw.decode("utf-8").splitlines(keepends=True) if "\r\n" in now.newline or b"\r\n" in raw else []
    new = body.split("\n")
    lines = [line + "\n" for line in new[:-1]] + ([new[-1]] if new[-1] else [])
    if not old:
        return head + encode("".join(lines))
    return head + encode("".join(_line_ends(old, lines, now.newline)))


def _line_ends(old: list[str], new: list[str], newline: str) -> list[str]:
    plain = [line.replace("\r\n", "\n") for line in old]
    first = 0
    while first < min(len(plain), len(new)) and plain[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(plain), len(new)) - first and plain[-1 - last] == new[-1 - last]:
        last += 1
    middle = [line.replace("\n", newline) for line in new[first : len(new) - last]]
    return old[:first] + middle + (old[len(old) - last :] if last else [])
