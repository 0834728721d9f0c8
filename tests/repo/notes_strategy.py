"""Hypothesis strategies for notes as people and programs write them, and for three versions of one note."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

WORDS = ("alpha", "beta", "gamma", "delta", "port 8080", "uses tabs", "never", "- item", "- other", "# Head", "text: x", "```")
PLAIN = ("title", "priority", "x-custom", "note", "scope", "status")
KEYS = (*PLAIN, "tags", "aliases", "relates_to", "facts", "created", "updated")
TIMES = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01", "soon")

lines = st.one_of(st.just(""), st.sampled_from(WORDS), st.integers(0, 40).map(lambda n: f"w{n}x v{n}y"))
bodies = st.lists(lines, max_size=10)
scalars = st.sampled_from(("a", "b", "'quoted'", '"#12"', "1.10", "no", "x # why", "|\n  two\n  lines", "{k: v}", "[p, q]", ""))
sets = st.lists(st.sampled_from(("a", "b", "c", "d", "'e f'")), max_size=4, unique=True)


@st.composite
def field(draw: Any, key: str) -> str:
    """The lines of one key."""
    if key in ("created", "updated"):
        return f"{key}: {draw(st.sampled_from(TIMES))}\n"
    if key in ("tags", "aliases", "relates_to"):
        items = draw(sets)
        assert isinstance(items, list)
        if draw(st.booleans()):
            return f"{key}: [{', '.join(items)}]\n"
        return f"{key}:\n" + "".join(f"  - {item}\n" for item in items)
    if key == "facts":
        names = draw(st.lists(st.sampled_from(("one", "two", "three")), max_size=3, unique=True))
        assert isinstance(names, list)
        return "facts:\n" + "".join(f"  {name}: {draw(st.sampled_from(('v', 'w')))}\n" for name in names)
    comment = "# about this\n" if draw(st.integers(0, 4)) == 0 else ""
    value = draw(scalars)
    return f"{comment}{key}: {value}\n"


@st.composite
def notes(draw: Any) -> bytes:
    """A whole note."""
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=5, unique=True))
    body = draw(bodies)
    assert isinstance(keys, list) and isinstance(body, list)
    head = f"id: {draw(st.sampled_from(('mem-a', 'mem-b')))}\n" if draw(st.booleans()) else ""
    head += "".join(str(draw(field(key))) for key in keys)
    block = f"---\n{head}---\n\n" if head else ""
    text = block + "".join(line + "\n" for line in body)
    return dress(draw, text)


def dress(draw: Any, text: str) -> bytes:
    """Give a text its bytes: now and then a byte order mark, CRLF, no line end at the end."""
    data = text.encode()
    form = draw(st.integers(0, 9))
    if form == 0:
        data = b"\xef\xbb\xbf" + data
    elif form == 1:
        data = data.replace(b"\n", b"\r\n")
    elif form == 2:
        data = data.rstrip(b"\n")
    return data


@st.composite
def edited(draw: Any, base: bytes) -> bytes:
    """A note after a few edits of its lines: some removed, some added, some changed."""
    parts = base.decode("utf-8", "replace").split("\n")
    for _ in range(int(str(draw(st.integers(0, 3))))):
        at = int(str(draw(st.integers(0, len(parts)))))
        what = draw(st.integers(0, 3))
        inside = "---" in parts[1:] and at <= parts.index("---", 1)
        if what == 0 and at < len(parts) and parts[at] != "---":
            del parts[at]
        elif inside:
            key = str(draw(st.sampled_from(KEYS)))
            parts[max(at, 1) : max(at, 1)] = str(draw(field(key))).rstrip("\n").split("\n")
        else:
            parts.insert(at, str(draw(lines)))
    return "\n".join(parts).encode()


@st.composite
def versions(draw: Any) -> tuple[bytes | None, bytes, bytes]:
    """Base, ours, theirs: related, unrelated, or without a base."""
    base = draw(notes())
    assert isinstance(base, bytes)
    how = draw(st.integers(0, 3))
    if how == 0:
        sides = draw(st.tuples(notes(), notes()))
    else:
        sides = draw(st.tuples(edited(base), edited(base)))
    assert isinstance(sides, tuple)
    return (None if how == 1 else base), sides[0], sides[1]
