"""The merge of bodies: lines, paragraphs, insertions, sections."""

from __future__ import annotations

import time

import pytest

from mdmem.notes.frontmatter import parse
from mdmem.repo.merge import Merged, find_conflicts, merge, settle
from mdmem.repo.merge_section import Origin, Text, build_section, find_sections, tidy

HEAD = "---\nid: mem-a\nagent: {agent}\ndevice: laptop\n---\n\n"


def both(base: str | None, ours: str, theirs: str) -> Merged:
    """Merge three texts in both orders, and the result again with each side."""
    texts = (None if base is None else base.encode(), ours.encode(), theirs.encode())
    merged = merge(*texts)
    assert merge(texts[0], texts[2], texts[1]) == merged
    for side in texts[1:]:
        again = merge(texts[0], merged.text, side)
        assert again.text == merged.text and again.conflicts == []
    return merged


def test_lines_changed_at_different_places_both_change() -> None:
    merged = both("a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nD\n")
    assert merged.text == b"A\nb\nc\nD\n" and merged.conflicts == []


def test_neighbouring_lines_changed_by_each_side_both_change() -> None:
    assert both("- a\n- b\n- c\n", "- A\n- b\n- c\n", "- a\n- B\n- c\n").text == b"- A\n- B\n- c\n"


def test_deletion_is_real() -> None:
    assert both("a\n\nb\n\nc\n", "a\n\nc\n", "a\n\nb\n\nc\n\nd\n").text == b"a\n\nc\n\nd\n"


def test_insertions_at_one_place_both_stay_in_the_order_of_their_content() -> None:
    merged = both("head\n", "head\n\nzebra\nstripes\n", "head\n\napple\n")
    assert merged.text == b"head\n\napple\n\nzebra\nstripes\n" and merged.conflicts == []


def test_list_items_from_both_sides_are_one_list() -> None:
    merged = both("- a\n", "- a\n- c\n- e\n", "- a\n- b\n  more of b\n- e\n")
    assert merged.text == b"- a\n- b\n  more of b\n- c\n- e\n"


def test_an_item_stays_with_its_list_when_the_other_side_adds_a_paragraph() -> None:
    assert both("- a\n", "- a\n- b\n", "- a\n\n# New\n\ntext\n").text == b"- a\n- b\n\n# New\n\ntext\n"


def test_the_same_insertion_on_both_sides_stands_once() -> None:
    assert both("a\n\nz\n", "a\n\nnew\n\nz\n", "a\n\nnew\n\nmore\n\nz\n").text == b"a\n\nnew\n\nmore\n\nz\n"


def test_two_headings_of_the_same_name_become_one() -> None:
    merged = both("top\n", "top\n\n## Notes\n\nfrom one\n", "top\n\n## Notes\n\nfrom two\n")
    assert merged.text == b"top\n\n## Notes\n\nfrom one\n\nfrom two\n"


CLASH = """---
id: mem-a
---

# Port

<!-- mdmem:conflict -->
> **Conflict.** 2 versions of this passage. Settle it with `mdmem resolve`, or keep the right text and delete the rest \
of this section.

<!-- mdmem:version 1 agent="claude" device="desk" updated="2026-02-02T00:00:00Z" -->
**Version 1** (claude on desk, 2026-02-02T00:00:00Z)

The server
listens on 7070.

<!-- mdmem:version 2 agent="claude" device="desk" updated="2026-02-01T00:00:00Z" -->
**Version 2** (claude on desk, 2026-02-01T00:00:00Z)

The server
listens on 9090.

<!-- mdmem:conflict end -->

Last.
"""


def test_g17_a_clash_keeps_both_paragraphs_in_a_section() -> None:
    body = "# Port\n\nThe server\nlistens on 8080.\n\nLast.\n"
    head = "---\nid: mem-a\nagent: claude\ndevice: desk\nupdated: 2026-02-01T00:00:00Z\n---\n\n"
    base = head.replace("02-01", "01-01") + body
    ours = head + body.replace("8080", "9090")
    theirs = head.replace("02-01", "02-02") + body.replace("8080", "7070")
    merged = both(base, ours, theirs)
    assert merged.text.decode().split("---\n", 2)[2] == CLASH.split("---\n", 2)[2]
    (conflict,) = merged.conflicts
    assert (conflict.kind, conflict.name, conflict.field) == ("body", "body", "")
    assert merged.text.decode().split("\n")[(conflict.line or 0) - 1] == "<!-- mdmem:conflict -->"
    assert [(v.number, v.text) for v in conflict.versions] == [
        (1, "The server\nlistens on 7070."),
        (2, "The server\nlistens on 9090."),
    ]


def test_a_clash_in_a_list_takes_the_item_not_the_list() -> None:
    merged = both("- a\n- b\n- c\n", "- a\n- b1\n- c\n", "- a\n- b2\n- c\n")
    assert [[v.text for v in c.versions] for c in merged.conflicts] == [["- b1", "- b2"]]


def test_a_clash_in_a_code_block_takes_the_block() -> None:
    code = "text\n\n```sh\none\n\ntwo\n```\n\nend\n"
    merged = both(code, code.replace("two", "2"), code.replace("two", "II"))
    assert [[v.text for v in c.versions] for c in merged.conflicts] == [
        ["```sh\none\n\n2\n```", "```sh\none\n\nII\n```"]
    ]


def test_a_paragraph_deleted_here_and_changed_there_keeps_the_change_and_says_so() -> None:
    merged = both("a\n\nthe old text\n\nc\n", "a\n\nc\n", "a\n\nthe new text\n\nc\n")
    (conflict,) = merged.conflicts
    assert [(v.text, v.removed) for v in conflict.versions] == [("", True), ("the new text", False)]


def test_a_paragraph_deleted_here_and_another_one_written_in_its_place_there_is_no_conflict() -> None:
    merged = both("a\n\nold\n\nc\n", "a\n\nc\n", "a\n\nold\n\nnew\n\nc\n")
    assert merged.text == b"a\n\nnew\n\nc\n" and merged.conflicts == []


def test_a_third_version_joins_the_section_and_nothing_nests() -> None:
    first = both("a\n", "b\n", "c\n").text.decode()
    second = both("a\n", first, "d\n")
    assert second.text.count(b"<!-- mdmem:conflict -->") == 1
    assert [[v.text for v in c.versions] for c in find_conflicts(second.text)] == [["b", "c", "d"]]
    assert len(second.conflicts) == 1


def test_an_edit_inside_a_section_and_a_new_text_outside() -> None:
    first = merge(b"a\n\nz\n", b"b\n\nz\n", b"c\n\nz\n").text
    edited = first.replace(b"\nb\n", b"\nb two\n")
    merged = merge(first, edited, first + b"\nmore\n")
    assert merged.text == edited + b"\nmore\n" and merged.conflicts == []


def test_a_text_written_into_a_section_but_into_no_version_stays() -> None:
    first = merge(b"a\n\nz\n", b"b\n\nz\n", b"c\n\nz\n").text
    noted = first.replace(b"\n<!-- mdmem:version 1", b"\nmy thoughts\n\n<!-- mdmem:version 1")
    merged = merge(first, noted, first.replace(b"\nb\n", b"\nb two\n"))
    assert b"my thoughts" in merged.text and b"b two" in merged.text
    assert settle(noted, None, "1") == b"my thoughts\n\nb\n\nz\n"


def test_settled_here_and_unchanged_there_stays_settled() -> None:
    first = merge(b"a\n\nz\n", b"b\n\nz\n", b"c\n\nz\n").text
    merged = merge(first, b"b\n\nz\n", first.replace(b"z\n", b"z2\n"))
    assert merged.text == b"b\n\nz2\n" and merged.conflicts == []


def test_settled_in_two_ways_is_a_conflict_again() -> None:
    first = merge(b"a\n", b"b\n", b"c\n").text
    assert [[v.text for v in c.versions] for c in merge(first, b"b\n", b"c\n").conflicts] == [["b", "c"]]
    assert [[v.text for v in c.versions] for c in merge(first, b"b\n", b"new\n").conflicts] == [["b", "new"]]


def test_a_text_about_sections_does_not_break_them() -> None:
    inside = "<!-- mdmem:conflict -->\n<!-- mdmem:version 1 -->\nx\n<!-- mdmem:conflict end"
    merged = both("a\n", inside + "\n", inside + " -\n")
    (conflict,) = merged.conflicts
    assert [v.text for v in conflict.versions] == sorted([inside, inside + " -"])


def test_a_damaged_section_is_text() -> None:
    whole = both("a\n", "b\n", "c\n").text
    damaged = whole.replace(b"<!-- mdmem:conflict end -->", b"")
    assert find_conflicts(damaged) == []
    assert merge(whole, damaged, whole + b"\nx\n").text.count(b"x\n") == 1


def test_add_add_with_different_bodies_asks() -> None:
    merged = both(None, "# Foo\n\nis one\n", "# Foo\n\nis two\n")
    assert merged.text.startswith(b"# Foo\n\n<!-- mdmem:conflict -->")
    assert both("", "# Foo\n\nis one\n", "# Foo\n\nis two\n") == merged


def test_two_texts_that_match_in_more_than_one_way_give_the_same_bytes_from_both_sides() -> None:
    both(None, "a\n\nb\n", "b\n\na\n")
    both(None, "- a\n- b\n- a\n- c\n", "- b\n- a\n- c\n- a\n")
    both("top\n", "top\n\na\n\nb\n\na\n", "top\n\nb\n\na\n\nb\n")


def test_add_add_where_one_holds_all_of_the_other() -> None:
    assert both(None, "# Foo\n\nis one\n", "# Foo\n").text == b"# Foo\n\nis one\n"


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_f17_bom_and_crlf_survive(bom: bytes) -> None:
    base = bom + b"---\r\ntitle: a\r\n---\r\n\r\none\r\n\r\ntwo\r\n"
    ours, theirs = base.replace(b"title: a", b"title: b"), base.replace(b"two", b"zwei")
    merged = merge(base, ours, theirs)
    assert merged.text == ours.replace(b"two", b"zwei")
    clash = merge(base, base.replace(b"one", b"1"), base.replace(b"one", b"I")).text
    assert clash.startswith(bom + b"---\r\n") and clash.count(b"\n") == clash.count(b"\r\n")
    assert [[v.text for v in c.versions] for c in find_conflicts(clash)] == [["1", "I"]]


def test_a_file_turned_to_crlf_by_one_side_stays_crlf_with_the_other_sides_words() -> None:
    base = b"---\na: 1\n---\n\none\n\ntwo\n"
    merged = merge(base, base.replace(b"\n", b"\r\n"), base.replace(b"two", b"three"))
    assert merged.text == base.replace(b"two", b"three").replace(b"\n", b"\r\n")


def test_mixed_line_ends_stay_line_by_line() -> None:
    base = b"one\r\ntwo\nthree\r\n"
    assert merge(base, base + b"four\n", base.replace(b"one", b"ONE")).text == b"ONE\r\ntwo\nthree\r\nfour\n"


def test_f18_no_line_end_at_the_end() -> None:
    assert merge(b"---\na: 1\n---", b"---\na: 2\n---", b"---\na: 1\nb: 1\n---").text == b"---\na: 2\nb: 1\n---"
    assert merge(b"a\n\nb", b"a\n\nb\n\nc", b"A\n\nb").text == b"A\n\nb\n\nc"


def test_f36_a_rule_in_the_body_is_body() -> None:
    base = "---\nstatus: open\n---\n\none\n\n---\nstatus: done\n"
    merged = both(base, base.replace("one\n\n", "1\n\n"), base + "end\n")
    assert parse(merged.text).fields == {"status": "open"} and merged.text.endswith(b"---\nstatus: done\nend\n")


def test_a_copy_that_each_side_deleted_elsewhere_is_not_lost() -> None:
    assert b"x" in merge(b"x\n\ny\n\nx\n", b"y\n\nx\n", b"x\n\ny\n").text


def test_a_generated_block_is_joined_and_marked_for_regeneration() -> None:
    def page(*links: str) -> str:
        inner = "".join(f"- [{name}]({name}.md)\n" for name in links)
        return f"# Memory\n\n<!-- mdmem:begin index -->\n{inner}<!-- mdmem:end -->\n\nmine\n"

    merged = merge(page("a").encode(), page("a", "c").encode(), page("a", "b").encode())
    assert merged.text == page("a", "b", "c").encode()
    assert merged.regenerate and merged.conflicts == []


BAD = b"---\ntitle: 'don't'\n---\n\ntext\n"


def test_a_side_with_a_bad_block_keeps_its_bytes_beside_the_readable_note() -> None:
    base = b"---\ntitle: x\n---\n\ntext\n"
    good = base.replace(b"x", b"y")
    merged = merge(base, good, BAD)
    assert merge(base, BAD, good) == merged
    assert parse(merged.text).fields == {"title": "y"}
    (conflict,) = merged.conflicts
    assert conflict.kind == "file" and [v.data for v in conflict.versions if v.whole] == [BAD]
    for side in (good, BAD):
        assert merge(base, merged.text, side).text == merged.text


def test_a_bad_block_that_only_one_side_touched_merges_as_text() -> None:
    base = BAD.replace(b"'don't'", b"dont")
    merged = merge(base, BAD, base.replace(b"text", b"words"))
    assert merged.text == BAD.replace(b"text", b"words") and merged.conflicts == []


def test_two_unreadable_files_stand_whole_in_one_section() -> None:
    other = BAD.replace(b"don't", b"won't")
    merged = merge(b"---\ntitle: x\n---\n", BAD, other)
    assert parse(merged.text).problem is None
    assert {v.data for v in merged.conflicts[0].versions} == {BAD, other}
    third = merge(b"---\ntitle: x\n---\n", merged.text, BAD.replace(b"don't", b"can't"))
    assert len(find_conflicts(third.text)[0].versions) == 3


@pytest.mark.parametrize("data", [b"\x00\x01\x02", b"\xff\xfe\x00a", b"caf\xe9\n", b"a\x00b\r\n\r\n"])
def test_bytes_that_are_no_text_come_back_whole(data: bytes) -> None:
    merged = merge(b"base\n", data, b"other\n")
    assert parse(merged.text).problem is None
    assert data in {v.data for c in merged.conflicts for v in c.versions}


def test_g44_a_base_full_of_markers_is_unknown() -> None:
    base = b"---\nid: a\n---\n\n<<<<<<<<< one\nleft\n=========\nright\n>>>>>>>>> two\n\nkept\n"
    ours, theirs = b"---\nid: a\n---\n\nleft\nright\n\nkept\n\nmine\n", b"---\nid: a\n---\n\nleft\n\nyours\n"
    merged = merge(base, ours, theirs)
    assert b"mine" in merged.text and b"yours" in merged.text and b"<<<<" not in merged.text
    # That theirs lacks a line is no deletion: it may never have had it.
    assert b"right" in merged.text and b"kept" in merged.text
    assert parse(merged.text).problem is None


def test_markers_in_the_frontmatter_of_a_side_are_read_back_into_the_two_sides() -> None:
    base = b"---\ntitle: a\nid: x\n---\n\nbody\n"
    marked = b"---\n<<<<<<< ours\ntitle: b\n=======\ntitle: a\ntags: [t]\n>>>>>>> theirs\nid: x\n---\n\nbody\n"
    merged = merge(base, marked, base.replace(b"body", b"words"))
    assert parse(merged.text).problem is None and b"<<<" not in merged.text
    assert b"words" in merged.text and b"tags: [t]" in merged.text
    assert [[v.text for v in c.versions] for c in find_conflicts(merged.text)] == [["a", "b"]]


def test_sections_read_back_what_was_written() -> None:
    passages = (b"a\n\nb", b"", b"```\nx", b"**Version 1**\n\nx", b"<!-- mdmem:conflict end -->")
    files = (b"\xef\xbb\xbfa\r\nb\r\n", b"a\nb", b"\0", b"\n", b"", b"````\n", b"a\r\nb\n")
    texts = [Text(data) for data in passages] + [Text(data, True) for data in files]
    versions = {text: Origin("a", tidy('d"-->x'), "2026") for text in texts}
    section = build_section(versions.items())
    ((start, end, found),) = find_sections([b"before", *section.lines, b"after"])
    assert (start, end) == (1, len(section.lines) + 1)
    assert dict(found.versions) == versions and found == section


def test_an_agent_name_cannot_break_out_of_the_section() -> None:
    head = "---\nagent: 'a\" --> <b>'\n---\n\n"
    merged = both(None, head + "x\n", head + "y\n")
    assert b'agent="a b"' in merged.text or b'agent="a - b"' in merged.text
    assert len(merged.conflicts) == 1


def test_large_bodies_merge_in_bounded_time() -> None:
    base = "".join(f"line {n}\n" for n in range(30_000))
    started = time.process_time()
    merged = merge(base.encode(), (base + "end\n").encode(), ("top\n" + base).encode())
    same = ("x\n" * 20_000).encode()
    merge(same, same + b"y\n", b"z\n" + same + b"x\n")
    wild = ("a | b\n" * 15_000).encode()
    merge(wild, wild.replace(b"a", b"c"), wild.replace(b"b", b"d"))
    assert merged.text == ("top\n" + base + "end\n").encode()
    assert time.process_time() - started < 30


def test_versions_of_a_whole_file_that_each_side_dropped_are_gone_and_one_that_is_left_is_the_file() -> None:
    texts = [Text(b"---\na: 'x'y'\n---\n%d\n" % number, True) for number in range(3)]

    def section(*numbers: int) -> bytes:
        return b"\n".join(build_section([(texts[number], Origin()) for number in numbers]).lines) + b"\n"

    whole, one, two = section(0, 1, 2), section(0, 1), section(0, 2)
    assert merge(whole, one, two).text == merge(whole, two, one).text == texts[0].data
    assert merge(None, one, texts[0].data).text == one  # it holds that version already
    assert merge(None, one, texts[2].data).text == whole


def test_a_text_that_uses_every_number_of_a_section_comes_back_whole() -> None:
    full = b"\n".join([b"<!-- mdmem:conflict -->", *(b"<!-- mdmem:conflict #%d -->" % number for number in range(2, 100))])
    section = build_section([(Text(full), Origin("a")), (Text(b"z"), Origin("b"))])
    ((_, _, found),) = find_sections(section.lines)
    assert {text.data for text, _ in found.versions} == {full, b"z"}


def test_a_base_that_cannot_be_read_is_as_if_there_were_none() -> None:
    bad, one, two = b"---\na: 'x'y'\n---\n\none\n", b"---\na: 1\n---\n\none\n", b"---\na: 1\nb: 2\n---\n\none\n"
    assert merge(bad, one, two).text == merge(None, one, two).text == two
