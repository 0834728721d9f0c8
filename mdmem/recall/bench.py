"""Recall measured: a throw-away store made from a file of questions, asked through the product's own code.

Notes are written by notes/, indexed by index/, found by recall/. Vectors are kept by content in the user's cache, so
that a second run is quick."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdmem.clock import FixedClock, stamp
from mdmem.config import Config, coerce, load_config
from mdmem.errors import MdmemError
from mdmem.identity import Identity
from mdmem.locate import GitPlace, Location
from mdmem.locks import FileLock
from mdmem.memory.remember import first_words
from mdmem.notes.folder import Folder
from mdmem.notes.frontmatter import render
from mdmem.recall.bench_data import Dataset, Doc, Question
from mdmem.recall.query import Filters, Query
from mdmem.recall.recall import ranking
from mdmem.recall.words import idle
from mdmem.store import Store

if TYPE_CHECKING:
    from mdmem.index.vectors import Vectors

SYSTEMS = ("hybrid", "minmax", "rrf", "bm25", "keyword", "dense", "semantic", "grep")
TIMED = 100  # questions that are timed, without any cache
DEPTH = 1000
STEP = 20.0  # seconds of embedding between two saves
KINDS = ("memory", "entity", "note", "session")

Tell = Callable[[int, int, str], None]


@dataclass
class Measured:
    """Quality in percent, time of one question in milliseconds (its own embedding included)."""

    file: str
    system: str
    ranks: list[int]  # of the best evidence, 0: not returned
    seconds: list[float]
    docs: int
    left_out: int = 0
    index_seconds: float = 0.0

    def at(self, depth: int) -> float:
        """Return recall@depth: the percentage of questions with any evidence among the first `depth`."""
        return 100.0 * sum(0 < rank <= depth for rank in self.ranks) / max(1, len(self.ranks))

    @property
    def mrr(self) -> float:
        """Return the mean reciprocal rank of the best evidence, in percent."""
        return 100.0 * sum(1.0 / rank for rank in self.ranks if rank) / max(1, len(self.ranks))

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        out: dict[str, Any] = {"file": self.file, "system": self.system, "questions": len(self.ranks)}
        out.update({f"recall@{depth}": round(self.at(depth), 2) for depth in (1, 5, 10)})
        out["mrr"] = round(self.mrr, 2)
        for name, share in (("p50_ms", 0.5), ("p95_ms", 0.95)):
            out[name] = round(1000 * percentile(self.seconds, share), 2)
        return out | {"docs": self.docs, "left_out": self.left_out, "index_s": round(self.index_seconds, 2)}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie (nearest rank); 0 for none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def measure(
    data: Dataset, systems: Sequence[str], decay: bool = False, limit: int = 0, tell: Tell | None = None
) -> list[Measured]:
    """Return one result for each system. `limit`: the first questions only (0: all). Raises MdmemError."""
    questions = data.questions[:limit] if limit else data.questions
    out = [Measured(data.name, system, [], [], len(data.docs), data.left_out) for system in systems]
    for docs, asked in _parts(data, questions):
        with _store(docs, data.newest()) as (store, paths):
            began = time.perf_counter()
            vectors = _fill(store, any(system not in ("bm25", "keyword", "grep") for system in systems), tell)
            spent = time.perf_counter() - began
            asking = _Asking(store, paths, docs, vectors, decay)
            for result in out:
                result.index_seconds += spent
                timed = min(len(asked), max(1, TIMED * len(asked) // len(questions)))
                for number, question in enumerate(asked):
                    result.ranks.append(asking.rank(result.system, question))
                    if tell is not None:
                        tell(len(result.ranks), len(questions), result.system)
                    if number < timed:
                        result.seconds.append(asking.timed(result.system, question))
    return out


def _parts(data: Dataset, questions: list[Question]) -> Iterator[tuple[list[Doc], list[Question]]]:
    if not data.apart:
        yield data.docs, questions
        return
    docs: dict[str, list[Doc]] = {}
    for doc in data.docs:
        docs.setdefault(doc.group, []).append(doc)
    for question in questions:
        yield docs[question.group], [question]


@dataclass
class _Asking:
    """A filled store, and how each system is asked."""

    store: Store
    paths: dict[str, str]  # path in the store → id of the document
    docs: list[Doc]
    vectors: Callable[[str], Any]
    decay: bool

    def rank(self, system: str, question: Question) -> int:
        """Return the place of the best evidence, the first 1; 0 when none is returned."""
        for place, found in enumerate(self.order(system, question, self.vectors(question.text)), start=1):
            if found in question.evidence:
                return place
        return 0

    def timed(self, system: str, question: Question) -> float:
        """Return the seconds of asking once, the question's own embedding included."""
        began = time.perf_counter()
        self.order(system, question, None)
        return time.perf_counter() - began

    def order(self, system: str, question: Question, vector: Any) -> list[str]:
        """Return the ids of documents, best first."""
        if system == "grep":
            return grep([doc for doc in self.docs if doc.group == question.group], question.text)
        if question.date is not None:
            self.store.clock = FixedClock(question.date)
        scopes = (f"user:{question.group}",) if question.group else None
        query = Query(question.text, limit=DEPTH, decay=self.decay, filters=Filters(scopes=scopes, kinds=KINDS))
        mode = {"bm25": "keyword", "keyword": "keyword", "dense": "semantic", "semantic": "semantic"}.get(system, "hybrid")
        query = replace(query, mode=mode, plain=system in ("bm25", "dense", "minmax", "rrf"))
        if system in ("minmax", "rrf"):
            query = replace(query, fusion=system)
        found = ranking([("", self.store)], query, vector if mode != "keyword" else None)
        return [self.paths[one.candidate.row["path"]] for one in found if one.candidate.row is not None]


_WORD = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff]+|[\u3040-\u30ff\u3400-\u9fff]+")


def grep(docs: Sequence[Doc], text: str) -> list[str]:
    """Return the ids of documents that hold any word of the question, as `grep -ric` would find them: most distinct
    words first, then most matches for their length. Nobody greps for `what did the`: function words are left out when
    there are others. Of a run without spaces (Chinese) each pair of characters counts as a word."""
    from mdmem.index.analyzer import tokens

    words: set[str] = set()
    for match in _WORD.finditer(text.lower()):
        run = match[0]
        words |= {run} if run.isascii() or len(run) < 3 else {run[i : i + 2] for i in range(len(run) - 1)}
    words = {word for word in words if not all(idle(term) for term in tokens(word))} or words
    scored = []
    for number, doc in enumerate(docs):
        held = f"{doc.title}\n{doc.text}".lower()
        counts = [held.count(word) for word in sorted(words)]
        if any(counts):
            scored.append((-sum(count > 0 for count in counts), -sum(counts) / len(held), number))
    return [docs[number].id for _, _, number in sorted(scored)]


@contextmanager
def _store(docs: Sequence[Doc], now: datetime) -> Iterator[tuple[Store, dict[str, str]]]:
    """Yield a store of these documents in a temporary folder, and {path: id}. Nothing of the user's is touched."""
    with tempfile.TemporaryDirectory(prefix="mdmem-bench-") as name:
        root = Path(os.path.realpath(name)) / "store"
        root.mkdir()
        state = Path(os.path.realpath(name)) / "git"
        place = GitPlace(root, state, state)
        location = Location(root, place, "", "dedicated", "bench", "", True)
        store = Store(location, _config(), FixedClock(now), root)
        local = root.parent / "local"
        local.mkdir()
        store.__dict__.update(local_folder=Folder(local), identity=Identity("bench", "bench"))
        paths = {}
        with store.folder.bulk():
            for number, doc in enumerate(docs):
                path = f"notes/{number:05d}.md"
                store.folder.create(path, note_bytes(doc, now))
                paths[path] = doc.id
        yield store, paths
        store.index.catalog.close()


def _config() -> Config:
    """Return the user's settings without folders, stores and agents of the user's."""
    config = load_config(None)
    config.user = {}
    return config


def note_bytes(doc: Doc, now: datetime) -> bytes:
    """Return the note as mdmem writes it: dated sessions are titled by their date, other texts by their first words."""
    date = stamp(doc.date or now)
    kind = "memory" if doc.kind == "decision" else doc.kind
    title = doc.title or (date[:10] if doc.date else first_words(doc.text))
    fields: dict[str, Any] = {"kind": kind, "title": title, "created": date, "updated": date}
    if doc.kind == "decision":
        fields["type"] = doc.kind
    if doc.group:
        fields["scope"] = f"user:{doc.group}"
    return render(fields, doc.text + "\n")


def cache_home() -> Path:
    """Return the folder of what only saves work."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    return base / "mdmem"


def _fill(store: Store, meaning: bool, tell: Tell | None) -> Callable[[str], Any]:
    """Index the store, with vectors when wanted; returns a function that gives a question's vector (None without)."""
    store.index.refresh(embed_budget_s=0.0, progress=tell)
    if not meaning:
        return lambda text: None
    cached = _cache(store)
    own = store.index.dense.vectors()
    if cached is None or own is None:
        raise MdmemError(
            "there is no embedding model", why=store.index.dense.trouble, hint="mdmem bench recall FILE --system bm25"
        )
    hashes = [row["hash"] for row in store.index.catalog.rows("SELECT DISTINCT hash FROM windows ORDER BY hash")]
    _copy(cached, own, hashes)
    left = 1
    while left:
        # In steps, so that what was embedded before a kill is not lost.
        left = store.index.refresh(embed_budget_s=STEP, progress=tell).pending_vectors
        with FileLock(cached.folder / "lock", timeout=60.0):
            own.refresh()
            _copy(own, cached, hashes)
        if left and store.index.dense.trouble:
            raise MdmemError("the embedding model failed", why=store.index.dense.trouble)
    store.index.rebuilds = False
    return lambda text: _question(store, cached, text)


def _copy(source: Vectors, target: Vectors, hashes: Sequence[str]) -> int:
    """Copy the vectors of `hashes` that only `source` has; returns how many."""
    target.refresh()
    both = zip(hashes, source.has(hashes), target.has(hashes))
    wanted = [digest for digest, here, there in both if here and not there]
    return target.add(wanted, source.get(source.rows_of(wanted))) if wanted else 0


def _cache(store: Store) -> Vectors | None:
    from mdmem.index.vectors import Vectors, VectorsDamaged

    embedder = store.index.dense.embedder()
    if embedder is None:
        return None
    folder = cache_home() / "bench" / embedder.fingerprint
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return Vectors(folder, embedder.fingerprint, embedder.dims)
    except VectorsDamaged:
        for path in folder.iterdir():
            path.unlink()
        return Vectors(folder, embedder.fingerprint, embedder.dims)


def _question(store: Store, cached: Vectors, text: str) -> Any:
    from mdmem.index.rows import text_hash

    digest = text_hash("question\n" + text)
    if not cached.has([digest])[0]:
        vector = store.index.dense.question(text)
        if vector is None:
            raise MdmemError("the embedding model failed", why=store.index.dense.trouble)
        with FileLock(cached.folder / "lock", timeout=60.0):
            cached.add([digest], vector[None, :])
    return cached.get(cached.rows_of([digest]))[0]


def own_questions(store: Store, most: int = 200) -> tuple[list[Question], dict[str, str]]:
    """Return questions made of a store's own notes (titles, and summaries where there are any), and {path: id}.

    They are easy, since the words stand in the note: good for comparing settings, not for praising them."""
    from mdmem.recall.select import rows

    store.index.refresh()
    found = rows(store, Filters(kinds=("memory", "entity", "note")), "ORDER BY n.rowid")
    step = max(1, len(found) // most)
    questions = []
    for row in found[::step][:most]:
        for name in ("title", "summary"):
            if row[name] and row[name].strip():
                questions.append(Question(f"{name} {row['path']}", row[name], frozenset([row["path"]])))
    return questions, {row["path"]: row["path"] for row in found}


def measure_own(
    store: Store, systems: Sequence[str], tell: Tell | None = None, settings: Sequence[tuple[str, Any]] = ()
) -> list[Measured]:
    """Return one result for each system, asked of the user's own store with titles and summaries as questions; then one of
    `hybrid` for each of `settings` (name, value), which is in force for that one alone. Raises UsageError."""
    questions, paths = own_questions(store)
    asking = _Asking(store, paths, [], lambda text: None, decay=True)
    ways: list[tuple[str, str, dict[str, Any]]] = [(system, system, {}) for system in systems]
    ways += [("hybrid", f"hybrid {name}={value}", {name: coerce(name, value)}) for name, value in settings]
    before = dict(store.config.values)
    out = []
    for system, label, changed in ways:
        result = Measured(str(store.root), label, [], [], len(paths))
        store.config.values.update(changed)
        try:
            for question in questions:
                began = time.perf_counter()
                result.ranks.append(asking.rank(system, question))
                result.seconds.append(time.perf_counter() - began)
                if tell is not None:
                    tell(len(result.ranks), len(questions), label)
        finally:
            store.config.values = dict(before)
        out.append(result)
    return out
