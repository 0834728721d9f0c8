"""What two statements are to each other. Pure. A denial, another number or another name are never "the same".

The guards (denial, numbers, names) come first and read the words; nearness in meaning, where there is a model, only ever
says that two texts which no guard keeps apart may be one: cosines of opposites are as high as those of rewordings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mdmem.learn.guards import directed, excluded, kinds, spelled
from mdmem.learn.statement import LONGEST, Statement, shape

# Shares of terms in common (Jaccard): of all terms for "the same", of the topic for "the same slot". Set on the pairs of
# tests/learn/pairs.tsv.
SAME, PERHAPS, SLOT = 0.8, 0.5, 0.6
# Least share of terms in common that a high cosine can make a perhaps of.
FAINT = 0.25
_WORD = re.compile(r"[a-z0-9]+(?:[.:-][a-z0-9]+)*")
# A fuller text says at most this many times as much.
FULLER = 3.0


@dataclass(frozen=True)
class Verdict:
    """`kind`: same, wider (the new one says all of the old one and more), narrower, update (the new one takes the place of
    the old one), opposes (both cannot hold, which one does is not plain), perhaps (they may be one), apart.
    `worded`: nothing but their wording differs, as far as rules can see."""

    kind: str
    why: str = ""
    worded: bool = False


APART = Verdict("apart")


def jaccard(one: frozenset[str], two: frozenset[str]) -> float:
    """Return |one ∩ two| / |one ∪ two|, 0 for two empty sets."""
    whole = len(one | two)
    return len(one & two) / whole if whole else 0.0


def compare(new: Statement, old: Statement, cosine: float | None = None, limit: float = 0.94) -> Verdict:
    """Return what `new` is to `old`; `limit` is the cosine from which two texts of the model in force may be one."""
    if not new.terms or not old.terms:
        return APART
    near = cosine is not None and cosine >= limit
    if max(len(new.text), len(old.text)) >= LONGEST:
        # Documents: only what is almost word for word the same is the same.
        return Verdict("perhaps", "long texts with most words in common") if jaccard(new.terms, old.terms) >= SAME else APART
    numbers = new.numbers ^ old.numbers
    names = _missing(new, old) | _missing(old, new)
    if new.negated != old.negated:
        return _denied(new, old, bool(numbers or names))
    if (pair := excluded(old.text, new.text)) is not None:
        if new.changes:
            return Verdict("update", f"{pair[0]} before, {pair[1]} now")
        return Verdict("opposes", f"{pair[0]} or {pair[1]}")
    share = jaccard(new.terms, old.terms)
    if not numbers and not names and share >= SAME and not (new.words - old.words and old.words - new.words):
        # A word on either side that the other lacks may be all the difference: for the web, for the app.
        if _in_turn(new) != _in_turn(old) or directed(new.text) != directed(old.text):
            return Verdict("perhaps", "the same words in other places")
        if (new.changes, new.retired) != (old.changes, old.retired):
            return Verdict("perhaps", "the same words, of which one text says that something changed")
        return Verdict("same", "the same in other words")
    slotted = _slotted(new, old)
    if slotted is not None and (new.changes or old.changes):
        return slotted
    if new.sweeping != old.sweeping and (_within(old, new) or _within(new, old)):
        # `for all changes` says more than `for risky changes`, with fewer words.
        return Verdict("perhaps", "one of the two speaks of all, the other of some")
    if (_within(old, new) and spelled(old.text) <= spelled(new.text)) or _begins(old.text, new.text):
        return Verdict("wider", "it says all of that and more")
    # What is said already is not written again, so every word of it must stand there.
    if (_within(new, old) and spelled(new.text) <= spelled(old.text)) or _begins(new.text, old.text):
        return Verdict("narrower", "all of it is said there")
    if slotted is not None:
        return slotted
    if not numbers and not names:
        if share >= PERHAPS or (near and share >= FAINT):
            return Verdict("perhaps", "much the same words, nothing that keeps them apart", worded=True)
        if near and not (new.topic & old.topic) and new.values == old.values:
            return Verdict("perhaps", "near in meaning, with other words", worded=True)
        return APART
    return _valued(new, old)


def _missing(one: Statement, two: Statement) -> frozenset[str]:
    """Return the names of one that the other does not say in any form."""
    return frozenset(name for name in one.names if name not in two.terms and name.rstrip("s") not in two.terms)


def _within(small: Statement, large: Statement) -> bool:
    count = len(small.terms)
    left = iter(_in_turn(large))
    if not all(value in left for value in _in_turn(small)):
        return False  # rack 3 of hall 5 is not said by rack 5 of hall 3
    return count >= 3 and small.terms < large.terms and len(large.terms) <= FULLER * count and not large.dropped & small.terms


def _in_turn(one: Statement) -> list[str]:
    """Return the numbers and names of a text in the order in which it says them, each as often as it does."""
    found = _WORD.findall(one.text.lower())
    return [word for word in found if word in one.names or any(letter.isdigit() for letter in word)]


def _begins(start: str, whole: str) -> bool:
    """Tell whether one text is the beginning of the other, cut between two words."""
    start = start.rstrip(" .。").lower()
    after = whole[len(start) : len(start) + 1]
    return bool(start) and whole.lower().startswith(start) and not (after.isalnum() and after.isascii() and start[-1].isalnum())


def _denied(new: Statement, old: Statement, differ: bool) -> Verdict:
    """One of the two denies."""
    topics = jaccard(new.topic, old.topic)
    if (ended := _ended(new, old, topics)) is not None:
        return ended
    if new.retired and new.values <= old.values and new.topic <= old.topic and new.values:
        return Verdict("update", "it says that this has ended")
    if differ and not new.changes:
        return APART
    if topics >= SLOT or (topics >= PERHAPS and jaccard(new.terms, old.terms) >= SLOT):
        if new.retired:
            return Verdict("update", "it says that this has ended")
        return Verdict("opposes", "one of the two denies what the other says")
    return APART


def _ended(new: Statement, old: Statement, topics: float) -> Verdict | None:
    """The new one says that something the old one names is no longer so; a mere prohibition says nothing of what was."""
    gone = new.dropped & old.values
    if not gone or not (new.changes or new.retired):
        return None
    # Without a subject in common, nothing else may be said of it there: who owns it, what it costs.
    if topics >= 0.34 or ((not new.topic or not old.topic) and old.values - gone <= new.values):
        return Verdict("update", f"it says that {', '.join(sorted(gone))} is no longer so")
    return None


def _slotted(new: Statement, old: Statement) -> Verdict | None:
    """Both name one value of one thing: the later one is the current one."""
    if new.slot is None or old.slot is None or new.slot[2] != old.slot[2] or jaccard(new.slot[0], old.slot[0]) < SAME:
        return None
    if new.negated or old.negated:
        return None  # what is not so may be many things
    before, after = shape(old.slot[1]), shape(new.slot[1])
    one, two = old.slot[1].lower(), new.slot[1].lower()
    if before != after or after == "phrase" or one in two or two in one:
        return None
    if after == "word" and not new.changes:
        return Verdict("opposes", f"{old.slot[1]} or {new.slot[1]}")
    return Verdict("update", f"{old.slot[1]} before, {new.slot[1]} now")


def _valued(new: Statement, old: Statement) -> Verdict:
    """Their numbers or names differ."""
    topics = jaccard(new.topic, old.topic)
    if (ended := _ended(new, old, topics)) is not None:
        return ended
    if old.dropped & (new.names | new.numbers) and topics >= 0.34:
        return APART  # what the old one has replaced already
    if new.leading and old.leading and new.leading != old.leading and new.values - {new.leading} == old.values - {old.leading}:
        return APART  # the same said of two: both hold
    if topics < SLOT or not new.topic & old.topic:
        return APART
    if kinds(new) and kinds(old) and not kinds(new) & kinds(old):
        return APART  # who owns it and which port it has
    if new.values > old.values or new.values < old.values:
        return APART if topics < SAME else Verdict("perhaps", "the same, with more detail")
    if (new.changes or new.retired) and kinds(new) == kinds(old):
        return Verdict("update", "it says that this has changed")
    return Verdict("opposes", "the same thing with another number or name")
