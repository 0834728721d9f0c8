"""The schema for other programs says of a note what our own check says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from mdmem.memory.remember import Memory, remember
from mdmem.notes.json_schema import json_schema
from mdmem.notes.note import load
from mdmem.notes.schema import FIELDS, validate
from mdmem.store import Store
from mdmem.team import messages, tasks

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed (it comes with mdmem[test])")
ROOT = Path(__file__).resolve().parents[2]


def as_others_read_it(text: str) -> object:
    """Return the block as a plain YAML reader gives it; a date as its text, since JSON has none."""

    class Reader(yaml.SafeLoader):
        pass

    Reader.yaml_implicit_resolvers = {
        letter: [(tag, regexp) for tag, regexp in found if tag != "tag:yaml.org,2002:timestamp"]
        for letter, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return yaml.load(text.split("---\n")[1], Reader)


def fits(text: str) -> bool:
    return bool(jsonschema.Draft7Validator(json_schema()).is_valid(as_others_read_it(text)))


def test_it_is_a_schema_and_names_every_field() -> None:
    schema = json_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    assert list(schema["then"]["properties"]) == list(FIELDS)


BLOCKS = [
    ("kind: memory\ntype: decision\ntitle: 2026\npinned: true\nimportance: 0.7\n", True),
    ("kind: memory\nimportance: 1.7\n", False),
    ("kind: memory\nconfidence: high\n", False),
    ("kind: memory\ntier: high\n", False),
    ("kind: memory\nstatus: done\n", False),
    ("kind: memory\nstatus: superseded\n", True),
    ("kind: task\nstatus: done\n", True),
    ("kind: task\nstatus: archived\n", False),
    ("kind: entity\nstatus: archived\nblocked_by:\n  - a\n  - [[b]]\n", True),
    ("kind: page\n", False),
    ("kind: memory\nscope: everywhere\n", False),
    ("kind: memory\nscope: project:shop\n", True),
    ("kind: memory\ncreated: someday\n", False),
    ("kind: memory\ncreated: 2026-11-30\nexpires: 2026-11-30T09:00:00Z\n", True),
    ("kind: memory\ntitle:\n  - a\n", False),
    ("kind: note\nstatus: draft\nconfidence: low\n", True),
    ("kind: memory\ntags: one\nmood: [1, {a: b}]\n", True),
]


@pytest.mark.parametrize(("block", "good"), BLOCKS)
def test_it_agrees_with_our_own_check(block: str, good: bool) -> None:
    text = f"---\n{block}---\n"
    assert fits(text) is good
    assert (validate(load("memories/x.md", text.encode())) == []) is good


def test_notes_and_templates_fit(store: Store) -> None:
    remember(store, Memory("decision", "We deploy on Thursdays.", tags=["deploy"]))
    tasks.add(store, "Upgrade", priority="high")
    messages.send(store, ["all"], "Hello", ttl="7d")
    texts = [path.read_text("utf-8") for path in store.root.rglob("*.md")]
    assert len(texts) == 3
    for path in (ROOT / "templates").glob("*.md"):
        if path.name != "README.md":
            texts.append(path.read_text("utf-8").replace("{{title}}", "T").replace("{{date:YYYY-MM-DD}}", "2026-11-30"))
    for text in texts:
        assert fits(text), text


def test_the_command_prints_it_without_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from mdmem.cli.main import group

    monkeypatch.chdir(tmp_path)
    for args in (["schema"], ["schema", "--json"]):
        assert json.loads(CliRunner().invoke(group, args).output) == json_schema()
