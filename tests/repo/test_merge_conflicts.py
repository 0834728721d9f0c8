"""Finding and settling the conflicts of a note, deletions against edits, and git's own markers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mdmem.errors import BadNote, NotFound, UsageError
from mdmem.notes.frontmatter import parse
from mdmem.repo.merge import find_conflicts, mark_deleted_conflict, merge, read_markers, settle

BASE = b"---\nid: mem-a\ntitle: Port\npriority: low # why\nx: 1\n---\n\nnumber one\n\nnumber two\n"
OURS = BASE.replace(b"low", b"high").replace(b"one", b"eins").replace(b"two", b"zwei").replace(b"x: 1", b"x: [2]")
THEIRS = BASE.replace(b"low", b"mid").replace(b"one", b"uno").replace(b"two", b"dos").replace(b"x: 1", b"x: 3")
BOTH = merge(BASE, OURS, THEIRS).text


def test_all_conflicts_are_listed_in_order_with_their_lines() -> None:
    found = find_conflicts(BOTH)
    assert [(c.kind, c.name, c.field) for c in found] == [
        ("field", "priority", "priority"),
        ("field", "x", "x"),
        ("body", "body:1", ""),
        ("body", "body:2", ""),
    ]
    lines = BOTH.decode().split("\n")
    assert [lines[(c.line or 0) - 1].split(":")[0] for c in found] == ["priority", "x", "<!-- mdmem", "<!-- mdmem"]


def test_settle_one_field_touches_its_lines_only() -> None:
    settled = settle(BOTH, "priority", "2")
    assert b"\npriority: mid # why\n" in settled
    assert [c.name for c in find_conflicts(settled)] == ["x", "body:1", "body:2"]
    rest = settle(settle(BOTH, "x", "2"), "priority", "urgent")
    assert rest.startswith(b"---\nid: mem-a\ntitle: Port\npriority: urgent\nx: 3\n---\n")


def test_settle_all_with_one_side_of_each() -> None:
    settled = settle(BOTH, None, "1")
    assert find_conflicts(settled) == [] and b"conflicts" not in settled and b"<!--" not in settled
    assert parse(settled).body == "number eins\n\nnumber dos\n"


def test_keep_both() -> None:
    assert parse(settle(BOTH, "body:2", "both")).body.endswith("number dos\n\nnumber zwei\n")
    assert parse(settle(BOTH, "x", "both")).fields["x"] in (["3", "2"], ["2", "3"])
    with pytest.raises(UsageError):
        settle(BOTH, "priority", "both")


def test_settle_body_names_all_sections() -> None:
    assert [c.name for c in find_conflicts(settle(BOTH, "body", "2"))] == ["priority", "x"]


def test_a_text_of_ones_own() -> None:
    assert parse(settle(BOTH, "body:2", "my words\n")).body.endswith("\n\nmy words\n")


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(NotFound):
        settle(BOTH, "title", "1")
    with pytest.raises(NotFound):
        settle(BASE, None, "1")
    with pytest.raises(UsageError):
        settle(BOTH, "body", "7")
    with pytest.raises(UsageError):
        settle(BOTH, "body", "deleted")


def test_settle_a_removed_key_and_a_key_in_facts() -> None:
    base = b"---\nfacts:\n  port: 80\n  host: a\n---\n"
    clash = merge(base, base.replace(b"  port: 80\n", b""), base.replace(b"80", b"81")).text
    (conflict,) = find_conflicts(clash)
    assert conflict.field == "facts.port"
    assert parse(settle(clash, "facts.port", "deleted")).fields == {"facts": {"host": "a"}}
    assert parse(settle(clash, "facts.port", "1")).fields == {"facts": {"host": "a", "port": "81"}}


def test_settle_under_metadata() -> None:
    base = b"---\ntitle: x\nmetadata:\n  priority: low\n  tags: [a]\n---\n"
    clash = merge(base, base.replace(b"low", b"high"), base.replace(b"low", b"mid")).text
    assert parse(settle(clash, "priority", "2")).fields == {
        "title": "x",
        "metadata": {"priority": "mid", "tags": ["a"]},
    }


def test_a_value_that_needs_quotes() -> None:
    settled = settle(BOTH, "priority", "#12: no")
    assert parse(settled).fields["priority"] == "#12: no"


def test_crlf_and_bom_survive_settling() -> None:
    data = b"\xef\xbb\xbf" + BOTH.replace(b"\n", b"\r\n")
    assert settle(data, None, "1") == b"\xef\xbb\xbf" + settle(BOTH, None, "1").replace(b"\n", b"\r\n")


def test_a_deleted_note_that_was_edited_here() -> None:
    marked = mark_deleted_conflict(BASE, "claude", "laptop", "2026-05-01T00:00:00Z")
    assert mark_deleted_conflict(marked, "other") == marked
    (conflict,) = find_conflicts(marked)
    assert (conflict.kind, conflict.name) == ("deleted", "deleted")
    assert [(v.removed, v.agent) for v in conflict.versions] == [(False, ""), (True, "claude")]
    assert settle(marked, None, "1") == BASE == settle(marked, "deleted", "both")
    assert settle(marked, None, "deleted") == b"" == settle(marked, "deleted", "2")
    with pytest.raises(UsageError):
        settle(marked, "deleted", "some text")


def test_the_mark_of_a_deletion_survives_a_merge_and_goes_when_settled() -> None:
    marked = mark_deleted_conflict(BASE, "claude")
    edited = marked.replace(b"two", b"three")
    merged = merge(marked, edited, marked.replace(b"one", b"1"))
    assert [c.kind for c in find_conflicts(merged.text)] == ["deleted"] and merged.conflicts == []
    assert find_conflicts(merge(marked, settle(marked, None, "1"), edited).text) == []


def test_marking_never_touches_a_bad_note_and_makes_a_block_where_none_is() -> None:
    bad = b"---\na: 'x'y'\n---\n"
    assert mark_deleted_conflict(bad) == bad
    marked = mark_deleted_conflict(b"plain\n", "a")
    assert parse(marked).body == "plain\n" and settle(marked, None, "1") == b"plain\n"


def test_a_whole_file_in_conflict_comes_back_byte_for_byte() -> None:
    bad = b"\xef\xbb\xbf---\r\na: 'x'y'\r\n---\r\nwords"
    clash = merge(b"---\na: 1\n---\nwords\n", b"---\na: 2\n---\nwords\n", bad).text
    (conflict,) = find_conflicts(clash)
    number = next(v.number for v in conflict.versions if v.whole)
    assert settle(clash, None, str(number)) == bad
    assert settle(clash, None, str(3 - number)) == b"---\na: 2\n---\nwords\n"


@pytest.mark.parametrize("style", ["merge", "diff3", "zdiff3"])
@pytest.mark.parametrize("size", [7, 9, 12])
def test_g23_markers_of_a_clone_without_the_driver_are_read_back(tmp_path: Path, style: str, size: int) -> None:
    names = {"base": BASE, "ours": OURS, "theirs": THEIRS}
    for name, data in names.items():
        (tmp_path / name).write_bytes(data)
    command = ["git", "merge-file", "-p", f"--marker-size={size}", "ours", "base", "theirs"]
    command[2:2] = {"merge": [], "diff3": ["--diff3"], "zdiff3": ["--zdiff3"]}[style]
    marked = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).stdout
    sides = read_markers(marked)
    assert sides is not None
    assert sides[1:] == (OURS, THEIRS)
    assert sides[0] == (None if style == "merge" else BASE)
    (conflict,) = find_conflicts(marked)
    assert conflict.kind == "markers"
    assert settle(marked, None, "both") == merge(*sides).text


def test_a_text_about_markers_is_not_a_conflict() -> None:
    page = b"# Git\n\n```\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n```\n"
    assert find_conflicts(page) == []
    assert read_markers(b"<<<<<<< only\nhalf\n=======\n") is None
    assert read_markers(b"plain\n") is None


def test_gits_markers_are_settled_with_a_side_or_both_and_nothing_else() -> None:
    marked = b"---\nid: a\n---\n\n<<<<<<< ours\none\n=======\ntwo\n>>>>>>> theirs\nrest\n"
    one, two = b"---\nid: a\n---\n\none\nrest\n", b"---\nid: a\n---\n\ntwo\nrest\n"
    assert {settle(marked, None, "1"), settle(marked, "markers", "2")} == {one, two}
    with pytest.raises(UsageError, match="markers stand in this file"):
        settle(marked, None, "my words")
    mixed = b"<<<<<<< a\n1\n||||||| o\n0\n=======\n2\n>>>>>>> b\nx\n<<<<<<< a\n3\n=======\n4\n>>>>>>> b\n"
    assert read_markers(mixed) == (None, b"1\nx\n3\n", b"2\nx\n4\n")  # no base where one conflict shows none
    first, second = mixed.split(b"x\n")
    assert read_markers(second + b"x\n" + first) == (None, b"3\nx\n1\n", b"4\nx\n2\n")


def test_a_passage_deleted_here_and_changed_there_can_be_settled_every_way() -> None:
    base = b"---\nid: a\n---\n\nfirst\n\nsecond\n\nthird\n"
    clash = merge(base, base.replace(b"second\n\n", b""), base.replace(b"second", b"SECOND")).text
    (conflict,) = find_conflicts(clash)
    gone = next(v.number for v in conflict.versions if v.removed)
    assert parse(settle(clash, None, str(gone))).body == "first\n\nthird\n"
    assert parse(settle(clash, None, "deleted")).body == "first\n\nthird\n"
    for keep in (str(3 - gone), "both"):
        assert parse(settle(clash, None, keep)).body == "first\n\nSECOND\n\nthird\n"


def test_a_field_that_went_meanwhile_can_still_be_settled() -> None:
    base = b"---\nfacts:\n  port: 80\nx: 1\n---\n"
    clash = merge(base, base.replace(b"80", b"81"), base.replace(b"80", b"82")).text
    for cut in (b"  port: 81\n", b"facts:\n  port: 81\n"):
        assert cut in clash
        edited = clash.replace(cut, b"")
        assert [c.field for c in find_conflicts(edited)] == ["facts.port"]
        assert parse(settle(edited, None, "2")).fields == {"x": "1", "facts": {"port": "82"}}
    removed = merge(base, base.replace(b"80", b"81"), base.replace(b"  port: 80\n", b"")).text
    assert parse(settle(removed.replace(b"facts:\n  port: 81\n", b""), None, "deleted")).fields == {"x": "1"}
    literal = base.replace(b"facts:\n  port: 80", b"a.b: 80")
    clash = merge(literal, literal.replace(b"80", b"81"), literal.replace(b"80", b"82")).text
    assert parse(settle(clash.replace(b"a.b: 81\n", b""), None, "2")).fields == {"x": "1", "a.b": "82"}


def test_a_value_that_no_note_can_hold_is_refused_and_nothing_is_written() -> None:
    with pytest.raises(BadNote):
        settle(BOTH, "priority", "a\x07b")


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("**Version 1**\n\nb\n", "b"),
        ("b\n", "b"),  # a person deleted the title and the empty lines
        ("**Version 1** (me)\nb", "b"),
        ("\nb\n\n", "b\n"),
        ("", ""),
    ],
)
def test_a_section_is_read_however_much_of_it_a_person_tidied(inside: str, text: str) -> None:
    one = f"<!-- mdmem:conflict -->\n<!-- mdmem:version 1 -->\n{inside}\n"
    data = one + "<!-- mdmem:version 2 -->\nz\n<!-- mdmem:conflict end -->\n"
    (found,) = find_conflicts(data.encode())
    assert text in [version.text for version in found.versions]


@pytest.mark.parametrize(
    "damaged",
    [
        "<!-- mdmem:conflict -->\nno version\n<!-- mdmem:conflict end -->\n",
        "<!-- mdmem:conflict -->\n<!-- mdmem:conflict -->\n<!-- mdmem:version 1 -->\na\n",
        "<!-- mdmem:conflict end -->\n<!-- mdmem:conflict -->\n<!-- mdmem:version 1 -->\na\n",
    ],
)
def test_a_section_without_versions_or_end_is_text(damaged: str) -> None:
    assert find_conflicts(damaged.encode()) == []


def test_a_section_that_was_begun_twice_is_read_from_its_second_beginning() -> None:
    twice = "<!-- mdmem:conflict -->\nx\n<!-- mdmem:conflict -->\n<!-- mdmem:version 1 -->\na\n<!-- mdmem:conflict end -->\n"
    (found,) = find_conflicts(twice.encode())
    assert found.line == 3


def test_coded_bytes_that_were_damaged_are_kept_as_they_stand() -> None:
    head = "<!-- mdmem:conflict -->\n<!-- mdmem:version 1 base64 -->\n"
    for lines in ("```\nAAA\n```", "AAA", "```"):
        data = f"{head}{lines}\n<!-- mdmem:version 2 -->\nz\n<!-- mdmem:conflict end -->\n".encode()
        (found,) = find_conflicts(data)
        assert any(version.data in (b"AAA", b"```", b"") for version in found.versions)
    good = f"{head}QQ==\n<!-- mdmem:version 2 -->\nz\n<!-- mdmem:conflict end -->\n".encode()
    assert "A" in [version.text for version in find_conflicts(good)[0].versions]
