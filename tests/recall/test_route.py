"""Kinds of questions, and what follows from each."""

from __future__ import annotations

import pytest

from mdmem.recall.route import route


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("parse_config", "identifier"),
        ("where is loadUserConfig called", "identifier"),
        ("mdmem/recall/rank.py", "identifier"),
        ("what does --dry-run do", "identifier"),
        ("commit 9f8e7d6c", "identifier"),
        ("error in `foo`", "identifier"),
        ("CVE-2024", "identifier"),
        ("which version is 3.11.4", "identifier"),
        ("MAX_RETRY_COUNT", "identifier"),
        ("what is the latest decision on caching", "temporal"),
        ("最近改了什么", "temporal"),
        ("when did we move to Kafka", "temporal"),
        ("什么时候上线的", "temporal"),
        ("why did we choose Kafka?", "question"),
        ("怎么回滚", "question"),
        ("谁负责数据平台", "question"),
        ("database decision", "keywords"),
        ("数据库选型", "keywords"),
        ("well-known problem with e-mail", "keywords"),
        ("deadbeef decade", "keywords"),
    ],
)
def test_the_kind_of_a_question(text: str, kind: str) -> None:
    assert route(text).kind == kind


def test_a_named_day_makes_it_temporal_but_asks_for_nothing_newer() -> None:
    assert route("what did we decide recently on 4 May", dated=True).window == 1.0
    assert route("what did we decide recently").window < 1.0
    assert route("parse_config").words > 0.0
