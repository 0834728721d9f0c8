"""Whom of a conversation the question names, and what the question asks beside that.

In a written conversation (`Anna: …` line after line) a name stands in every window, and the meaning of a question that names
somebody is near to whatever mentions that name. The words know the name better: so half of the meaning is taken from the
question without it, and what all questions have in common is taken off."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mdmem.recall.usual import usual_question
from mdmem.recall.words import label_of, label_terms

if TYPE_CHECKING:
    from mdmem.index.dense import Dense

TURNS = 2  # lines that each of two speakers has there at least: a list of `Key: value` is no conversation
# Of what all questions have in common. 0.6 to 1.0 do the same on LoCoMo (docs/benchmarks.md).
COMMON = 0.8
# Of the line before, which a speaker answers.
ANSWERED = 0.5


def speakers(texts: Iterable[str], question: str) -> list[str]:
    """Return who of the conversation in these texts is named in the question, as written in both; none when the texts are no
    conversation. A name has a capital letter."""
    said: dict[str, set[str]] = {}
    for text in texts:
        for line in text.split("\n"):
            label = label_of(line)
            if label:
                said.setdefault(label, set()).add(line)
    if sum(len(lines) >= TURNS for lines in said.values()) < 2:
        return []
    return sorted(label for label in said if label[0].isupper() and re.search(_whole(label), question))


def may_name(texts: Iterable[str], question: str) -> bool:
    """Tell whether any of the texts has a line of somebody whom the question names: without one, `speakers` finds none."""
    named: dict[str, bool] = {}
    for text in texts:
        for line in text.split("\n"):
            label = label_of(line)
            if label and label not in named:
                named[label] = label[0].isupper() and re.search(_whole(label), question) is not None
                if named[label]:
                    return True
    return False


def _whole(label: str) -> str:
    return rf"(?<!\w){re.escape(label)}(?!\w)"


def without(question: str, names: Sequence[str]) -> str:
    """Return the question without these names (and the `and` between two of them); "" when nothing else is asked."""
    if not names:
        return ""
    one = "(?:" + "|".join(_whole(name) for name in sorted(names, key=len, reverse=True)) + ")(?:['’]s)?"
    rest = " ".join(re.sub(rf"{one}(?:\s+(?:and|or|&)\s+{one})*", " ", question).split())
    rest = re.sub(r"\s+([?!.,])", r"\1", rest)
    return rest if any(char.isalnum() for char in rest) else ""


def aimed(dense: Dense, question: str, vector: Any, names: Sequence[str]) -> Any:
    """Return the unit vector to search with, float32 [dims], of a question that names speakers; None: as it is."""
    rest = without(question, names)
    other = dense.question(rest) if rest else None
    if other is None:
        return None
    import numpy as np

    aim = np.asarray(vector, np.float64) + np.asarray(other, np.float64)
    common = usual_question(dense.loaded)
    if common is not None:
        aim -= 2 * COMMON * common
    length = float(np.sqrt((aim * aim).sum()))
    return (aim / length).astype(np.float32) if length > 0 else None


def answered_share(text: str, worth: Mapping[str, float]) -> float:
    """Return the greatest share of the question (by `worth`, 0…1) that stands in one line of a speaker whom it names, with half
    of what stands only in the line before: who answers does not repeat the question."""
    from mdmem.index.analyzer import tokens

    total = sum(worth.values())
    best = 0.0
    before: set[str] = set()
    for line in text.split("\n") if total > 0 else ():
        if not line.strip():
            continue
        named, here = label_terms(line), worth.keys() & set(tokens(line))
        if named and all(term in worth for term in named):
            value = sum(worth[term] for term in sorted(here)) + ANSWERED * sum(worth[term] for term in sorted(before - here))
            best = max(best, value / total)
        before = here
    return best
