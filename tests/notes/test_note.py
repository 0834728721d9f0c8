"""A note's fields as mdmem sees them, and what validation says about them."""

from __future__ import annotations

import pytest

from mdmem.errors import BadNote
from mdmem.notes import schema
from mdmem.notes.frontmatter import edit, parse, reform, render
from mdmem.notes.markdown import first_heading, inline_tags
from mdmem.notes.note import UNREADABLE, Note, load


def note(block: str, body: str = "", path: str = "memories/a.md") -> Note:
    return load(path, f"---\n{block}\n---\n\n{body}".encode())


def codes(found: Note) -> list[tuple[str, int | None]]:
    return [(problem.code, problem.line) for problem in schema.validate(found)]


CLAUDE = """name: use-tabs
description: Tabs, not spaces
metadata:
  type: feedback
  node_type: memory
  originSessionId: 9a1c
  modified: 2026-11-30T09:53:00.123Z
  id: mem-1
  tags:
    - style
  created: 2026-11-01"""


def test_f37_a_note_that_claude_code_rewrote_reads_the_same() -> None:
    theirs = note(CLAUDE, path="claude/proj/use-tabs.md")
    assert (theirs.id, theirs.title, theirs.summary, theirs.kind) == ("mem-1", "use-tabs", "Tabs, not spaces", "memory")
    assert (theirs.type, theirs.tags, theirs.session) == ("preference", ["style"], "9a1c")
    assert (theirs.created, theirs.updated) == ("2026-11-01", "2026-11-30T09:53:00.123Z")
    assert codes(theirs) == []
    view = theirs.effective()
    assert view["id"] == "mem-1" and view["type"] == "preference" and view["title"] == "use-tabs" and "metadata" not in view


def test_updated_is_the_later_of_ours_and_claudes() -> None:
    block = "metadata:\n  updated: 2026-11-30T09:00:00Z\n  modified: {}"
    assert note(block.format("2026-11-30T09:53:00.123Z")).updated == "2026-11-30T09:53:00.123Z"
    assert note(block.format("2026-11-30T08:00:00.123Z")).updated == "2026-11-30T09:00:00Z"
    assert note(block.format("soon")).updated == "2026-11-30T09:00:00Z"
    assert note("metadata:\n  node_type: memory", path="docs/x.md").kind == "memory"


def test_the_top_level_wins_over_metadata() -> None:
    both = note("title: top\nname: n\nmetadata:\n  title: inner\n  type: user\ntype: decision")
    assert (both.title, both.type) == ("top", "decision")


@pytest.mark.parametrize(("theirs", "ours"), schema.CLAUDE_TYPES.items())
def test_claudes_types_are_mapped_for_memories_only(theirs: str, ours: str) -> None:
    assert note(f"type: {theirs}").type == ours
    assert note(f"type: {theirs}", path="entities/project/x.md").type == theirs


def test_kind_comes_from_the_field_then_the_folder() -> None:
    assert note("kind: task").kind == "task"
    assert note("kind: nonsense").kind == "memory"
    places = {
        "memories/a.md": "memory",
        "entities/project/a.md": "entity",
        "sessions/2026/11/a.md": "session",
        "tasks/a.md": "task",
        "messages/a.md": "message",
        "agents/a.md": "agent",
        "claude/p/a.md": "memory",
        "claude/p/MEMORY.md": "note",
        "docs/a.md": "note",
        "memories.md": "note",
    }
    assert {path: schema.default_kind(path) for path in places} == places
    assert note("title: x", path="entities/decision/x.md").type == "decision"


def test_title_falls_back_to_heading_then_file_name() -> None:
    assert note("a: 1", "```sh\n# no\n```\n## Real one ##\n").title == "Real one"
    assert load("x/my file.md", b"text").title == "my file"
    assert note("title: ''", "# h").title == "h"


@pytest.mark.parametrize(
    ("block", "tags"),
    [
        ("tags: [a, '#b', a]", ["a", "b"]),
        ("tags: a, b", ["a", "b"]),
        ("tags:", []),
        ("tags: null", []),
        ("tags: {a: b}", []),
        ("tags: अनीता", ["अनीता"]),
        ("tags: ['50%_x\\y']", ["50%_x\\y"]),
        ("x: 1", []),
    ],
)
def test_n14_n18_tags(block: str, tags: list[str]) -> None:
    assert note(block).tags == tags


def test_edges_take_one_or_many_and_links() -> None:
    edges = note("initiative: [[Foo]]\nblocks: [[[A]], b]\nblocked_by:\n  - '[[C|c]]'\n  - d").edges()
    assert edges == {"initiative": ["[[Foo]]"], "blocks": ["[[A]]", "b"], "blocked_by": ["[[C|c]]", "d"]}


def test_f14_a_date_that_does_not_exist_is_a_text_and_a_finding() -> None:
    found = note("title: x\ncreated: 2026-02-30\nupdated: 2026-11-30T09:53:00Z")
    assert found.created == "2026-02-30" and codes(found) == [("bad_date", 3)]


def test_findings_name_their_lines() -> None:
    found = note(
        "status: lost\nscope: everyone\nimportance: 2\ntier: gold\nkind: x\ntitle:\n  - a\nd: a #b\n"
        "due: soon\nmetadata:\n  expires: x"
    )
    assert codes(found) == [
        ("bad_status", 2),
        ("bad_scope", 3),
        ("bad_number", 4),
        ("bad_tier", 5),
        ("bad_kind", 6),
        ("not_text", 7),
        ("comment_in_value", 9),
        ("bad_date", 10),
        ("bad_date", 12),
    ]
    assert codes(note("type: own-type\nstatus: draft", path="docs/x.md")) == []


def test_f26_a_bad_block_is_one_finding_and_the_text_is_still_there() -> None:
    bad = note("title: 'don't'", "findme")
    assert not bad.ok and codes(bad) == [("bad", 2)] and "findme" in bad.body and bad.title == "a"


def test_every_field_of_the_schema_has_a_rule() -> None:
    rules = {"identity", "scalar", "set", "earliest", "latest", "smallest", "facts", "status"}
    assert set(schema.FIELDS.values()) == rules
    assert {name for name, rule in schema.FIELDS.items() if rule == "set"} == schema.SET_FIELDS
    assert schema.merge_rule("anything") == "scalar"


def test_f29_f32_inline_tags_come_from_words_not_from_prose() -> None:
    assert inline_tags("#a and text #b/c #") == ["a", "b/c"]
    assert inline_tags("#") == [] and inline_tags("x #\n") == []
    prose = "- Added [[X]] to the roster\n[24:33.098 - 24:41.260]\n- [/] todo\n# Heading\nC# a#b #12 `#code`\n```\n#x\n```\nhttp://x/#frag\n"
    assert inline_tags(prose) == []
    assert inline_tags("#अनीता #日本") == ["अनीता", "日本"]
    assert first_heading("text\n#nohead\n") == ""


def test_reform_changes_form_only() -> None:
    data = b"---\r\ntitle: Fix #12 crash\r\nstatus: open  # or done\r\ntags: [a, 'b c'] # keep\r\nother: [1, 2]\r\n---\r\nx"
    after = reform(data)
    assert after == (
        b'---\r\ntitle: "Fix #12 crash"\r\nstatus: open  # or done\r\n'
        b"tags: # keep\r\n  - a\r\n  - b c\r\nother: [1, 2]\r\n---\r\nx"
    )
    assert reform(after) == after and parse(after).fields["title"] == "Fix #12 crash"


def test_reform_leaves_alone_what_it_cannot_read_and_what_needs_nothing() -> None:
    assert reform(b"just text\n") == b"just text\n"
    with pytest.raises(BadNote, match="stands twice"):
        reform(b"---\na: 1\na: 2\n---\n")
    nested = b"---\nmetadata:\n  tags: [a, b]\n  note: Fix #12\nflow: {tags: [a]}\n---\n"
    assert reform(nested) == b'---\nmetadata:\n  tags:\n    - a\n    - b\n  note: "Fix #12"\nflow: {tags: [a]}\n---\n'


def test_a_line_is_named_for_each_way_a_field_can_be_written() -> None:
    theirs = note(CLAUDE, path="claude/proj/use-tabs.md")
    lines = {name: theirs.line_of(name) for name in ("title", "summary", "updated", "id", "tags", "status")}
    assert lines == {"title": 2, "summary": 3, "updated": 8, "id": 9, "tags": 10, "status": None}
    assert load("a.md", b"no block").line_of("title") is None
    assert load("a.md", b"---\na: 1\na: 2\n---\n").line_of("a") is None
    assert note("metadata: x\ntitle: t").line_of("id") is None


def test_every_field_is_seen_wherever_it_stands() -> None:
    odd = note("name: n\nmetadata: a word").effective()
    assert odd == {"name": "n", "metadata": "a word", "title": "n"}
    links = note("rel:\n  - [[A]]\n  - B\nrelates_to: [ [[C]], [[D, E]], {x: 1}, [x, y], B, B]")
    assert links.words("rel") == ["[[A]]", "B"] and links.words("relates_to") == ["[[C]]", "[[D, E]]", "B"]
    assert note("facts: {a: 1}").words("facts") == []


def test_a_heading_without_words_is_no_title_and_a_code_span_may_hold_ticks() -> None:
    assert first_heading("# \n#  ##\ntext\n## Real ##\n") == "Real"
    assert inline_tags("`` `#no` `` #yes ```#open #too") == ["yes", "too"]


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("---\ntitle: a\nscope: user:ann\ntags: [a\n---\nbody\n", "user:ann"),  # bad YAML below
        ("---\ntitle: a: b\nscope: 'agent:bot' # mine\n---\nbody\n", "agent:bot"),
        ("---\ntitle: a: b\nmetadata:\n  scope: local\n---\nbody\n", "local"),
        ('---\n{title: "a, "scope": "user:ann"}\n---\nbody\n', "user:ann"),
        ("---\ntitle: a\nscope: user:ann\nbody", "user:ann"),  # never closed: an editor was killed
        ("---\ntitle: a\nsco", UNREADABLE),  # cut before it was said
        ("---\n<<<<<<< a\nscope: shared\n=======\nscope: user:ann\n>>>>>>> b\n---\n", UNREADABLE),  # both sides
        ("---\nscope: [user:ann, user:bob]\n---\nbody\n", UNREADABLE),  # no text
        ("---\nscope: {user: ann}\n---\nbody\n", UNREADABLE),
        ("\n\n---\nscope: user:ann\n---\nbody\n", "user:ann"),  # a block that does not stand on line 1
        ("---\ntitle: a: b\n---\nbody\n", ""),  # whole, and it says nothing of a scope
        ("---\nscope:\n---\nbody\n", ""),
        ("no block; the scope: of this is plain\n", ""),
        ("\0 no block; the scope: of this is plain\n", ""),
        ("---\nscope: project:x\n---\nthe scope: is here\n", "project:x"),
    ],
)
def test_a_scope_that_cannot_be_read_is_not_taken_for_shared(text: str, scope: str) -> None:
    assert load("memories/a.md", text.encode()).scope == scope
    if scope and "\n\n---" not in text:
        assert load("memories/a.md", text.encode("utf-16")).scope in (scope, UNREADABLE)


def test_a_link_on_the_line_below_its_key_is_a_link() -> None:
    assert note("rel:\n  [[A]]\nrelates_to:\n  - [[B]]").words("rel") == ["[[A]]"]


def test_the_fields_of_work_are_read_where_claude_code_puts_them() -> None:
    for form in ("status: open\npriority: high\noutcome: shipped\ndue: 2026-12-01",
                 "metadata:\n  status: open\n  priority: high\n  outcome: shipped\n  due: 2026-12-01"):  # fmt: skip
        task = note(form, path="tasks/a.md")
        assert (task.status, task.priority, task.outcome, task.due) == ("open", "high", "shipped", "2026-12-01")


@pytest.mark.parametrize("value", ["a\x00b", ["x", "\x1b[31m"], {"key\x07": "x"}, {"key": ["\ud800"]}])
def test_a_value_with_a_character_that_no_file_may_hold_is_refused_by_its_number(value: object) -> None:
    for write in (lambda: render({"note": value}, "text"), lambda: edit(b"---\ntitle: x\n---\n", {"note": value})):
        with pytest.raises(BadNote, match="cannot be a field") as caught:
            write()
        assert caught.value.code == "control_character" and "U+" in str(caught.value.why)
