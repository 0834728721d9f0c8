"""Time: an injected clock, RFC 3339 stamps, and the dates that people type."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Protocol

from mdmem.errors import UsageError

UTC = timezone.utc


class Clock(Protocol):
    """Anything that tells the time."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""


class SystemClock:
    """The machine's clock, or the moment in MDMEM_NOW when that is set."""

    def now(self) -> datetime:
        fixed = os.environ.get("MDMEM_NOW")
        if fixed:
            return _rfc3339(fixed) or datetime.now(UTC)
        return datetime.now(UTC)


@dataclass
class FixedClock:
    """A clock for tests: stands still until moved."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment

    def advance(self, **parts: float) -> None:
        """Move the clock by timedelta(**parts)."""
        self.moment += timedelta(**parts)


def stamp(moment: datetime) -> str:
    """Return `2026-11-30T09:53:00Z` for an aware datetime (seconds, UTC)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_RFC = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s*(Z|z|[+-]\d{2}:?\d{2})?)?$"
)
_AGO = re.compile(r"(\d{1,6})\s*(s|m|min|h|d|w|mo|y)$")
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800, "mo": 2592000, "y": 31536000}


def _rfc3339(text: str) -> datetime | None:
    match = _RFC.match(text.strip())
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    offset = UTC
    if zone and zone not in "Zz":
        sign = -1 if zone[0] == "-" else 1
        digits = zone[1:].replace(":", "")
        delta = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        offset = timezone(sign * delta) if delta < timedelta(hours=24) else UTC
    micro = int((fraction or "0")[:6].ljust(6, "0"))
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micro, offset
        )
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=4096)
def read_stamp(text: str) -> datetime | None:
    """Return the moment that a note's date field names, or None if it names none."""
    return _rfc3339(text)


def seconds(text: str) -> float:
    """Return the seconds in a duration such as `30s`, `10m`, `8h`, `7d`, `2w`; raises UsageError."""
    match = _AGO.match(text.strip().lower())
    if not match:
        raise UsageError(f"not a duration: {text!r}", hint="write 30s, 10m, 8h, 7d or 2w")
    return float(int(match[1]) * _UNITS[match[2]])


def parse_time(text: str, now: datetime | None = None, end: bool = False) -> datetime:
    """Return the moment that a person's text names.

    Reads RFC 3339, `YYYY-MM-DD`, `YYYY-MM`, `YYYY`, a duration back from now (`7d`, `8h`),
    `now`, `today`, `yesterday`. With `end`, a bare day, month or year means its last second.
    Raises UsageError.
    """
    now = now or SystemClock().now()
    word = text.strip().lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    last = timedelta(seconds=1)
    day = timedelta(days=1)
    if word == "now":
        return now
    if word in ("today", "yesterday"):
        start = midnight if word == "today" else midnight - day
        return start + day - last if end else start
    if _AGO.match(word):
        try:
            return now - timedelta(seconds=seconds(word))
        except OverflowError:
            raise UsageError(f"too far back: {text!r}") from None
    match = re.match(r"(\d{4})(?:-(\d{2}))?$", word)
    try:
        if match:
            year, month = int(match[1]), int(match[2] or 1)
            start = datetime(year, month, 1, tzinfo=UTC)
            if not end:
                return start
            months = 1 if match[2] else 12
            following = year * 12 + month - 1 + months
            return datetime(following // 12, following % 12 + 1, 1, tzinfo=UTC) - last
        moment = _rfc3339(text)
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise UsageError(f"not a date: {text!r}", hint="write 2026-11-30, 2026-11-30T09:00:00Z, 7d or yesterday")
    if end and len(word) == 10:
        return moment + day - last
    return moment
