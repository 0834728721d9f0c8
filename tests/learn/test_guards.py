"""Texts with nearly all words in common that are not one: a text that is taken for known is lost, so doubt keeps both."""

from __future__ import annotations

import pytest

from mdmem.learn.compare import compare
from mdmem.learn.statement import read

KEPT = ("apart", "perhaps", "opposes")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("parser depends on lexer", "lexer depends on parser"),
        ("Lint before tests", "Tests before lint"),
        ("Redis is faster than Memcached", "Memcached is faster than Redis"),
        ("worker replaced lexer", "Use lexer for worker"),
        ("提交之前跑测试", "测试之前跑提交"),
        ("The search of Mei Lin is 17", "Mei Lin owns the search"),
        ("The lexer is slower than git", "Alice owns the lexer"),
        ("The lexer is slower than git", "The lexer is slower than redis"),
        ("Alice负责search", "Do not use search for the API"),
        ("The cache of Bob is 1", "git replaced cache"),
        ("不要在 cache 里用 git", "不要在 cache 里用 redis"),
        ("Do not use lexer for redis", "redis replaced lexer"),
    ],
)
def test_both_texts_stay(older: str, newer: str) -> None:
    # However near a model finds them.
    for one, two in ((older, newer), (newer, older)):
        assert compare(read(two), read(one), 0.99, 0.9).kind in KEPT, (one, two)


@pytest.mark.parametrize(
    ("older", "newer", "kind"),
    [
        ("Run lint before tests", "Before tests, run lint", "same"),
        ("Alice owns the search", "Bob owns the search", "update"),
        ("parser 的超时是 2 秒", "parser 的超时是 8 秒", "update"),
        ("Secrets are stored in Vault", "Secrets are stored in Vault, one path per service", "wider"),
    ],
)
def test_what_is_plain_is_still_decided(older: str, newer: str, kind: str) -> None:
    assert compare(read(newer), read(older)).kind == kind


@pytest.mark.parametrize(
    ("older", "newer", "kind"),
    [
        ("I prefer short commit messages", "I prefer long commit messages", "opposes"),
        ("I prefer short commit messages.", "I now prefer long commit messages", "update"),
        ("代码注释用中文写", "代码注释用英文写", "opposes"),
        ("代码注释用中文写", "以后代码注释用英文写。", "update"),
        ("备份每天跑一次", "备份每周跑一次", "opposes"),
        ("Use tabs in Go files", "Use spaces in Go files", "opposes"),
        ("Use tabs in Go files", "Use spaces in Python files", "apart"),
        # To speak of changing something is no change.
        ("Ask Mei before changing the schema", "Ask Omar before changing the schema", "opposes"),
        ("Joana reviews every update of the pump", "Omar reviews every update of the pump", "apart"),
        ("Lower the log level to info", "Use lower case for table names", "apart"),
        ("The limit of the queue is 20", "Raise the limit of the queue to 50", "update"),
        # A unit may be spelled out.
        ("The gateway timeout is 30s", "The gateway timeout is 30 seconds", "same"),
        ("Max upload is 10MB", "Max upload is 10 MB", "same"),
        ("The gateway timeout is 30s", "The gateway timeout is 45 seconds", "update"),
        # A name and a number say different things of one subject.
        ("The checkout service runs on port 8081.", "Mei owns the checkout service.", "apart"),
        ("结账服务监听 8081 端口", "结账服务由小李负责", "apart"),
        # What a text begins with tells of what it speaks: both may hold.
        ("Short names are for locals", "Long names are for locals", "perhaps"),
        ("中文文档在 docs/zh", "英文文档在 docs/zh", "perhaps"),
    ],
)
def test_words_of_which_one_excludes_the_other(older: str, newer: str, kind: str) -> None:
    assert compare(read(newer), read(older)).kind == kind
