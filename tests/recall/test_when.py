"""Dates in questions."""

from __future__ import annotations

from datetime import date, datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmem.recall.when import Period, closeness, distance, periods

NOW = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)  # a Monday


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("What did Evan do on 19 August, 2023?", "2023-08-19", "2023-08-19"),
        ("the 9th of March 2024", "2024-03-09", "2024-03-09"),
        ("August 19th, 2023", "2023-08-19", "2023-08-19"),
        ("2026-05-04 standup", "2026-05-04", "2026-05-04"),
        ("in August 2023", "2023-08-01", "2023-08-31"),
        ("during 2021", "2021-01-01", "2021-12-31"),
        ("2023年5月4日的会", "2023-05-04", "2023-05-04"),
        ("2023年5月", "2023-05-01", "2023-05-31"),
        ("what did we decide last week", "2026-11-23", "2026-11-29"),
        ("yesterday", "2026-11-29", "2026-11-29"),
        ("昨天聊了什么", "2026-11-29", "2026-11-29"),
        ("three days ago", "2026-11-27", "2026-11-27"),
        ("三天前", "2026-11-27", "2026-11-27"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("去年", "2025-01-01", "2025-12-31"),
        ("Where was he between August 11 and August 15 2023?", "2023-08-11", "2023-08-15"),
        ("from 11 to 15 August 2023", "2023-08-11", "2023-08-15"),
        ("from December 28 to January 3, 2023", "2022-12-28", "2023-01-03"),
        ("between December 28 2022 and January 3 2023", "2022-12-28", "2023-01-03"),
        ("between May and July 2023", "2023-05-01", "2023-07-31"),
        ("2023年5月3日到8日去了哪里", "2023-05-03", "2023-05-08"),
        ("2023年5月30日至6月2日", "2023-05-30", "2023-06-02"),
        ("2023年5月到7月", "2023-05-01", "2023-07-31"),
        ("towards the end of summer 2023", "2023-06-01", "2023-08-31"),
        ("the winter of 2022", "2022-12-01", "2023-02-28"),
        ("2023年冬天", "2023-12-01", "2024-02-29"),
        ("去年夏天", "2025-06-01", "2025-08-31"),
        ("last summer", "2026-06-01", "2026-08-31"),
        ("this summer", "2026-06-01", "2026-08-31"),
        ("last fall", "2025-09-01", "2025-11-30"),
        ("in the last year", "2025-11-30", "2026-11-30"),
        ("over the past two weeks", "2026-11-16", "2026-11-30"),
        ("最近一个月", "2026-10-31", "2026-11-30"),
        ("过去三天", "2026-11-27", "2026-11-30"),
    ],
)
def test_a_period_with_its_year(text: str, first: str, last: str) -> None:
    assert periods(text, NOW) == [Period(date.fromisoformat(first), date.fromisoformat(last))]


@pytest.mark.parametrize("text", ["on May 4th", "5月4日", "4 May", "5月4号"])
def test_a_day_without_a_year_fits_every_year(text: str) -> None:
    (period,) = periods(text, NOW)
    assert distance(period, date(2021, 5, 4)) == distance(period, date(2026, 5, 4)) == 0
    assert distance(period, date(2026, 5, 6)) == 2 and distance(period, date(2026, 5, 1)) == -3


@pytest.mark.parametrize(
    "text",
    [
        "step 3 may fail",
        "v1.2.3 may break",
        "we may go",
        "we march on",
        "issue 2023",
        "port 5432",
        "leaves fall",
        "in Spring Boot",
        "附近一天",
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert periods(text, NOW) == []


@pytest.mark.parametrize("text", ["in the winter", "from December 28 to January 3", "12月28日到1月3日"])
def test_a_period_over_new_year_fits_every_year(text: str) -> None:
    (period,) = periods(text, NOW)
    assert distance(period, date(2021, 12, 30)) == distance(period, date(2026, 1, 2)) == 0
    assert distance(period, date(2021, 11, 30)) < 0 < distance(period, date(2021, 3, 5))


def test_two_days_are_two_days_and_not_all_between() -> None:
    assert [period.days for period in periods("on May 3 and May 9", NOW)] == [1, 1]


def test_new_year_is_near_to_december() -> None:
    (period,) = periods("31 December", NOW)
    assert distance(period, date(2024, 1, 1)) == 1


def test_closeness_falls_slower_behind_than_before() -> None:
    (period,) = periods("2026-05-04", NOW)
    at = {gap: closeness(period, date.fromordinal(date(2026, 5, 4).toordinal() + gap)) for gap in (-400, -3, 0, 3, 400)}
    assert at[0] == 1.0 > at[3] > at[-3] > 0.0 == at[400] == at[-400]


@given(st.text(max_size=80))
def test_any_text_gives_real_periods(text: str) -> None:
    for period in periods(text, NOW):
        assert period.first <= period.last
        assert 0.0 <= closeness(period, date(2026, 2, 28)) <= 1.0


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)), st.dates(date(2, 1, 1), date(9998, 1, 1)))
def test_distance_is_that_of_the_calendar(named: date, day: date) -> None:
    (period,) = periods(f"on {named.isoformat()}", NOW)
    assert distance(period, day) == (day - named).days


def test_the_last_of_february_is_the_day_before_march() -> None:
    (period,) = periods("29 February", NOW)
    assert distance(period, date(2024, 2, 29)) == 0 and distance(period, date(2026, 2, 28)) == 0
    assert distance(period, date(2026, 3, 1)) == 1


def test_the_first_and_the_last_year_there_is_have_only_one_neighbour() -> None:
    (period,) = periods("4 May", NOW)
    assert distance(period, date(1, 5, 5)) == 1 and distance(period, date(9999, 5, 3)) == -1


def test_months_named_backwards_are_no_span() -> None:
    now = datetime(2026, 11, 30, tzinfo=timezone.utc)
    found = periods("between May and March 2023", now)
    assert [(period.first, period.last) for period in found] == [(date(2023, 3, 1), date(2023, 3, 31))]


@pytest.mark.parametrize("text", ["from 8 to 3 May 2023", "2023年5月8日到3日"])
def test_days_of_one_month_named_backwards_are_no_year(text: str) -> None:
    assert [(p.first, p.last) for p in periods(text, NOW)] == [(date(2023, 5, 3), date(2023, 5, 8))]


def test_a_question_that_can_name_no_day_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.recall import when

    monkeypatch.setattr(when, "_readers", lambda: pytest.fail("not needed"))
    for text in ("部署用什么工具", "who owns the gateway", "le café préféré"):
        assert when.periods(text, datetime(2026, 5, 1)) == []
