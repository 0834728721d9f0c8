"""The dates that a question names, and how near a note's date is to them. Pure; English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

_NAMES = "january february march april may june july august september october november december"
_MONTH = {name: number for number, name in enumerate(_NAMES.split(), start=1)}
_MONTH |= {name[:3]: number for name, number in _MONTH.items()} | {"sept": 9}
_M = "(" + "|".join(sorted(_MONTH, key=len, reverse=True)) + r")\b\.?"
_D = r"(?<![\w.])(\d{1,2}(?:st|nd|rd|th)?)\b"
_Y = r"((?:19|20)\d\d)\b"
# "may" and "march" are also a verb and a noun: alone they are months only after one of these.
_TO = r"\s*(?:-|–|—|~|to|and|until|till|through)\s*"
_BETWEEN = r"\b(?:between|from)\s+(?:the )?"
_ZH_TO = r"\s*(?:到|至|-|–|—|~)\s*"
_SEASON = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "春": 3, "夏": 6, "秋": 9, "冬": 12}
_S = "(" + "|".join(name for name in _SEASON if name.isascii()) + r")\b"
_LEAD = r"\b(?:in|during|of|since|until|till|by|before|after|from|last|this|early|late|mid|end of|beginning of)[ -]"
_COUNT = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "few": 3, "couple": 2}
_COUNT |= {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "几": 3, "八": 8, "九": 9, "十": 10}
_UNIT = {"day": 1, "week": 7, "month": 30, "year": 365, "天": 1, "日": 1, "周": 7, "星期": 7, "个月": 30, "年": 365}


@dataclass(frozen=True)
class Period:
    """Days that a question names, both ends included. Without a year (`any_year`) the nearest one is meant."""

    first: date
    last: date
    any_year: bool = False

    @property
    def days(self) -> int:
        """How many days it covers."""
        return (self.last - self.first).days + 1


def _day(year: str | None, month: int, day: str) -> Period:
    # 2024 has a 29 February.
    found = date(int(year or 2024), month, int(day))
    return Period(found, found, any_year=not year)


def _named(year: str | None, name: str, day: str) -> Period:
    if name in ("may", "march", "mar") and day.isdigit() and not year:
        raise ValueError("`step 3 may fail` names no date")
    return _day(year, _MONTH[name.lower()], day.rstrip("stndrh"))


def _month(year: str | None, month: int) -> Period:
    number = int(year or 2024)
    following = date(number + month // 12, month % 12 + 1, 1)
    return Period(date(number, month, 1), following - timedelta(days=1), any_year=not year)


def _days(year: str | None, month: int, day: str, until_month: int, until_day: str, own_year: str | None = None) -> Period:
    """Return the days from one to another; of the year that is given at the end, unless the first has its own."""
    last = _day(year, until_month, until_day.rstrip("stndrh")).last
    first = _day(own_year or year, month, day.rstrip("stndrh")).first
    if first > last and month == until_month and not own_year:
        first, last = last, first  # said the wrong way round; nobody means nearly a year
    elif first > last and not own_year:
        first = first.replace(year=first.year - 1) if year else first
        last = last if year else last.replace(year=last.year + 1)
    return _ordered(first, last, any_year=not year)


def _ordered(first: date, last: date, any_year: bool = False) -> Period:
    if first > last:
        raise ValueError("a period ends after it begins")
    return Period(first, last, any_year)


def _months_to(year: str | None, name: str, until: str) -> Period:
    first, last = _month(year, _MONTH[name.lower()]), _month(year, _MONTH[until.lower()])
    return _ordered(first.first, last.last, any_year=not year)


def _season(year: int, name: str, any_year: bool = False) -> Period:
    """Return the three months of a season of the north; a winter begins in the year that it is named by."""
    month = _SEASON[name.lower()]
    following = date(year + (month + 3) // 13, (month + 2) % 12 + 1, 1)
    return Period(date(year, month, 1), following - timedelta(days=1), any_year)


def _recent_season(now: date, name: str, back: str) -> Period:
    """Return this, the last or the coming season of that name: the last one has begun before."""
    year = now.year - (1 if _season(now.year, name).first > now else 0)
    if back == "this":
        return _season(now.year, name)
    return _season(year - (1 if _season(year, name).last >= now else 0), name)


def _year(year: str) -> Period:
    return Period(date(int(year), 1, 1), date(int(year), 12, 31))


_Maker = Callable[[re.Match[str], date], Period]
_ABSOLUTE: tuple[tuple[str, _Maker], ...] = (
    (
        rf"(?:((?:19|20)\d\d)年)?(\d{{1,2}})月(\d{{1,2}})[日号]?{_ZH_TO}(?:(\d{{1,2}})月)?(\d{{1,2}})[日号]",
        lambda m, now: _days(m[1], int(m[2]), m[3], int(m[4] or m[2]), m[5]),
    ),
    (
        rf"(?:((?:19|20)\d\d)年)?(\d{{1,2}})月份?{_ZH_TO}(\d{{1,2}})月份?(?!\d)",
        lambda m, now: _ordered(_month(m[1], int(m[2])).first, _month(m[1], int(m[3])).last, any_year=not m[1]),
    ),
    (
        rf"{_BETWEEN}{_M} {_D}(?:,? {_Y})?{_TO}(?:{_M} )?{_D}(?:,? {_Y})?",
        lambda m, now: _days(m[6] or m[3], _MONTH[m[1].lower()], m[2], _MONTH[(m[4] or m[1]).lower()], m[5], m[3]),
    ),
    (
        rf"{_BETWEEN}{_D}(?:(?: of)? {_M}(?:,? {_Y})?)?{_TO}(?:the )?{_D}(?: of)?[ ,]+{_M}(?:,? {_Y})?",
        lambda m, now: _days(m[6] or m[3], _MONTH[(m[2] or m[5]).lower()], m[1], _MONTH[m[5].lower()], m[4], m[3]),
    ),
    (rf"{_BETWEEN}{_M}{_TO}{_M}(?:,? {_Y})?", lambda m, now: _months_to(m[3], m[1], m[2])),
    (rf"\b{_S}(?: of|,)? {_Y}", lambda m, now: _season(int(m[2]), m[1])),
    (r"((?:19|20)\d\d)年的?([春夏秋冬])[天季]", lambda m, now: _season(int(m[1]), m[2])),
    (rf"\b{_Y}[-/.](\d{{1,2}})[-/.](\d{{1,2}})\b", lambda m, now: _day(m[1], int(m[2]), m[3])),
    (r"(?:((?:19|20)\d\d)年)?(\d{1,2})月(\d{1,2})[日号]", lambda m, now: _day(m[1], int(m[2]), m[3])),
    (rf"\b{_D}(?: of)?[ ,]+{_M}(?:,? {_Y})?", lambda m, now: _named(m[3], m[2], m[1])),
    (rf"\b{_M} {_D}(?:,? {_Y})?", lambda m, now: _named(m[3], m[1], m[2])),
    (rf"\b{_M},? {_Y}", lambda m, now: _month(m[2], _MONTH[m[1].lower()])),
    (rf"\b{_Y}[-/](\d{{2}})\b(?![-/]\d)", lambda m, now: _month(m[1], int(m[2]))),
    (r"((?:19|20)\d\d)年(\d{1,2})月", lambda m, now: _month(m[1], int(m[2]))),
    (r"(?<![\d.])(\d{1,2})月份?(?!\d)", lambda m, now: _month(None, int(m[1]))),
    (rf"{_LEAD}{_M}", lambda m, now: _month(None, _MONTH[m[1].lower()])),
    (rf"\b(?:in|during|of|since|until|before|after|from) {_Y}(?!-)", lambda m, now: _year(m[1])),
    (r"((?:19|20)\d\d)年", lambda m, now: _year(m[1])),
)


def _back(now: date, days: int, width: int) -> Period:
    middle = now - timedelta(days=days)
    return Period(middle - timedelta(days=(width - 1) // 2), middle + timedelta(days=width // 2))


def _ago(now: date, count: str, unit: str) -> Period:
    length = _UNIT[unit.lower()]
    number = int(count) if count.isdigit() else _COUNT[count.lower()]
    return _back(now, min(number, 5000) * length, length)


def _since(now: date, count: str, unit: str) -> Period:
    number = int(count) if count.isdigit() else _COUNT[count.lower()]
    return Period(now - timedelta(days=min(number, 5000) * _UNIT["个月" if unit == "月" else unit.lower()]), now)


def _week(now: date, back: int) -> Period:
    monday = now - timedelta(days=now.weekday() + 7 * back)
    return Period(monday, monday + timedelta(days=6))


def _months(now: date, back: int) -> Period:
    number = now.year * 12 + now.month - 1 - back
    return _month(str(number // 12), number % 12 + 1)


_WORDS = "|".join(word for word in _COUNT if word.isascii())
_HAN = "".join(word for word in _COUNT if not word.isascii())
_RELATIVE: tuple[tuple[str, _Maker], ...] = (
    (r"\bday before yesterday\b|前天", lambda m, now: _back(now, 2, 1)),
    (r"\byesterday\b|昨[天日晚]", lambda m, now: _back(now, 1, 1)),
    (r"\btoday\b|今[天日]", lambda m, now: _back(now, 0, 1)),
    (
        rf"\b(?:in|over|during|within|for) the (?:last|past) (?:(\d{{1,4}}|{_WORDS})(?: of)? )?(day|week|month|year)s?\b",
        lambda m, now: _since(now, m[1] or "1", m[2]),
    ),
    (
        rf"(?:最近|过去|(?<![附接靠邻将])近)的?(\d{{1,4}}|[{_HAN}])个?(天|日|周|星期|月|年)",
        lambda m, now: _since(now, m[1], m[2]),
    ),
    (rf"\b(this|last|past) {_S}", lambda m, now: _recent_season(now, m[2], m[1].lower())),
    (
        r"(今年|去年|前年)的?([春夏秋冬])[天季]",
        lambda m, now: _season(now.year - ("今年", "去年", "前年").index(m[1]), m[2]),
    ),
    (
        rf"\b(?:in|during|over) (?:the |early |late )?{_S}(?! boot| framework)",
        lambda m, now: _season(2024, m[1], any_year=True),
    ),
    (r"\blast week\b|上个?(?:周|星期)", lambda m, now: _week(now, 1)),
    (r"\bthis week\b|[这本]个?(?:周|星期)", lambda m, now: _week(now, 0)),
    (r"\blast month\b|上个?月", lambda m, now: _months(now, 1)),
    (r"\bthis month\b|[这本]个?月", lambda m, now: _months(now, 0)),
    (r"\blast year\b|去年", lambda m, now: _year(str(now.year - 1))),
    (r"\bthis year\b|今年", lambda m, now: _year(str(now.year))),
    (rf"\b(\d{{1,4}}|{_WORDS})(?: of)? (day|week|month|year)s? ago\b", lambda m, now: _ago(now, m[1], m[2])),
    (rf"(\d{{1,4}}|[{_HAN}])(天|日|周|星期|个月|年)(?:之?前)", lambda m, now: _ago(now, m[1], m[2])),
)
# Without a digit, a question names a day by one of these only.
_SIGNS = (*(name[:3] for name in _NAMES.split()), "ago", "yesterday", "today", "last ", "this ", "past ")
_SIGNS += (*(name for name in _SEASON if name.isascii()), *"天日晚年周星月")


@lru_cache(maxsize=1)
def _readers() -> list[tuple[re.Pattern[str], _Maker]]:
    """Return the patterns, compiled when a question may name a day: that takes longer than most searches."""
    return [(re.compile(pattern, re.IGNORECASE), make) for pattern, make in (*_ABSOLUTE, *_RELATIVE)]


def _names_none(text: str) -> bool:
    low = text.lower()
    return not any(map(str.isdigit, text)) and not any(sign in low for sign in _SIGNS)


def periods(text: str, now: datetime) -> list[Period]:
    """Return the periods that `text` names, in no order. A day that does not exist names at most its month."""
    found: list[Period] = []
    if _names_none(text):
        return found
    rest = text
    today = now.date()
    for pattern, make in _readers():
        for match in list(pattern.finditer(rest)):
            try:
                found.append(make(match, today))
            except (ValueError, OverflowError):
                continue
            # Read once: the day of a full date is not also a month of its own.
            rest = rest[: match.start()] + " " * (match.end() - match.start()) + rest[match.end() :]
    return found


def distance(period: Period, day: date) -> int:
    """Return the days from the period to `day`: 0 inside, positive after, negative before."""
    candidates = [(period.first, period.last)]
    if period.any_year:
        candidates = []
        for year in (day.year - 1, day.year, day.year + 1):
            try:
                over = period.last.year - period.first.year
                candidates.append((_in_year(period.first, year), _in_year(period.last, year + over)))
            except ValueError:
                continue
    gaps = [
        0 if first <= day <= last else (day - last).days if day > last else (day - first).days for first, last in candidates
    ]
    return min(gaps, key=abs)


def _in_year(day: date, year: int) -> date:
    if (day.month, day.day) == (2, 29):
        return date(year, 3, 1) - timedelta(days=1)
    return date(year, day.month, day.day)


def closeness(period: Period, day: date) -> float:
    """Return 1 for a day inside the period, less around it, down to 0.

    Things are written down on the day or soon after, so that the fall is slower behind the period than before it."""
    gap = distance(period, day)
    if gap == 0:
        return 1.0
    half = (7.0 if gap > 0 else 3.0) if period.days < 28 else 10.0
    value: float = 0.8 * 2.0 ** (-abs(gap) / half)
    return value if value > 0.05 else 0.0
