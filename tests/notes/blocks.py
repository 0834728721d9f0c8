"""Blocks and values as people and tools write them, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from mdmem.notes.values import FORBIDDEN

KEYS = st.sampled_from(
    ["title", "tags", "status", "id", "created", "facts", "metadata", "a", "b-c", "d_e", "n", "null", "on", "键", "with space"]
)
TRICKY = st.sampled_from(
    [
        "",
        " ",
        "a",
        "no",
        "null",
        "~",
        "0123",
        "1.10",
        "1:30:00",
        "12:30",
        "2026-02-30",
        "2026-11-30T09:53:00Z",
        "#12",
        "Fix #12",
        "a: b",
        "a:",
        "a:b",
        "- x",
        "-x",
        "-",
        "[WIP] x",
        "[[Foo]]",
        "[[A, b]] c",
        "{x",
        "}",
        "> x",
        "|",
        "!important",
        "&a",
        "*b",
        "@me",
        "%done",
        "`x`",
        "?x",
        "? x",
        "'q'",
        '"q"',
        "don't",
        'say "hi"',
        "C:\\Users",
        "a\nb",
        "a\n\nb\n",
        "\n",
        " lead",
        "trail ",
        "a\n b\nc",
        "a\n  \nb",
        "tab\there",
        "日本語",
        "é",
        "👍🏽",
        "---",
        "--- x",
        "...",
        "=",
        "<<",
        "<<<<<<< x",
        "a #b: c",
        ", ",
        "x,",
        "1e3",
        "0x1F",
        ".5",
        "+1",
        "1_000",
        "true",
        "True",
        "yes",
        "y",
        "\u00a0x",
        "a\r\nb",
        "#",
        "a\n# b",
        "=======",
        "x" * 300,
    ]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(lambda text: not FORBIDDEN.search(text))
SCALARS = st.one_of(TRICKY, TEXT)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.one_of(KEYS, TRICKY, TEXT), inner, max_size=4)),
    max_leaves=8,
)
FIELDS = st.dictionaries(st.one_of(KEYS, TEXT), VALUES, max_size=6)

# Lines that are often, but not always, valid together.
LINES = st.one_of(
    st.sampled_from(
        [
            "title: a",
            "title: Fix #12 crash",
            "title: 'it''s'",
            'title: "q"',
            "title: 'don't'",
            "tags: [a, b]",
            "tags:",
            "- x",
            "  - x",
            "  - y # why",
            "    - z",
            "tags: []",
            "# comment",
            "  # comment",
            "",
            "  ",
            "metadata:",
            "  type: user",
            "  type:",
            "  deep:",
            "    x: 1",
            "facts: {a: b, c: 'd'}",
            "lit: |",
            "lit: |-",
            "fold: >",
            "  text: here",
            "  [[x]]",
            "initiative: [[Foo]]",
            "  - [[Bar]]",
            "  continued",
            "status: open ",
            "status:  open",
            "a: b: c",
            "a: -",
            "k: v\t",
            "\tk: v",
            "k:\tv",
            "a: x#y",
            'a: "x"#y',
            "a: [",
            "  b",
            "]",
            "a: [x,",
            "? k",
            ": v",
            "a: &x y",
            "a: *x",
            "a: !t y",
            "a: @x",
            "é: ü",
            "x: 日本 語",
            "x: a:",
            "x: a :b",
            "'quoted key': v",
            '"k": v',
            "x: \u00a0v",
            "x: v\u00a0",
            "x: \u200bv",
            "-",
            "- - a",
            "- a: 1",
            "  b: 2",
            "x: {a}",
        ]
    ),
    st.builds("{}{}: {}".format, st.sampled_from(["", "  "]), KEYS, SCALARS),
    st.builds("{}- {}".format, st.sampled_from(["", "  ", "    "]), SCALARS),
    TEXT,
)
BLOCKS = st.builds(
    lambda lines, end: "".join(line + end for line in lines), st.lists(LINES, max_size=9), st.sampled_from(["\n", "\r\n"])
)
VALID_LINES = st.sampled_from(
    [
        "title: a # why",
        "k0: 'it''s'",
        'k1: "q"',
        "tags: [a, 'b', \"c\"]",
        "l1:\n  - x\n  # between\n  - y # why\n  - 'z'",
        "l2:\n- p\n- q",
        "# comment",
        "",
        "metadata:\n  type: user\n  id: mem-1\n  sub:\n    k: v",
        "facts: {a: b, c: 'd'}",
        "lit: |\n  one\n\n  two\n",
        "lit2: |-  # why\n    deep\n      er",
        "fold: >\n  a\n  b",
        "initiative: [[Foo]]",
        "edges:\n  - [[Bar]]\n  - [[Baz | x]] # c",
        "multi: a\n  b\n  c",
        'mq: "a\n  b"',
        "fl: [a,\n  b, # c\n  c]",
        "empty:",
        "empty2:   # c",
        "fm: {a: [1, 2], b: {c: d}}",
        "none: []",
        "nomap: {}",
        "maps:\n  - a: 1\n    b: 2\n  - c",
        "键: 值",
        "dash:\n  -\n    x\n  - y",
        "? long\n: v",
        "last:\n  deep:\n    - a\n    - b",
    ]
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A valid file with its own manners: BOM, CRLF, comments, quotes, no final newline."""
    parts = draw(st.lists(VALID_LINES, max_size=7, unique=True))
    if not parts or not parts[0].strip():
        parts.insert(0, "# top")
    end = draw(st.sampled_from(["\n", "\r\n"]))
    fence = draw(st.sampled_from(["---", "---  ", "..."]))
    body = draw(st.sampled_from(["", "\nbody", "\n\n\nbody\n", "\nbody\n---\nx: y\n", "\n"]))
    text = "---\n" + "\n".join(parts) + "\n" + fence + body
    return (b"\xef\xbb\xbf" if draw(st.booleans()) else b"") + text.replace("\n", end).encode()
