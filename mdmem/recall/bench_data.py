"""Files of questions with known answers: LoCoMo, LongMemEval, decisions in two languages, and plain {docs, questions}.

Each becomes documents and questions with ids of our own, so that nothing in a name can give an answer away."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mdmem.clock import read_stamp
from mdmem.errors import MdmemError, UsageError

DIRECTIONS = ("zh-zh", "en-en", "en-zh", "zh-en")


@dataclass(frozen=True)
class Doc:
    """One note to make. `group` is a scope: questions of a group see its documents only."""

    id: str
    text: str
    title: str = ""
    date: datetime | None = None
    group: str = ""
    kind: str = "note"


@dataclass(frozen=True)
class Question:
    """A question and the documents that answer it; found when any of them is returned."""

    id: str
    text: str
    evidence: frozenset[str]
    group: str = ""
    date: datetime | None = None


@dataclass
class Dataset:
    """What one file holds. `apart`: each group is a store of its own (LongMemEval gives every question its own history)."""

    name: str
    format: str
    docs: list[Doc] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    apart: bool = False
    left_out: int = 0  # questions without usable evidence

    def newest(self) -> datetime:
        """Return the newest date in the file, or a fixed one when there is none."""
        dates = [doc.date for doc in self.docs if doc.date is not None]
        return max(dates, default=datetime(2026, 1, 1, tzinfo=timezone.utc))


def load_dataset(path: Path, direction: str = "", captions: bool = False, mixed: bool = False) -> Dataset:
    """Return the dataset in a file. `direction` (`zh-en`: Chinese questions, English documents) is for decision pairs,
    `mixed` puts the other language's further notes beside them;
    `captions` adds LoCoMo's descriptions of shared pictures to the text. Raises UsageError, MdmemError."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise MdmemError(f"cannot read {path}", why=error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise MdmemError(f"{path} is not JSON", why=str(error)) from error
    try:
        if isinstance(data, dict) and "pairs" in data:
            return _decisions(path.name, data, direction or "zh-zh", mixed)
        if isinstance(data, dict) and "docs" in data:
            return _plain(path.name, data)
        if isinstance(data, list) and data and "conversation" in data[0]:
            return _locomo(path.name, data, captions)
        if isinstance(data, list) and data and "haystack_sessions" in data[0]:
            return _longmemeval(path.name, data)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise MdmemError(f"{path} does not follow its own format", why=f"{type(error).__name__}: {error}") from error
    raise UsageError(
        f"{path} is in no known format",
        why="expected LoCoMo, LongMemEval, {docs, questions} or {pairs}",
        hint="mdmem bench recall --help",
    )


def _plain(name: str, data: dict[str, Any]) -> Dataset:
    out = Dataset(name, "plain")
    for doc in data["docs"]:
        out.docs.append(
            Doc(
                str(doc["id"]),
                str(doc["text"]),
                str(doc.get("title") or ""),
                _date(doc.get("date")),
                str(doc.get("group") or ""),
            )
        )
    known = {doc.id for doc in out.docs}
    for question in data["questions"]:
        evidence = frozenset(str(one) for one in question["evidence"]) & known
        if not evidence:
            out.left_out += 1
            continue
        out.questions.append(
            Question(str(question["id"]), str(question["question"]), evidence, str(question.get("group") or ""))
        )
    return out


def _decisions(name: str, data: dict[str, Any], direction: str, mixed: bool) -> Dataset:
    if direction not in DIRECTIONS:
        raise UsageError(f"no direction is named {direction!r}", why=f"it is one of {', '.join(DIRECTIONS)}")
    asked, held = direction.split("-")
    out = Dataset(f"{name} {direction}{' mixed' if mixed else ''}", "decisions")
    for number, pair in enumerate(data["pairs"]):
        out.docs.append(Doc(f"p{number}", pair[f"doc_{held}"], kind="decision"))
        out.questions.append(Question(f"q{number}", pair[f"query_{asked}"], frozenset([f"p{number}"])))
    for language in ("zh", "en") if mixed else (held,):
        texts = data[f"distractors_{language}"]
        out.docs += [Doc(f"{language}{number}", text, kind="decision") for number, text in enumerate(texts)]
    return out


_EVIDENCE = re.compile(r"D(\d+):(\d+)")


def _locomo(name: str, data: list[dict[str, Any]], captions: bool) -> Dataset:
    """A session is a document, its turns are lines; ids are read as D<session>:<turn>, zero padding ignored."""
    out = Dataset(name, "locomo")
    for number, sample in enumerate(data):
        talk = sample["conversation"]
        turns: set[tuple[int, int]] = set()
        for key, said in talk.items():
            match = re.fullmatch(r"session_(\d+)", key)
            if not match:
                continue
            lines = []
            for turn in said:
                text = str(turn["text"])
                if captions and turn.get("blip_caption"):
                    text += f" [shares {turn['blip_caption']}]"
                lines.append(f"{turn['speaker']}: {text}")
                turns.update((int(a), int(b)) for a, b in _EVIDENCE.findall(str(turn["dia_id"])))
            date = _date(talk.get(key + "_date_time"))
            out.docs.append(Doc(f"c{number}s{match[1]}", "\n".join(lines), date=date, kind="session"))
        for place, question in enumerate(sample["qa"]):
            cited = {(int(a), int(b)) for one in question.get("evidence") or [] for a, b in _EVIDENCE.findall(str(one))}
            evidence = frozenset(f"c{number}s{session}" for session, turn in cited if (session, turn) in turns)
            if evidence:
                out.questions.append(Question(f"c{number}q{place}", str(question["question"]), evidence))
            else:
                out.left_out += 1
    return out


def _longmemeval(name: str, data: list[dict[str, Any]]) -> Dataset:
    """Ids of sessions are numbered anew in their order: those of the file say which ones hold the answer."""
    out = Dataset(name, "longmemeval", apart=True)
    for number, entry in enumerate(data):
        group = f"q{number}"
        new: dict[str, str] = {}
        for place, (old, said) in enumerate(zip(entry["haystack_session_ids"], entry["haystack_sessions"])):
            new[str(old)] = f"{group}s{place}"
            lines = [f"{str(turn['role']).capitalize()}: {turn['content']}" for turn in said]
            date = _date((entry.get("haystack_dates") or [])[place] if place < len(entry.get("haystack_dates") or []) else None)
            out.docs.append(Doc(new[str(old)], "\n".join(lines), date=date, group=group, kind="session"))
        evidence = frozenset(new[str(one)] for one in entry.get("answer_session_ids") or [] if str(one) in new)
        if evidence:
            asked = _date(entry.get("question_date"))
            out.questions.append(Question(f"{group}", str(entry["question"]), evidence, group, asked))
        else:
            out.left_out += 1
    return out


_CLOCK = re.compile(r"(\d{1,2}):(\d{2})\s*([ap]m)?", re.IGNORECASE)


def _date(text: Any) -> datetime | None:
    """Return the moment in `1:56 pm on 8 May, 2023`, `2023/05/20 (Sat) 02:21`, RFC 3339 or a bare date; None when unread."""
    from mdmem.recall.when import periods

    if not text:
        return None
    written = str(text)
    moment = read_stamp(written)
    if moment is not None:
        return moment
    found = [period for period in periods(written, datetime(2026, 1, 1, tzinfo=timezone.utc)) if period.days == 1]
    if not found or found[0].any_year:
        return None
    hour, minute = 0, 0
    clock = _CLOCK.search(written)
    if clock:
        hour, minute = int(clock[1]) % 24, int(clock[2]) % 60
        if clock[3]:
            hour = hour % 12 + (12 if clock[3].lower() == "pm" else 0)
    day = found[0].first
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=timezone.utc)
