"""The words of a question that are worth searching, and the pairs among them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from mdmem.index.text import query_words

# Words that shape a question and say nothing of what it is about. Left out when anything else is asked.
_ENGLISH = """
a about above after against all also am an and any are as at be because been before being below between both but by can
could did do does doing down during each either few for from further had has have having he her here hers herself him
himself his how i if in into is it its itself just me mine more most my myself neither no nor not of off on once only or
other our ours ourselves out over own please same she should so some such tell than that the their theirs them themselves
then there these they this those through to too under until up us very was we were what when where which while who whom
whose why will with would you your yours yourself yourselves
"""
_CHINESE = "的了吗呢吧啊呀么嘛我你您他她它们是在有和与就都也还很这那哪什怎谁多少几曾过把被让给对从到"


@lru_cache(maxsize=1)
def stop_terms() -> frozenset[str]:
    """Return the terms, as the analyzer makes them, of words that carry no meaning in a question."""
    from mdmem.index.analyzer import tokens

    return frozenset(term for word in _ENGLISH.split() for term in tokens(word)) | frozenset(_CHINESE)


def idle(term: str) -> bool:
    """Tell whether a term says nothing by itself: a function word, or CJK characters that are all such words."""
    stop = stop_terms()
    return term in stop or (len(term) == 2 and not term.isascii() and term[0] in stop and term[1] in stop)


def terms_of(text: str) -> list[tuple[str, float]]:
    """Return (term, weight) pairs to search; function words only when there is nothing else."""
    words = query_words(text)
    return [pair for pair in words if not idle(pair[0])] or words


def pairs_of(text: str) -> list[tuple[str, str]]:
    """Return the pairs of words that stand next to each other in the question, function words skipped."""
    return [(left, right) for left, right in dict.fromkeys(pairwise(_worded(text))) if left != right]


def _worded(text: str) -> list[str]:
    """Return the terms of a text in order, function words skipped. CJK pairs are terms of their own already."""
    from mdmem.index.analyzer import tokens

    stop = stop_terms()
    return [term for term in tokens(text) if term not in stop and term.isascii()]


_LABEL = re.compile(r"\s*(?:[-*>]\s+)?(?:\[[^\]\n]{1,40}\]\s*)?\**([^\W\d_][\w .'-]{0,40}?)\**\s?[:：]\**\s*(?=\S)")


def label_of(line: str) -> str:
    """Return who says a line (`Anna: …`, `- Decision: …`), "" where it has no label."""
    found = _LABEL.match(line)
    return found[1] if found is not None else ""


def label_terms(line: str) -> tuple[str, ...]:
    """Return the terms of a line's label, function words left out; none without a label."""
    label = label_of(line)
    return _label_terms(label) if label else ()


@lru_cache(maxsize=1024)
def _label_terms(label: str) -> tuple[str, ...]:
    """Who talks stands before line after line, and is taken apart once."""
    from mdmem.index.analyzer import tokens

    return tuple(term for term in tokens(label) if not idle(term))


def labelled_share(text: str, worth: Mapping[str, float]) -> float:
    """Return the greatest share of the question (by `worth`, 0…1) that stands in one line whose label (`Anna: …`,
    `- Decision: …`) the question names: what Anna said herself tells more of her than what was said to her."""
    from mdmem.index.analyzer import tokens

    total = sum(worth.values())
    best = 0.0
    for line in text.split("\n") if total > 0 else ():
        named = label_terms(line)
        if named and all(term in worth for term in named):
            best = max(best, sum(worth[term] for term in sorted(worth.keys() & set(tokens(line)))) / total)
    return best


def phrase_share(pairs: Sequence[tuple[str, str]], texts: Iterable[str], worth: Mapping[str, float]) -> float:
    """Return which share of the question's pairs (weighed by the idf of both words) stands next to each other in one of
    the texts, 0…1."""
    total = sum(worth.get(left, 0.0) + worth.get(right, 0.0) for left, right in pairs)
    if total <= 0:
        return 0.0
    wanted = set(pairs)
    found: set[tuple[str, str]] = set()
    for text in texts:
        found |= wanted.intersection(pairwise(_worded(text)))
        if len(found) == len(wanted):
            break
    return sum(worth.get(left, 0.0) + worth.get(right, 0.0) for left, right in sorted(found)) / total
