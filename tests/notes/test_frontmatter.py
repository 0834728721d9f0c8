"""One parser: strings as written, bad blocks named, edits that touch only their own lines."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from mdmem.errors import BadNote
from mdmem.notes.frontmatter import edit, parse, render


def fields(block: str) -> dict[str, object]:
    document = parse(f"---\n{block}\n---\nbody\n".encode())
    assert document.problem is None, document.problem
    return dict(document.fields)


def problem(block: str) -> tuple[str, int | None]:
    data = f"---\n{block}\n---\nbody\n".encode()
    found = parse(data)
    assert found.problem is not None, found.fields
    assert found.fields == {} and found.body == data.decode().replace("\0", "\ufffd")
    assert (found.body_line, found.body_at, found.has_block) == (1, 0, False)
    with pytest.raises(BadNote):
        edit(data, {"id": "x"})
    return found.problem.code, found.problem.line


@pytest.mark.parametrize(
    "line",
    ["title: 'don't'", "author: @me", "p: %done", "title: [WIP] x", "title: - x", "title: > x", "title: !important",
     "\ttitle: x", 'path: "C:\\Users"', "a: b: c", "a: x\na: y", "just text", "- a\n- b", "a: &x 1", "a: *x", "a: !!str x"],
)  # fmt: skip
def test_f3_f13_f26_a_bad_block_is_named_with_its_line_and_never_written(line: str) -> None:
    code, at = problem("ok: 1\n" + line)
    assert code == "bad" and at is not None and at >= 3


@pytest.mark.parametrize("char", ["\0", "\x1b", "\u2028", "\u2029", "\x85", "\x7f", "\ufeff"])
def test_f16_hidden_characters_make_a_bad_block(char: str) -> None:
    assert problem(f"ok: 1\ntitle: a{char}b") == ("bad", 3)
    escape = f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"
    assert problem(f'ok: 1\ntitle: "a{escape}b"') == ("bad", 3)


@pytest.mark.parametrize(
    "text",
    ["2026-05-18", "1458", "2024-06-01", "12", "1:30:00", "0123", "1.10", "12:30", "2026-02-30", "no", "yes", "on", "null", "~",
     "1e3", "0x1F", ".inf", "1_000", "true", "2026-05-01 10:00:00", "<<", "="],
)  # fmt: skip
def test_f7_f8_f9_f11_f14_values_are_the_strings_that_were_written(text: str) -> None:
    block = f"d: {text}\nl:\n  - {text}\nmetadata: {{when: {text}}}"
    assert fields(block) == {"d": text, "l": [text], "metadata": {"when": text}}
    data = f"---\n{block}\n---\n".encode()
    assert edit(data, {"new": "x"}) == data.replace(b"}\n---", b"}\nnew: x\n---")
    assert parse(edit(b"---\na: 1\n---\n", {"d": text})).fields["d"] == text


def test_f12_a_cut_off_value_is_warned_about_and_written_values_are_quoted() -> None:
    cut = parse(b"---\nx: 1\ntitle: Fix #12 crash\n---\n")
    assert cut.fields["title"] == "Fix"
    assert [(w.code, w.line) for w in cut.warnings] == [("comment_in_value", 3)]
    assert "quote it" in cut.warnings[0].message
    empty = parse(b"---\ntitle: #12\n---\n")
    assert empty.fields["title"] == "" and empty.warnings[0].line == 2
    for text in ("Fix #12 crash", "#12", "a # b"):
        assert parse(edit(b"---\na: 1\n---\n", {"title": text})).fields["title"] == text
        assert parse(render({"title": text}, "")).fields["title"] == text


def test_f17_bom_and_crlf_survive() -> None:
    data = b"\xef\xbb\xbf---\r\ntitle: a\r\ntags:\r\n  - x\r\n---\r\n\r\nbody\r\n"
    document = parse(data)
    assert document.fields == {"title": "a", "tags": ["x"]} and document.bom and document.newline == "\r\n"
    assert document.body == "body\n" and document.body_line == 7
    assert edit(data, {"title": "b"}) == data.replace(b"title: a", b"title: b")
    assert edit(data, {"tags": ["x", "z"], "new": "1"}) == data.replace(b"- x\r\n", b"- x\r\n  - z\r\nnew: 1\r\n")


def test_f18_no_final_newline() -> None:
    data = b"---\ntitle: a\n---"
    assert (parse(data).fields, parse(data).body) == ({"title": "a"}, "")
    assert edit(data, {"title": "b"}) == b"---\ntitle: b\n---"


def test_f21_a_rule_is_not_frontmatter() -> None:
    data = b"---\n\nPara: one\n\n---\nmore"
    document = parse(data)
    assert document.fields == {} and document.problem is None and document.body == data.decode()
    assert edit(data, {"id": "x"}).endswith(data)


def test_a_block_that_is_never_closed_is_bad() -> None:
    document = parse(b"---\ntitle: a\n")
    assert document.problem is not None and document.problem.code == "bad" and document.problem.line == 1


def test_f24_replacing_the_body_keeps_the_block() -> None:
    data = b"---\n# why\ntitle: 'a'\n---\n\nold\n"
    assert edit(data, {}, body="new\n") == b"---\n# why\ntitle: 'a'\n---\n\nnew\n"


def test_f25_a_nested_key_is_not_the_top_level_one() -> None:
    data = b"---\ntags:\n  - a\nsource:\n  id: other\n---\n"
    assert edit(data, {"id": "mem-1"}) == b"---\ntags:\n  - a\nsource:\n  id: other\nid: mem-1\n---\n"


def test_f4_the_users_block_is_edited_in_place() -> None:
    data = b"---\ntype: litnote\n---\ntext\n"
    assert edit(data, {"status": "open"}) == b"---\ntype: litnote\nstatus: open\n---\ntext\n"


def test_f33_quotes_inside_a_plain_value() -> None:
    assert json.loads(json.dumps(fields('title: quoted "word"'))) == {"title": 'quoted "word"'}


def test_reading_and_naming_load_neither_yaml_nor_openssl() -> None:
    script = (
        "import sys; from mdmem.notes import folder, names, note\n"
        "note.load('a.md', b'---\\ntitle: a\\ntags:\\n  - b\\n---\\nx').tags\n"
        "print([m for m in ('yaml', 'hashlib', 'click', 'frontmatter', 'subprocess') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={"PYTHONPATH": "."}, check=True)
    assert done.stdout == "[]\n"


def test_f36_a_rule_in_the_body_is_body() -> None:
    document = parse(b"---\nstatus: open\n---\na\n\n---\nstatus: done\n")
    assert document.fields == {"status": "open"} and document.body == "a\n\n---\nstatus: done\n"


def test_f37_a_key_under_metadata_is_edited_where_it_stands() -> None:
    data = b"---\nname: a-note\nmetadata:\n  type: user\n  id: mem-1\n  tags:\n    - a\n---\n\nx\n"
    assert edit(data, {"id": "mem-1", "tags": ["a"]}) == data
    assert edit(data, {"tags": ["a", "b"]}) == data.replace(b"    - a\n", b"    - a\n    - b\n")
    assert edit(data, {"type": "decision"}) == data.replace(b"user", b"decision")


def test_f38_bombs_are_refused() -> None:
    bomb = "a: &a [x]\n" + "\n".join(f"k{n}: &k{n} [*a,*a]" for n in range(20))
    assert problem(bomb)[0] == "bad"
    assert problem("a: " + "[" * 200 + "]" * 200)[0] == "bad"
    assert problem("\n".join(f"k{n}: v" for n in range(200_000)))[0] == "bad"


def test_unquoted_wikilinks_are_texts() -> None:
    assert fields("initiative: [[Foo Bar]]\nrelates_to:\n  - [[A, b]]\n  - [[C|d]] # why\nlit: |\n  x: [[no]]") == {
        "initiative": "[[Foo Bar]]", "relates_to": ["[[A, b]]", "[[C|d]]"], "lit": "x: [[no]]\n",
    }  # fmt: skip


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> x", "||||||| base", "<<<<<<<<< HEAD"])
def test_g23_conflict_markers_are_conflicted_not_bad(marker: str) -> None:
    assert problem(f"a: 1\n{marker}\nb: 2") == ("conflicted", 3)


def test_undecodable_bytes_are_still_text() -> None:
    document = parse(b"---\ntitle: a\n---\ncaf\xe9 findme\n")
    assert document.problem is not None and document.problem.code == "not_utf8" and document.problem.line == 4
    assert "findme" in document.body
    with pytest.raises(BadNote):
        edit(b"---\ntitle: a\n---\ncaf\xe9\n", {"title": "b"})
