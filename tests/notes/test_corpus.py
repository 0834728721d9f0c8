"""Blocks as real programs and people write them: each is kept byte for byte, edited in place, or refused."""

from __future__ import annotations

import pytest

from mdmem.errors import BadNote
from mdmem.notes.fences import split
from mdmem.notes.frontmatter import edit, parse, reform
from mdmem.notes.note import load

BLOCKS = {
    "jekyll": 'layout: post\ntitle:  "Welcome to Jekyll!"\ndate:   2026-05-18 10:00:00 +0200\ncategories: jekyll update\n',
    "hugo": "title: My post\ndate: 2026-05-18T10:00:00+02:00\ndraft: false\nweight: 10\nmenu:\n    main:\n        name: Post\n",
    "obsidian": "aliases:\n  - Other name\ntags:\n  - area/work\n  - '#type'\nup: \"[[MOC]]\"\n"
    "cssclasses: []\nrating: 5\nrelated:\n",
    "obsidian links": "project: [[My Project]]\npeople:\n  - [[Anna]]\n  - [[Bob|B.]]\nday: [[2026-05-18]]\n",
    "old obsidian": "tags: [[x]]\naliases: [a, b,]\ncreated: 2026-05-18\n",
    "zettelkasten": "id: 202605181000\ntitle: Zettel\nkeywords: [a, b c, 'd, e']\n",
    "dendron": "id: 8K2q\ntitle: Root\ndesc: ''\nupdated: 1652860800000\ncreated: 1652860800000\nnav_order: 0\n",
    "claude memory": "name: use-tabs\ndescription: Use tabs\nmetadata:\n"
    "  node_type: memory\n  type: feedback\n  modified: 2026-05-18T10:00:00.000Z\n",
    "claude skill": "name: recall\ndescription: >-\n  Finds memories.\n  Use when asked.\nallowed-tools: Bash(mdmem *), Read\n",
    "basic-memory": "title: Search\ntype: note\npermalink: specs/search\ntags:\n- search\n- 'v1.2'\n",
    "docusaurus": "id: doc-1\nsidebar_label: 'It''s here'\nslug: /\ncustom_edit_url: null\npagination_next: null\n",
    "astro": 'title: "A \\"quoted\\" title"\npubDate: "May 18 2026"\nheroImage: ../../assets/a.jpg\n',
    "issue template": "name: Bug report\nabout: ''\ntitle: '[BUG] '\nlabels: bug, triage\nassignees: ''\n\n",
    "pandoc": "title: A\nauthor:\n- name: Anna\n  affil: [1, 2]\n- name: Bob\nabstract: |\n"
    "  First.\n\n  Second: with colon.\nheader-includes: |\n  \\usepackage{x}\n",
    "prettier": "tags: [\n  alpha,\n  beta,\n]\ntitle: x\n",
    "comments": "# top\ntitle: a # why\n\n# before tags\ntags: # set\n  # first\n  - a # one\n\n  # second\n  - b\n# end\n",
    "tabs after colon": "title:\ta\nx: 1\n",
    "indented": "  title: a\n  tags:\n    - b\n",
    "zero indent list": "tags:\n- a\n- b\ntitle: x\n",
    "json": '{"title": "a", "tags": ["x", "y"], "n": {"k": 1}}\n',
    "json lines": '{\n  "title": "a",\n  "tags": ["x"]\n}\n',
    "multi-line": "title: a long\n  title over\n  lines\nq: 'one\n\n  two'\ndq: \"a\\\n  b\"\nx: 1\n",
    "keep": "text: |+\n  a\n\n\nx: 1\n",
    "folded": "text: >-\n    a\n    b\n\n    c\nx: 1\n",
    "indicator": "text: |2\n    two more\nx: 1\n",
    "explicit": "? title\n: a\nx: 1\n",
    "keys": "\"quoted\": 1\n'single': 2\n键: 3\nwith space: 4\na.b: 5\n1: 6\ntrue: 7\n",
    "emoji": "title: 🎉 done\nsource: 👾Poly_v3.2_♊\n",
    "empty values": "a:\nb: ''\nc: \"\"\nd: ~\ne: null\nf:   # c\n",
    "urls": "url: https://example.org/a?b=c#d\npath: C:\\Users\\me\nwin: 'C:\\Users'\n",
    "times": "a: 1:30:00\nb: 12:30\nc: 0123\nd: 1.10\ne: 2026-02-30\nf: no\ng: 0o14\nh: 1e3\ni: .inf\n",
    "nested": "a:\n  b:\n    c:\n      - d\n      - e:\n          f: g\nz: 1\n",
    "lists of lists": "m:\n  - [1, 2]\n  - - 3\n    - 4\nx: 1\n",
    "long": "title: " + "word " * 400 + "\nx: 1\n",
    "trailing blanks": "title: a   \ntags:   \n  - b  \n\n\n",
}
ENDS = {"\n": "lf", "\r\n": "crlf"}


@pytest.mark.parametrize("end", ENDS, ids=ENDS.get)
@pytest.mark.parametrize("name", BLOCKS)
def test_f3_f4_f11_each_block_is_kept_and_edited_in_place(name: str, end: str) -> None:
    bom = b"\xef\xbb\xbf" if end == "\r\n" else b""
    for tail in ("---\n\nbody\n", "---", "...\nbody"):
        data = bom + ("---\n" + BLOCKS[name] + tail).replace("\n", end).encode()
        document = parse(data)
        assert document.problem is None, document.problem
        assert edit(data, {}) == data == edit(data, document.fields)
        grown = edit(data, {"added": "Fix #12: x", "more": ["a", "b"]})
        assert parse(grown).fields == {**document.fields, "added": "Fix #12: x", "more": ["a", "b"]}
        if not BLOCKS[name].startswith("{"):
            close = split(data).close_at
            assert grown.startswith(data[:close]) and grown.endswith(data[close:])
            assert edit(grown, {"added": None, "more": None}) == data
        for key, value in document.fields.items():
            changed = edit(data, {key: "other"})
            assert parse(changed).fields == {**document.fields, key: "other"}
            assert parse(edit(changed, {key: value})).fields == document.fields
            rest = {other: kept for other, kept in document.fields.items() if other != key}
            assert parse(edit(data, {key: None})).fields == rest
        assert parse(reform(data)).body == document.body
        assert load("memories/x.md", data).effective()


@pytest.mark.parametrize(
    "block",
    [
        "title: 'don't'\n",
        "a: [b\n",
        "- list\n",
        "text\n",
        "a: *x\n",
        "a: b: c\n",
        "a: 1\na: 2\n",
        "  a: 1\n b: 2\n",
        "a: |\nb\n",
        "\ta: b\n",
        "{{title}}: x\n",
        "a: {{x}}\n",
        "a: `b`\n",
        "a: b\n--- c\n",
        "%YAML 1.2\n",
    ],
)
def test_f13_bad_blocks_are_refused_and_left(block: str) -> None:
    data = f"---\n{block}---\nbody\n".encode()
    document = parse(data)
    assert document.problem is not None and document.body == data.decode()
    for act in (lambda: edit(data, {"a": "b"}), lambda: edit(data, {}, body="x"), lambda: reform(data)):
        with pytest.raises(BadNote):
            act()
