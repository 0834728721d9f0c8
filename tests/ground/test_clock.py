"""Dates that people type and dates in notes."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from mdmem.clock import SystemClock, parse_time, read_stamp, seconds, stamp
from mdmem.errors import UsageError

NOW = datetime(2026, 11, 30, 9, 53, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-05-18", "2026-05-18T00:00:00Z", "2026-05-18T23:59:59Z"),
        ("2026-05", "2026-05-01T00:00:00Z", "2026-05-31T23:59:59Z"),
        ("2026-12", "2026-12-01T00:00:00Z", "2026-12-31T23:59:59Z"),
        ("2026", "2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z"),
        ("7d", "2026-11-23T09:53:00Z", "2026-11-23T09:53:00Z"),
        ("8h", "2026-11-30T01:53:00Z", "2026-11-30T01:53:00Z"),
        ("yesterday", "2026-11-29T00:00:00Z", "2026-11-29T23:59:59Z"),
        ("2026-05-18T10:00:00+02:00", "2026-05-18T08:00:00Z", "2026-05-18T08:00:00Z"),
        ("2026-05-18 10:00", "2026-05-18T10:00:00Z", "2026-05-18T10:00:00Z"),
    ],
)
def test_what_people_type(text: str, start: str, end: str) -> None:
    assert stamp(parse_time(text, NOW)) == start
    assert stamp(parse_time(text, NOW, end=True)) == end


@pytest.mark.parametrize("text", ["", "soon", "2026-02-30", "2026-13", "2026-13-01", "0000-01-01", "99999999y", "9999999d"])
def test_what_is_no_date_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_time(text, NOW)


def test_f14_an_impossible_date_is_none_and_raises_nothing() -> None:
    assert read_stamp("2026-02-30") is None
    assert read_stamp("0000-00-00T00:00:00Z") is None


def test_durations() -> None:
    assert seconds("30s") == 30 and seconds("2w") == 1209600
    with pytest.raises(UsageError):
        seconds("soon")


def test_the_environment_fixes_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDMEM_NOW", "2026-01-02T03:04:05Z")
    assert stamp(SystemClock().now()) == "2026-01-02T03:04:05Z"
