"""Scripts of texts, and cosines made comparable between two languages."""

from __future__ import annotations

import numpy as np
import pytest

from mdmem.index.language import level, wide


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words only", False),
        ("数据库选用 PostgreSQL", True),
        ("消息队列选用 NATS 而不是 Kafka", True),
        ("The word 部署 means deployment in this note", False),
        ("naïve café", False),
        ("これはテストです", True),
        ("", False),
        ("1234 5678", False),
        ("①②③", False),
    ],
)
def test_a_text_is_wide_where_cjk_prevails(text: str, expected: bool) -> None:
    assert wide(text) is expected


def test_cosines_of_the_other_language_get_mean_and_spread_of_the_own_one() -> None:
    own = np.array([0.80, 0.82, 0.84, 0.86, 0.99])
    other = np.array([0.70, 0.71, 0.72, 0.73, 0.90])
    found = level(True, own, other)
    assert found is not None
    # The nearest of each is the answer, not the language: without it the means are 0.83 and 0.715.
    assert (found.own, found.other) == (0.83, 0.715)
    assert found.near(0.9, True) == 0.9
    assert found.near(0.75, False) > 0.83
    # The order within a language never changes.
    evened = [found.near(cosine, False) for cosine in sorted(other)]
    assert evened == sorted(evened)


def test_little_is_moved_where_one_language_has_hardly_a_note() -> None:
    many = np.linspace(0.7, 0.8, 50)
    few = level(False, many, np.array([0.5, 0.6]))
    more = level(False, many, np.linspace(0.5, 0.6, 50))
    assert few is not None and more is not None
    assert few.trust < 0.7 < 0.95 < more.trust
    assert level(False, many, np.array([0.5])) is None
    assert level(False, many, np.array([])) is None


def test_equal_cosines_do_not_divide_by_zero() -> None:
    found = level(False, np.full(5, 0.8), np.full(5, 0.7))
    assert found is not None
    assert found.near(0.7, True) == pytest.approx(0.8, abs=0.02)
