"""What `set` refuses: a value that `check` would complain of. What was wrong before stays, and hinders no other field."""

from __future__ import annotations

import subprocess

import pytest

from mdmem.errors import UsageError
from mdmem.memory.change import set_fields
from mdmem.store import Store


@pytest.fixture
def saved(store: Store) -> str:
    path = "memories/deploy-mem-aaaaaaaaaaaa.md"
    text = "---\nid: mem-aaaaaaaaaaaa\ntype: fact\ntitle: Deploy\nvalid_from: soon\n---\n\nOn Thursdays.\n"
    (store.root / "memories").mkdir(exist_ok=True)
    (store.root / path).write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("field", "value"),
    [("created", "yesterday"), ("expires", "2026-13-45"), ("importance", "2"), ("confidence", "high"), ("tier", "top"),
     ("scope", "everybody"), ("kind", "thought"), ("status", "lost")],
)  # fmt: skip
def test_a_value_that_the_field_does_not_take_is_refused(store: Store, saved: str, field: str, value: str) -> None:
    before = (store.root / saved).read_bytes()
    with pytest.raises(UsageError) as told:
        set_fields(store, saved, {field: value})
    assert field in str(told.value) or "status" in str(told.value)
    assert told.value.hint or told.value.why
    assert (store.root / saved).read_bytes() == before


def test_what_was_wrong_before_hinders_no_other_field(store: Store, saved: str) -> None:
    assert set_fields(store, saved, {"importance": "0.5", "expires": "2027-01-01", "x-own": "anything"}).changed
    text = (store.root / saved).read_text("utf-8")
    assert "importance: 0.5" in text and "valid_from: soon" in text and "x-own: anything" in text
    assert subprocess.run(["git", "-C", str(store.root), "status", "--porcelain"], capture_output=True).stdout == b""
