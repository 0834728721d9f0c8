"""Messages: to one, to all, receipts, threads, an end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mdmem.cli.main import run
from mdmem.clock import FixedClock
from mdmem.errors import UsageError
from mdmem.identity import Identity
from mdmem.store import Store
from mdmem.team import messages


def other(store: Store, agent: str = "reviewer", device: str = "desk") -> Store:
    made = Store(store.location, store.config, store.clock, store.cwd)
    made.__dict__["identity"] = Identity(agent, device)
    return made


def test_there_and_back(store: Store) -> None:
    reader = other(store)
    sent, committed, _ = messages.send(store, ["reviewer"], "Please look", "at the plan\n\n- one")
    assert committed and messages.inbox(store) == []
    found = messages.inbox(reader, unread=True)
    assert [m.id for m in found] == [sent.id] and messages.as_row(found[0], reader)["from"] == "tester@laptop"
    answer, _, _ = messages.reply(reader, sent.id or "", "Looks good")
    assert messages.inbox(reader, unread=True) == []
    back = messages.as_row(messages.inbox(store)[0], store)
    assert (back["subject"], back["in_reply_to"], back["thread"]) == ("Re: Please look", sent.id, sent.id)
    assert [m.id for m in messages.thread(store, answer.id or "")] == [sent.id, answer.id]
    assert messages.as_row(messages.thread(store, sent.id or "")[0], store)["read_by"] == ["reviewer@desk"]


def test_to_all_reaches_each_device_and_not_the_sender(store: Store) -> None:
    messages.send(store, ["all"], "The build is frozen")
    one, two = other(store, "a", "x"), other(store, "a", "y")
    assert len(messages.inbox(one)) == len(messages.inbox(two)) == 1 and messages.inbox(store) == []
    messages.ack(one, "The build is frozen")
    assert messages.inbox(one, unread=True) == [] and len(messages.inbox(two, unread=True)) == 1
    messages.ack(two, "The build is frozen")
    assert messages.inbox(two, everything=True)[0].words("read_by") == ["a@x", "a@y"]


def test_by_device(store: Store) -> None:
    messages.send(store, ["reviewer@desk"], "Here")
    assert messages.inbox(other(store)) and not messages.inbox(other(store, device="sofa"))


def test_an_end_date(store: Store) -> None:
    assert isinstance(store.clock, FixedClock)
    messages.send(store, ["all"], "Short", ttl="2d")
    reader = other(store)
    assert messages.inbox(reader)
    store.clock.moment += timedelta(days=3)
    assert messages.inbox(reader) == [] and messages.inbox(reader, everything=True)


def test_bad_words(store: Store) -> None:
    with pytest.raises(UsageError):
        messages.send(store, [""], "x")
    with pytest.raises(UsageError):
        messages.send(store, ["a"], " ")


def test_one_line_a_message(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one wrote oneself is not unread, and what is urgent says so."""
    note, _, _ = messages.send(store, ["rival"], "哪个区域？", type_="question", priority="high")
    assert run(["-C", str(store.root), "thread", note.id or ""]) == 0
    assert capsys.readouterr().out.startswith("● 2026-11-30 [question, high]")
    monkeypatch.setenv("MDMEM_AGENT", "tester")
    monkeypatch.setenv("MDMEM_DEVICE", "laptop")
    assert run(["-C", str(store.root), "thread", note.id or ""]) == 0
    assert capsys.readouterr().out.startswith("  2026-11-30 [question, high]")
