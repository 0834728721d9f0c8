"""Which words of a question are searched, and its phrases."""

from __future__ import annotations

from mdmem.recall.words import labelled_share, pairs_of, phrase_share, terms_of


def names(text: str) -> list[str]:
    return [term for term, _ in terms_of(text)]


def test_function_words_are_left_out_when_there_is_more() -> None:
    assert names("What is the port of the database?") == ["port", "databas"]
    assert names("what is this") != []


def test_chinese_function_words_are_left_out() -> None:
    found = names("我们用的是什么数据库")
    assert "数据" in found and "什么" not in found and "的" not in found


def test_words_of_programming_stay() -> None:
    assert "go" in names("which Go version")
    assert "v1.2.3" in names("is v1.2.3 out")


def test_pairs_skip_function_words_and_chinese() -> None:
    assert pairs_of("Which message of the queue is full") == [("messag", "queue"), ("queue", "full")]
    assert pairs_of("数据库选型") == []


def test_phrase_share_is_weighed_by_how_rare_the_words_are() -> None:
    pairs = [("messag", "queue"), ("queue", "full")]
    worth = {"messag": 2.0, "queue": 1.0, "full": 5.0}
    assert phrase_share(pairs, ["the message queue"], worth) == 3.0 / 9.0
    assert phrase_share(pairs, ["a queue", "the message is full"], worth) == 0.0
    assert phrase_share(pairs, ["message queue", "queue full"], worth) == 1.0
    assert phrase_share(pairs, ["message queue"], {}) == 0.0


def test_a_line_counts_for_whom_the_question_names() -> None:
    worth = {"anna": 1.0, "port": 3.0}
    assert labelled_share("Anna: the port is 80\nBen: Anna, which port?", worth) == 1.0
    assert labelled_share("Ben: Anna, which port?", worth) == 0.0
    assert labelled_share("- **Anna**: hello", worth) == 0.25
    assert labelled_share("no label here", worth) == labelled_share("", worth) == labelled_share("Anna: x", {}) == 0.0
