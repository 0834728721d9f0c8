"""The merge of frontmatter, rule by rule."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from mdmem.notes.frontmatter import parse
from mdmem.repo.merge import Merged, find_conflicts, merge, settle

BASE = "title: Port\npriority: low"
NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)


def note(block: str, body: str = "text\n") -> bytes:
    return f"---\n{block.strip()}\n---\n\n{body}".encode()


def both(base: str | None, ours: str, theirs: str, now: datetime | None = NOW) -> Merged:
    """Merge three blocks in both orders and look at what must hold always."""
    texts = (None if base is None else note(base), note(ours), note(theirs))
    merged = merge(*texts, now=now)
    assert merge(texts[0], texts[2], texts[1], now=now) == merged
    assert parse(merged.text).problem is None
    for side in texts[1:]:
        assert merge(texts[0], merged.text, side, now=now).text == merged.text
    return merged


def block(merged: Merged) -> str:
    return merged.text.decode().split("---\n")[1]


def test_each_side_changed_another_key() -> None:
    merged = both("a: 1\nb: 2", "a: one\nb: 2", "a: 1\nb: 2\nc: 3")
    assert block(merged) == "a: one\nb: 2\nc: 3\n"
    assert merged.conflicts == []


def test_removal_of_a_key_is_real() -> None:
    assert block(both("a: 1\nb: 2\nc: 3", "a: 1\nc: 3", "a: 1\nb: 2\nc: 4")) == "a: 1\nc: 4\n"


def test_comments_order_and_quoting_stay() -> None:
    base = "# head\nb: 'x'   # why\n\na: \"y\"\n# tail"
    merged = both(base, base.replace("'x'", "'z'"), base + "\nc: 1")
    assert block(merged) == "# head\nb: 'z'   # why\n\na: \"y\"\n# tail\nc: 1\n"


def test_comments_of_both_sides_stay() -> None:
    merged = both("a: 1\nb: 2", "# ours\na: 1\nb: 2", "# theirs\na: 1\nb: 2")
    assert block(merged) == "# ours\n# theirs\na: 1\nb: 2\n"


def test_the_smaller_id_stays_and_the_other_becomes_an_alias() -> None:
    merged = both(None, "id: mem-b\ntitle: x", "id: mem-a\ntitle: x")
    assert block(merged) == "id: mem-a\naliases:\n  - mem-b\ntitle: x\n"
    assert merged.conflicts == []
    merged = both(None, "id: mem-b\naliases: [old]", "id: mem-a\naliases: [old, older]")
    assert parse(merged.text).fields == {"id": "mem-a", "aliases": ["mem-b", "old", "older"]}


def test_sets_are_three_way_and_removal_is_real() -> None:
    base = "tags:\n  - a\n  - b\n  - c"
    merged = both(base, "tags:\n  - a\n  - c\n  - d", "tags:\n  - b\n  - c\n  - e")
    assert block(merged) == "tags:\n  - c\n  - d\n  - e\n"
    assert merged.conflicts == []


def test_a_set_keeps_its_form_comments_and_quoting() -> None:
    merged = both("tags: [a, b]", "tags: [a, b, c]", "tags: [a, b, 'd e']")
    assert block(merged) == "tags: [a, b, c, d e]\n"
    merged = both("tags:\n- a", "tags:\n- a\n- 'b' # mine", "tags:\n- a\n- c")
    assert block(merged) == "tags:\n  - a\n  - 'b' # mine\n  - c\n"


def test_an_edge_is_one_text_or_a_list() -> None:
    merged = both("relates_to: '[[One]]'", "relates_to:\n  - '[[One]]'\n  - '[[Two]]'", "relates_to: [[Three]]")
    assert parse(merged.text).fields["relates_to"] == ["[[Three]]", "[[Two]]"] or parse(merged.text).fields["relates_to"] == [
        "[[Two]]",
        "[[Three]]",
    ]


def test_a_set_removed_on_one_side_and_extended_on_the_other_keeps_the_new_item() -> None:
    assert parse(both("tags: [a]\nx: 1", "x: 1", "tags: [a, b]\nx: 1").text).fields == {"tags": ["b"], "x": "1"}


def test_of_two_claims_the_earlier_one_stands() -> None:
    first, second = "claim: 2026-05-01T09:00:00Z b@desk", "claim: 2026-05-01T09:30:00Z a@laptop"
    for base in ("title: x", "title: x\nclaim: 2026-04-01T00:00:00Z c@sofa"):
        merged = both(base, f"title: x\n{first}", f"title: x\n{second}")
        assert parse(merged.text).fields["claim"] == "2026-05-01T09:00:00Z b@desk" and merged.conflicts == []
    given_back = both("title: x\nclaim: 2026-04-01T00:00:00Z c@sofa", "title: x", f"title: x\n{second}")
    assert parse(given_back.text).fields["claim"] == "2026-05-01T09:30:00Z a@laptop" and given_back.conflicts == []


def test_created_is_the_earliest_and_updated_the_latest() -> None:
    base = "created: 2026-03-01\nupdated: 2026-03-01T00:00:00Z"
    ours = "created: 2026-02-01T00:00:00Z\nupdated: 2026-05-02T10:00:00+02:00"
    theirs = "created: 2026-01-31\nupdated: 2026-05-02T09:00:00Z"
    assert parse(both(base, ours, theirs).text).fields == {"created": "2026-01-31", "updated": "2026-05-02T09:00:00Z"}


def test_a_date_that_cannot_be_read_is_a_conflict() -> None:
    merged = both("created: 2026-03-01", "created: soon", "created: 2026-02-01")
    assert [c.field for c in merged.conflicts] == ["created"]


def test_facts_merge_per_key() -> None:
    base = "facts:\n  port: 80\n  host: a\n  old: x"
    merged = both(base, "facts:\n  port: 81\n  host: a", "facts:\n  port: 80\n  host: b\n  old: x\n  new: y")
    assert block(merged) == "facts:\n  port: 81\n  host: b\n  new: y\n"
    merged = both(base, base.replace("80", "81"), base.replace("80", "82"))
    assert [(c.field, [v.text for v in c.versions]) for c in merged.conflicts] == [("facts.port", ["81", "82"])]


STATUS = "status: open\nupdated: 2026-01-01T00:00:00Z"
DONE = "status: done\nupdated: 2026-02-02T00:00:00Z\nagent: claude"
BLOCKED = "status: blocked\nupdated: 2026-02-01T00:00:00Z\nagent: claude"


def test_the_later_status_wins_and_the_other_is_recorded() -> None:
    merged = both(STATUS, DONE, BLOCKED)
    fields = parse(merged.text).fields
    assert fields["status"] == "done"
    assert fields["merged"] == [
        {"field": "status", "value": "blocked", "agent": "claude", "updated": "2026-02-01T00:00:00Z"}
    ]
    assert merged.conflicts == []


@pytest.mark.parametrize(
    "theirs",
    [BLOCKED.replace("02-01", "02-02"), BLOCKED.replace("2026-02-01", "2036-02-01"), "status: blocked\nagent: claude"],
    ids=["tie", "future", "no date"],
)
def test_a_tie_a_time_in_the_future_and_a_missing_time_are_a_conflict_of_status(theirs: str) -> None:
    merged = both(STATUS, DONE, theirs)
    assert [(c.field, [v.text for v in c.versions]) for c in merged.conflicts] == [("status", ["blocked", "done"])]


def test_without_a_clock_no_time_is_in_the_future() -> None:
    merged = both(STATUS, DONE, BLOCKED.replace("2026-02-01", "2036-02-01"), now=None)
    assert merged.conflicts == [] and parse(merged.text).fields["status"] == "blocked"


def test_a_scalar_changed_on_both_sides_keeps_both_values_with_their_origin() -> None:
    ours = "title: Port\npriority: high # now\nagent: claude\ndevice: laptop\nupdated: 2026-05-01T00:00:00Z"
    theirs = "title: Port\npriority: 'mid'\nagent: claude\ndevice: laptop\nupdated: 2026-05-02T00:00:00Z"
    merged = both(BASE, ours, theirs)
    assert block(merged) == (
        "title: Port\npriority: high # now\nagent: claude\ndevice: laptop\nupdated: 2026-05-02T00:00:00Z\n"
        "conflicts:\n  - field: priority\n"
        "    1:\n      value: high # now\n      agent: claude\n      device: laptop\n      updated: 2026-05-01T00:00:00Z\n"
        "    2:\n      value: 'mid'\n      agent: claude\n      device: laptop\n      updated: 2026-05-02T00:00:00Z\n"
    )
    (conflict,) = merged.conflicts
    assert (conflict.kind, conflict.field, conflict.line) == ("field", "priority", 3)
    assert [(v.number, v.text, v.device, v.updated[8:10]) for v in conflict.versions] == [
        (1, "high", "laptop", "01"),
        (2, "mid", "laptop", "02"),
    ]


def test_an_unknown_key_of_many_lines_is_kept_byte_for_byte_in_a_conflict() -> None:
    ours = "x:\n  - {a: 1}   # odd\n  - |\n    text\n\n    more\nz: 1"
    theirs = "x:\n- b\nz: 1"
    merged = both("x: 1\nz: 1", ours, theirs)
    text = block(merged)
    assert "      value:\n        - {a: 1}   # odd\n        - |\n          text\n\n          more\n" in text
    assert "      value:\n      - b\n" in text
    assert [c.field for c in merged.conflicts] == ["x"]


def test_the_same_value_written_in_two_ways_is_no_conflict() -> None:
    assert block(both("a: 1", "a: 'x'", "a: x")) == "a: 'x'\n"


def test_quoting_on_one_side_and_a_new_value_on_the_other_is_no_conflict() -> None:
    assert block(both("a: x", "a: 'x'", "a: y")) == "a: y\n"


def test_a_key_removed_here_and_changed_there_is_a_conflict() -> None:
    merged = both(BASE, "title: Port", "title: Port\npriority: high")
    assert parse(merged.text).fields["priority"] == "high"
    (conflict,) = merged.conflicts
    assert [(v.text, v.removed) for v in conflict.versions] == [("high", False), ("", True)]


def test_values_keep_their_meaning_f11() -> None:
    base = "dur: 1:30:00\nid: 0123\nversion: 1.10\nt: 12:30\nd: 2026-02-30\nno: no\ntitle: a"
    merged = both(base, base.replace("title: a", "title: b"), base.replace("12:30", "12:31") + "\nx: 1")
    assert block(merged) == base.replace("title: a", "title: b").replace("12:30", "12:31") + "\nx: 1\n"


def test_f37_a_key_that_claude_moved_under_metadata_is_not_deleted() -> None:
    base = "id: mem-a\ntags:\n  - a\ncreated: 2026-01-01\ntitle: x"
    moved = "title: x\nmetadata:\n  id: mem-a\n  tags:\n    - a\n  created: 2026-01-01"
    edited = base.replace("  - a", "  - a\n  - b").replace("title: x", "title: y")
    merged = both(base, moved, edited)
    assert merged.conflicts == []
    assert parse(merged.text).fields == {
        "title": "y",
        "metadata": {"id": "mem-a", "tags": ["a", "b"], "created": "2026-01-01"},
    }


def test_metadata_merges_per_key() -> None:
    merged = both("metadata:\n  a: 1\n  b: 2", "metadata:\n  a: 3\n  b: 2", "metadata:\n  a: 1\n  b: 4\n  c: 5")
    assert block(merged) == "metadata:\n  a: 3\n  b: 4\n  c: 5\n"


def test_the_same_fact_written_on_two_machines_is_one_note_without_a_conflict() -> None:
    one = "id: mem-a\ntitle: x\nagent: claude\ndevice: laptop\ncreated: 2026-01-01T00:00:00Z"
    two = "id: mem-a\ntitle: x\nagent: codex\ndevice: desk\ncreated: 2026-01-02T00:00:00Z"
    merged = both(None, one, two)
    fields = parse(merged.text).fields
    assert merged.conflicts == []
    assert (fields["agent"], fields["device"], fields["created"]) == ("claude", "laptop", "2026-01-01T00:00:00Z")
    assert [(item["field"], item["value"]) for item in fields["merged"]] == [("agent", "codex"), ("device", "desk")]  # type: ignore[index,call-overload]


def test_a_third_version_joins_the_conflict() -> None:
    merged = both(BASE, BASE.replace("low", "high"), BASE.replace("low", "mid"))
    third = merge(note(BASE), merged.text, note(BASE.replace("low", "odd")))
    (conflict,) = find_conflicts(third.text)
    assert [v.text for v in conflict.versions] == ["high", "mid", "odd"]


def test_settled_here_and_untouched_there_is_settled() -> None:
    first = both(BASE, BASE.replace("low", "high"), BASE.replace("low", "mid")).text
    settled = note(BASE.replace("low", "mid"))
    touched = first.replace(b"text\n", b"text\n\nmore\n")
    merged = merge(first, settled, touched)
    assert merged.text == settled.replace(b"text\n", b"text\n\nmore\n") and merged.conflicts == []


def test_settled_in_two_ways_is_a_conflict_again() -> None:
    first = both(BASE, BASE.replace("low", "high"), BASE.replace("low", "mid")).text
    merged = merge(first, note(BASE.replace("low", "high")), note(BASE.replace("low", "mid")))
    assert [[v.text for v in c.versions] for c in find_conflicts(merged.text)] == [["high", "mid"]]


def test_a_key_named_conflicts_that_is_not_ours_is_kept() -> None:
    merged = both("conflicts: none\na: 1", "conflicts: none\na: 2", "conflicts: none\na: 1\nb: 1")
    assert block(merged) == "conflicts: none\na: 2\nb: 1\n"
    clash = merge(note("conflicts: none\na: 1"), note("conflicts: none\na: 2"), note("conflicts: none\na: 3"))
    assert b"a: 2" in clash.text and b"a: 3" in clash.text and clash.conflicts


def test_a_block_on_one_side_only() -> None:
    merged = merge(b"text\n", note("id: a"), b"text\n\nmore\n")
    assert merged.text == note("id: a", "text\n\nmore\n")


def test_a_map_in_braces_is_read() -> None:
    merged = merge(b"---\n{a: 1, b: 2}\n---\nx\n", b"---\n{a: 3, b: 2}\n---\nx\n", b"---\n{a: 1, b: 4}\n---\nx\n")
    assert parse(merged.text).fields == {"a": "3", "b": "4"}


def test_more_than_the_largest_block_becomes_two_files_in_one() -> None:
    big = "x" * 40_000
    merged = merge(note("a: 1"), note(f"a: {big}y"), note(f"a: {big}z"))
    assert parse(merged.text).problem is None
    assert [c.kind for c in merged.conflicts] == ["file"]
    assert {v.data for v in merged.conflicts[0].versions} == {note(f"a: {big}y"), note(f"a: {big}z")}


ODD = """conflicts:
  - a word of a person
  - {field: title, 1: {value: x}}
  - what: else
  - field: [a, b]
  - field: other
    1: text
  - field: other
    1:
      value: x
      colour: red
  - field: other
    1:
      nothing: here
  - field: none
  - field: priority
    1:
      value: a
    2:
      value: b
  - field: priority
    1:
      value: c
merged:
  - text
  - field: status
    removed: true
  - field: status
    value: open
priority: a
title: T"""


def test_what_a_person_wrote_into_our_lists_stays_and_our_own_items_still_count() -> None:
    merged = both(ODD, ODD.replace("title: T", "title: T\nx: 1"), ODD.replace("title: T", "title: T\ny: 1"))
    for line in ODD.splitlines():
        assert line in block(merged).splitlines(), line
    (waiting,) = find_conflicts(merged.text)
    assert waiting.name == "priority" and [v.text for v in waiting.versions] == ["a", "b"]
    settled = settle(merged.text, "priority", "2").decode()
    assert "a word of a person" in settled and "colour: red" in settled and "priority: b" in settled


def test_odd_items_of_both_sides_are_joined() -> None:
    one = "conflicts:\n  - one\ntitle: T\nx: a"
    two = "conflicts:\n  - two\ntitle: T\nx: b"
    merged = both("title: T\nx: 0", one, two)
    assert "  - one\n" in block(merged) and "  - two\n" in block(merged)
    assert [c.name for c in find_conflicts(merged.text)] == ["x"]


def test_a_record_that_claude_moved_under_metadata_is_read_and_settled_there() -> None:
    record = "    - field: priority\n      1:\n        value: a\n      2:\n        value: b\n"
    moved = f"metadata:\n  conflicts:\n{record}  priority: a"
    (found,) = find_conflicts(note(moved))
    assert found.name == "priority"
    assert settle(note(moved), "priority", "2") == note("metadata:\n  priority: b")


def test_a_list_of_conflicts_that_is_a_map_or_a_text_is_a_persons_key() -> None:
    for other in ("conflicts: see the log", "conflicts:\n  port: 80"):
        merged = both(other + "\nx: 1", other + "\nx: 1\ny: 1", other + "\nx: 1\nz: 1")
        assert other in block(merged) and find_conflicts(merged.text) == []


def test_tags_that_are_no_list_clash_as_a_whole() -> None:
    merged = both("tags: a", "tags: {x: y}", "tags: [b]")
    assert [c.name for c in merged.conflicts] == ["tags"]
    assert parse(settle(merged.text, "tags", "one, two,,")).fields["tags"] == ["one", "two"]


def test_an_empty_id_gives_way() -> None:
    assert block(both(None, "id:\ntitle: x", "id: mem-a\ntitle: x")) == "id: mem-a\ntitle: x\n"


def test_an_id_that_is_given_up_is_kept_wherever_the_note_keeps_its_ids() -> None:
    merged = both(None, "metadata:\n  id: mem-b\n  x: 1", "metadata:\n  id: mem-a\n  x: 1")
    assert parse(merged.text).fields["metadata"] == {"id": "mem-a", "x": "1", "aliases": ["mem-b"]}
    merged = both(None, "id: mem-b\naliases: {x: y}", "id: mem-a\naliases: {x: y}")
    assert parse(merged.text).fields["merged"] == [{"field": "id", "value": "mem-b"}]


def test_quoting_by_either_side_and_a_new_value_by_the_other_is_no_conflict() -> None:
    assert block(both("a: b", "a:", 'a: "b"')) == "a:\n"
    assert block(both("a: b", "a: z", 'a: "b"')) == "a: z\n"


def test_facts_that_became_a_text_are_a_conflict_with_the_map() -> None:
    merged = both("facts:\n  a: 1\n  b: 2", "facts: none", "facts:\n  a: 1\n  b: 3")
    assert [c.name for c in merged.conflicts] == ["facts"]


def test_keys_that_share_no_plain_line_are_read_all_the_same() -> None:
    merged = both("? a\n: 1\nb: 2", "? a\n: 1\nb: 3", "? a\n: 1\nb: 2\nc: 4")
    assert parse(merged.text).fields == {"a": "1", "b": "3", "c": "4"}
    merged = both("x: { ? a : 1 }\nb: 2", "x: { ? a : 1 }\nb: 3", "x: { ? a : 2 }\nb: 2")
    assert parse(merged.text).fields == {"x": {"a": "2"}, "b": "3"}


def test_a_comment_behind_a_block_of_text_belongs_to_the_next_key() -> None:
    base = "a: |\n  x\n# about b\nb: 1"
    assert block(both(base, base.replace("  x", "  y"), base.replace("b: 1", "b: 2"))) == "a: |\n  y\n# about b\nb: 2\n"
    assert block(both(base, "# about b\nb: 1", base.replace("b: 1", "b: 2"))) == "# about b\nb: 2\n"


def test_a_list_item_of_two_lines_that_looks_like_two_items_is_one() -> None:
    base = 'tags:\n  - "a\n    - b"\n  - c'
    merged = both(base, base + "\n  - d", base + "\n  - e")
    assert sorted(parse(merged.text).fields["tags"]) == ["a - b", "c", "d", "e"]


def test_a_key_that_one_side_moved_to_the_top_takes_the_others_new_value_along() -> None:
    base = "metadata:\n  x: 1\n  y: 1"
    merged = both(base, "x: 1\nmetadata:\n  y: 1", "metadata:\n  x: 2\n  y: 1")
    assert parse(merged.text).fields == {"x": "2", "metadata": {"y": "1"}} and merged.conflicts == []


def test_metadata_that_is_a_text_is_a_field_like_any_other() -> None:
    merged = both("metadata: word\na: 1", "metadata: word\na: 2", "metadata: other\na: 1")
    assert parse(merged.text).fields == {"metadata": "other", "a": "2"}


def test_what_one_side_took_out_of_our_lists_stays_out() -> None:
    for listed in ("merged:\n  - field: status\n    value: open", "conflicts:\n  - a word"):
        base = listed + "\ntitle: T"
        assert block(both(base, "title: T", base.replace("title: T", "title: U"))) == "title: U\n"
        more = listed + listed[listed.index("\n") :].replace("open", "done").replace("a word", "another")
        merged = both(base, more + "\ntitle: T", listed.partition("\n")[0] + " []\ntitle: U")
        assert "open" not in block(merged) and "a word" not in block(merged)
        assert "done" in block(merged) or "another" in block(merged)
