"""The quick JSON of hooks is JSON: the same values and texts as the standard library's, and the same refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmem.quickjson import dumps, loads

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_texts_and_values_are_those_of_json(value: Any) -> None:
    assert dumps(value) == json.dumps(value, separators=(",", ":"))
    assert loads(dumps(value)) == value
    assert loads(json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")) is not Ellipsis


def test_a_bom_blanks_and_odd_keys() -> None:
    assert loads(b'\xef\xbb\xbf \n{"a": [1, 2.5, "\\u00e9"]}\r\n ') == {"a": [1, 2.5, "é"]}
    assert dumps({1: (True, None)}) == '{"1":[true,null]}'
    assert json.loads(dumps(float("inf"))) == float("inf")


@pytest.mark.parametrize("text", [b"", b" ", b"{", b'{"a"}', b"[1] x", b"nul", b'{"a": 1}{"b": 2}', b"\xff\xfe", b'"\x01"'])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        loads(text)


def test_deep_nesting_ends_by_itself() -> None:
    with pytest.raises((ValueError, RecursionError)):
        loads(b"[" * 200_000)


def test_neither_json_nor_re_is_imported() -> None:
    code = "import sys, mdmem.quickjson as q; q.loads(q.dumps({'a': 1})); print({'json', 're', 'enum'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=".")
    assert done.stdout.strip() == "set()"
