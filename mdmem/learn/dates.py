"""Words such as `yesterday` and 下周五, with the day that they mean beside them: read a year later, they would mean nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ZH = "一二三四五六日"
_EN = "|".join(_DAYS)
_COUNT = {
    "a": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "一": 1,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
}


def _plus(days: int) -> Callable[[re.Match[str], date], str]:
    return lambda found, now: (now + timedelta(days=days)).isoformat()


def _weekday(found: re.Match[str], now: date) -> str:
    word = found["which"].lower()
    name = found["day"].lower()
    number = _DAYS.index(name) if name in _DAYS else _ZH.index(name.replace("天", "日"))
    monday = now - timedelta(days=now.weekday())
    if word in ("last", "上", "上个"):
        # `last Friday` is the latest one gone by; 上周五 the one of last week.
        day = monday + timedelta(days=number - (7 if name not in _DAYS or number >= now.weekday() else 0))
    elif word in ("next", "下", "下个"):
        day = monday + timedelta(days=number + 7)
    elif word in ("by", "until", "before"):
        day = now + timedelta(days=(number - now.weekday()) % 7)
    else:
        day = monday + timedelta(days=number)
    return day.isoformat()


def _week(found: re.Match[str], now: date) -> str:
    back = {"last": -7, "上": -7, "上个": -7, "next": 7, "下": 7, "下个": 7}.get(found[1].lower(), 0)
    monday = now + timedelta(days=back - now.weekday())
    return f"{monday.isoformat()} to {(monday + timedelta(days=6)).isoformat()}"


def _month(found: re.Match[str], now: date) -> str:
    step = {"last": -1, "上": -1, "next": 1, "下": 1}.get(found[1].lower().rstrip("个"), 0)
    number = now.year * 12 + now.month - 1 + step
    return f"{number // 12}-{number % 12 + 1:02d}"


def _distance(found: re.Match[str], now: date) -> str:
    many, unit = found[1].lower(), found[2].lower()
    count = int(many) if many.isdigit() else _COUNT[many]
    days = count * (7 if unit in ("week", "周", "星期") else 1)
    ahead = found[0].lower().startswith("in ") or found[0].endswith("后")
    return (now + timedelta(days=days if ahead else -days)).isoformat()


_C = "|".join(word for word in _COUNT if word.isascii())
_READERS: tuple[tuple[str, Callable[[re.Match[str], date], str]], ...] = (
    (r"\bday before yesterday\b|前天", _plus(-2)),
    (r"\bday after tomorrow\b|后天", _plus(2)),
    (r"\byesterday\b(?:'s)?|\blast night\b|昨[天晚日]", _plus(-1)),
    (r"\btomorrow\b|明[天日晚]", _plus(1)),
    (r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b(?:'s)?|今[天日早晚]", _plus(0)),
    (rf"\b(?P<which>last|next|this|by|until|before) (?P<day>{_EN})\b", _weekday),
    (r"(?P<which>上个?|下个?|这个?|本)(?:周|星期|礼拜)(?P<day>[一二三四五六日天])", _weekday),
    (r"\b(last|next|this) week\b", _week),
    (r"(上个?|下个?|这个?|本)(?:周|星期)(?![一二三四五六日天])", _week),
    (r"\b(last|next|this) month\b|(?=[上下这本]个?月)(上个?|下个?|这个?|本)月", lambda f, n: _month_of(f, n)),
    (rf"\bin (\d{{1,3}}|{_C}) (day|week)s?\b|\b(\d{{1,3}}|{_C}) (day|week)s? ago\b", lambda f, n: _either(f, n)),
    (r"(\d{1,3}|[一两三四五])(天|周|星期)(?:之?前|之?后)", _distance),
)
_COMPILED = [(re.compile(pattern, re.IGNORECASE), make) for pattern, make in _READERS]


class _Groups:
    """A match of which only some groups took part, numbered anew."""

    def __init__(self, found: re.Match[str]) -> None:
        self.parts = [found[0], *(group for group in found.groups() if group is not None)]

    def __getitem__(self, number: int) -> str:
        return str(self.parts[number])


def _month_of(found: re.Match[str], now: date) -> str:
    return _month(_Groups(found), now)  # type: ignore[arg-type]


def _either(found: re.Match[str], now: date) -> str:
    return _distance(_Groups(found), now)  # type: ignore[arg-type]


def dated(text: str, at: datetime) -> str:
    """Return `text` with the date in brackets behind each word that counts from the day it was said (UTC)."""
    taken: list[tuple[int, int, str]] = []
    for pattern, make in _COMPILED:
        for found in pattern.finditer(text):
            if any(found.start() < end and start < found.end() for start, end, _ in taken):
                continue
            if text[found.end() : found.end() + 2].lstrip()[:1] in ("(", "（"):
                continue
            try:
                taken.append((found.start(), found.end(), make(found, at.date())))
            except (ValueError, KeyError, OverflowError):
                continue
    for _, end, day in sorted(taken, reverse=True):
        text = f"{text[:end]} ({day}){text[end:]}"
    return text
