"""Editing JSON as text: what is put in can be read back, what is taken out leaves the bytes that were there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdmem.install.json_text import BadJson, JsonText, load, parse
from tests.examples import examples

SCALARS = st.none() | st.booleans() | st.integers(-999, 999) | st.text(max_size=6)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)
FORMS = st.sampled_from([{"indent": 2}, {"indent": 4}, {"indent": "\t"}, {"separators": (",", ":")}, {}])


@settings(max_examples=examples(150), deadline=None)
@given(OBJECTS, FORMS, st.booleans(), VALUES)
def test_put_then_remove_leaves_the_same_text(data: dict[str, Any], form: dict[str, Any], crlf: bool, value: Any) -> None:
    text = json.dumps(data, ensure_ascii=False, **form)
    text = text.replace("\n", "\r\n") if crlf else text
    assert load(text, parse(text)) == data
    edit = JsonText(text)
    edit.put(("new key", "inner"), value)
    assert json.loads(edit.text) == {**data, "new key": {"inner": value}}
    edit.append(("list of ours",), value)
    edit.append(("list of ours",), 1)
    assert json.loads(edit.text)["list of ours"] == [value, 1]
    edit.remove(("list of ours",), 0)
    edit.remove(("list of ours",))
    edit.remove(("new key",))
    assert edit.text == text


@settings(max_examples=examples(100), deadline=None)
@given(OBJECTS.filter(bool), FORMS, st.data())
def test_removing_any_member_keeps_the_others(data: dict[str, Any], form: dict[str, Any], draw: st.DataObject) -> None:
    key = draw.draw(st.sampled_from(sorted(data)))
    edit = JsonText(json.dumps(data, **form))
    edit.remove((key,))
    assert json.loads(edit.text) == {name: value for name, value in data.items() if name != key}


@pytest.mark.parametrize(
    "text", ["", "{", "[1,]", '{"a":1,}', '{"a" 1}', "{a:1}", "01", '"\n"', "nul", "{} {}", "[" * 500, '{"a":"\\u12"}']
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises((BadJson, ValueError)):
        load(text, parse(text))


def test_comments_and_trailing_commas_stay_when_they_are_allowed() -> None:
    text = '{\n  // mine\n  "servers": {\n    "a": {"x": 1}, /* b */\n  },\n}\n'
    with pytest.raises(BadJson):
        JsonText(text)
    edit = JsonText(text, comments=True)
    edit.put(("servers", "mdmem"), {"command": "m"})
    assert "// mine" in edit.text and "/* b */" in edit.text
    assert edit.get(("servers",)) == {"a": {"x": 1}, "mdmem": {"command": "m"}}
    edit.remove(("servers", "mdmem"))
    assert edit.text == text


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(BadJson, match="twice"):
        JsonText('{"hooks": 1, "hooks": 2}').put(("hooks",), 3)
