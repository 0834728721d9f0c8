"""One parser: strings as written, bad blocks named, edits that touch only their own lines."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from mdmem.errors import BadNote
from mdmem.notes.body import replace_body
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


@pytest.mark.parametrize(
    ("line", "said", "at"),
    [
        ('k: "C:\\sources"', "use single quotes", 3),
        ('k: "a"#b', "a blank is missing before #", 3),
        ("k: [a]#b", "a blank is missing before #", 3),
        ("k: 'a\n\n  b'#c", "a blank is missing before #", 5),
        ("? [a]\n: b", "a key must be a word", 3),
        ("x: [[a]]\ny: {k: p\n  - [[b]]\n  }", "quote it", 5),
    ],
)
def test_a_bad_block_says_what_is_wrong_in_words_of_a_person_and_in_which_line(line: str, said: str, at: int) -> None:
    found = parse(f"---\nok: 1\n{line}\n---\n".encode()).problem
    assert found is not None and said in found.message and found.line == at


def test_a_second_document_in_a_block_is_refused() -> None:
    found = parse(b"---\n--- a: 1\n---\n").problem
    assert found is not None and found.message == "a second document starts here" and found.line == 2


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        # A key that stands at the top and under metadata: both go, or the note would still have it.
        ("title: a\nmetadata:\n  title: b\n  x: 1", {"title": None}, "metadata:\n  x: 1"),
        # The last key under metadata goes: what is left is still a map, and a comment behind it stays.
        ("metadata: # mine\n  x: 1\nz: 2", {"x": None}, "metadata: {} # mine\nz: 2"),
        ("metadata: {x: 1}\nz: 2", {"x": None}, "metadata: {}\nz: 2"),
        # A map is edited key by key.
        ("facts:\n  a: 1 # old\n  b: 2\nz: 1", {"facts": {"a": "9", "c": "3"}}, "facts:\n  a: 9 # old\n  c: 3\nz: 1"),
        ("facts: {a: 1, b: 2}", {"facts": {"a": "9", "c": "3"}}, "facts: {a: 9, c: 3}"),
        # A list whose first dash stands behind a colon has no lines of its own: it is written anew.
        ("? rel\n: - a\n  - b\nz: 1", {"rel": ["d", "b"]}, "? rel\n:\n    - d\n    - b\nz: 1"),
        # A list in a list keeps its blank, or `[[` would make a link of it.
        ("rel: [b, c]", {"rel": [["a"], "c"]}, "rel: [ [a], c]"),
        # A value of many lines becomes another one; what a person remarked behind it stays.
        ("rel: {a: 1,\n  b: 2} # mine\nz: 1", {"rel": ["x", "z"]}, "rel: # mine\n  - x\n  - z\nz: 1"),
        ("rel: | # mine\n  a\n  b\nz: 1", {"rel": "x"}, "rel: x # mine\nz: 1"),
    ],
)
def test_an_edit_changes_its_own_lines_in_any_form_of_block(before: str, changes: dict[str, object], after: str) -> None:
    written = edit(f"---\n{before}\n---\nbody\n".encode(), changes)  # type: ignore[arg-type]
    assert written.decode() == f"---\n{after}\n---\nbody\n"


def test_a_block_that_comes_late_is_named_and_gets_no_second_one_on_top() -> None:
    data = b"\n\n---\ntitle: x\n---\nhi\n"
    (warning,) = parse(data).warnings
    assert (warning.code, warning.line) == ("late_block", 3)
    with pytest.raises(BadNote, match="does not start on line 1") as caught:
        edit(data, {"id": "1"})
    assert "delete the empty lines" in caught.value.hint
    assert edit(data, {}, body="new\n") == b"new\n"  # asked for in so many words


def test_a_first_block_is_put_above_the_text() -> None:
    assert edit(b"\xef\xbb\xbfhello\n", {"id": "1"}) == b"\xef\xbb\xbf---\nid: 1\n---\n\nhello\n"
    assert edit(b"", {"id": "1"}) == b"---\nid: 1\n---\n"
    assert edit(b"hello\n", {"id": None}) == b"hello\n"


def test_a_new_body_may_begin_with_an_empty_line_and_keeps_the_line_ends_of_lines_that_stay() -> None:
    for body in ("\nnew\n", "\n\nnew\n", "new"):
        for data in (b"---\na: 1\n---\nx\n", b"---\na: 1\n---\n\nx\n", b"---\na: 1\n---"):
            assert parse(edit(data, {}, body=body)).body == body
    mixed = b"---\r\na: 1\r\n---\r\n\r\nx\r\ny\nz\r\n"
    assert replace_body(mixed, "x\ny\nq\nz\n") == b"---\r\na: 1\r\n---\r\n\r\nx\r\ny\nq\r\nz\r\n"
    assert replace_body(mixed, "x\ny\nz\nx\ny\nz\n").startswith(mixed)


def test_lines_that_end_with_a_lone_carriage_return_are_named() -> None:
    for fence in (b"---", b"--- "):
        found = parse(fence + b"\rtitle: a\r---\rhi\r").problem
        assert found is not None and "carriage return" in found.message


def test_texts_in_other_encodings_can_still_be_searched() -> None:
    found = parse("gr\u00fc\u00dfe\n".encode("utf-16"))
    assert found.body == "gr\u00fc\u00dfe\n" and found.problem is not None and found.problem.code == "not_utf8"
    both = parse(b"a\xff\0\n")
    assert both.problem is not None and both.problem.code == "not_utf8" and both.body == "a\ufffd\ufffd\n"
    nul = parse(b"---\na: 1\n---\none\ntwo\0\n")
    assert nul.problem is not None and (nul.problem.code, nul.problem.line) == ("binary", 5)


def test_what_no_text_file_can_hold_is_written_as_a_replacement() -> None:
    assert render({}, "a\ud83d\ude00b\ud800c\0").decode() == "---\n---\n\na\U0001f600b\ufffdc\ufffd\n"


def test_conflict_markers_in_a_text_count_only_in_their_order() -> None:
    full = b"a\n<<<<<<< ours\nq\n=======\nr\n>>>>>>> theirs\n"
    assert [(w.code, w.line) for w in parse(full).warnings] == [("conflict_markers", 2)]
    for text in (b"a\n=======\n<<<<<<< x\nq\n>>>>>>> y\n", b"<<<<<<< a heading?\n", b"t\n=======\n>>>>>>> x\n<<<<<<< y\n"):
        assert parse(text).warnings == []
    assert parse(b"\xff" + full).warnings == []  # one problem is told, not two


@pytest.mark.parametrize(
    "block",
    ["a:\n  - x\n  k: v", "a:\n  k: v\n  - x", "a:\n  k: 1\n  k: 2", "a:\n  k: b: c", "a:\n  - b: c", "a: b: c",
     "  a: 1", "a: 1\n  b: 2", "a:\n  - x\n   - y", "a:\n  k: [x"],
)  # fmt: skip
def test_the_quick_reader_leaves_to_yaml_what_it_does_not_understand(block: str) -> None:
    from mdmem.notes import block as yaml_block
    from mdmem.notes.simple import read_simple
    from mdmem.notes.values import BadBlock

    assert read_simple(block + "\n") is None
    try:
        node, _ = yaml_block.compose(block + "\n")
        known = node.read()
    except BadBlock as bad:
        found = parse(f"---\n{block}\n---\n".encode()).problem
        assert found is not None and found.message == bad.message
    else:
        assert fields(block) == known
