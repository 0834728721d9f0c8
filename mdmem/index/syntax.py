"""Whoosh's query language (`--query-syntax`), answered from our own postings.

Whoosh parses; the tree is evaluated here, so that filters, statistics and scores are those of the literal search. Fields:
title, headings, tags, body; without one, a word may stand in any. A phrase is looked up in the words of each window.
Words are stemmed as everywhere; a wildcard or a fuzzy word is compared with the stems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from whoosh import analysis, fields, qparser, query
from whoosh.query import terms as multi
from whoosh.support.levenshtein import distance

from mdmem.errors import UsageError
from mdmem.index import analyzer
from mdmem.index.catalog import listed
from mdmem.index.score import Corpus, Hit, Term, TextHits
from mdmem.index.segment import FIELDS

if TYPE_CHECKING:
    from mdmem.index.catalog import Catalog


class Searched(Protocol):
    """An index, or a view of a commit."""

    @property
    def catalog(self) -> Catalog: ...

    def corpus(self, without: frozenset[int] = frozenset()) -> Corpus: ...


ANY = "any"
EXPANDED = 1_000  # terms that one wildcard may stand for
Place = tuple[int, int]  # part of the corpus, document
Scores = dict[Place, float]


class Words(analysis.Analyzer):  # type: ignore[misc]
    """Our analyzer as Whoosh's parser calls it."""

    def __call__(
        self, value: str, positions: bool = False, start_pos: int = 0, tokenize: bool = True, **_: Any
    ) -> Iterator[Any]:
        # Wildcards, ranges and fuzzy words come whole; they are only folded.
        words = analyzer.tokens(value) if tokenize else [analyzer.fold(value)]
        token = analysis.Token(positions, False, removestops=True, mode="query", startchar=0, endchar=len(value))
        for number, text in enumerate(words):
            token.text = text
            token.boost = 1.0
            token.stopped = False
            if positions:
                token.pos = start_pos + number
            yield token


def _schema() -> Any:
    # All terms of one word must stand in a window: `node.js` gives node.js, node and js.
    field = fields.TEXT(analyzer=Words(), multitoken_query="and")
    return fields.Schema(**dict.fromkeys((ANY, *FIELDS), field))


def parse(text: str) -> Any:
    """Return Whoosh's query tree; raises UsageError."""
    parser = qparser.QueryParser(ANY, _schema())
    parser.add_plugin(qparser.FuzzyTermPlugin())
    try:
        return parser.parse(text).normalize()
    except Exception as error:
        raise UsageError(f"the query cannot be read: {text!r}", why=str(error), hint="leave out --query-syntax") from error


def search(
    index: Searched, text: str, allowed: Collection[int] | None, limit: int, without: frozenset[int] = frozenset()
) -> TextHits:
    """Return the windows that a query in Whoosh's language fits, best first; raises UsageError."""
    corpus = index.corpus(without)
    tree = _Tree(index, corpus)
    scores = tree.score(parse(text))
    found = []
    for (number, doc), score in scores.items():
        segment = corpus.parts[number].segment
        if allowed is None or segment.notes[doc] in allowed:
            found.append((-score, segment.windows[doc], segment.notes[doc], (number, doc)))
    found.sort()
    hits = []
    for negative, window, note, place in found[:limit]:
        matched = tuple(n for n, docs in enumerate(tree.matched.values()) if place in docs)
        hits.append(Hit(window, note, -negative, matched))
    return TextHits(hits, list(tree.terms.values()), corpus.count)


class _Reader:
    """The terms of the corpus, as Whoosh's expanding queries ask for them."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.schema = _schema()

    def expand_prefix(self, fieldname: str, prefix: Any) -> list[bytes]:
        if isinstance(prefix, bytes):
            prefix = prefix.decode("utf-8", "replace")
        found: set[str] = set()
        for part in self.corpus.parts:
            found.update(part.segment.terms(prefix))
        return [term.encode() for term in sorted(found)]

    def lexicon(self, fieldname: str) -> list[bytes]:
        return self.expand_prefix(fieldname, "")

    def terms_from(self, fieldname: str, start: bytes) -> Iterator[tuple[str, bytes]]:
        return ((fieldname, term) for term in self.lexicon(fieldname) if term >= start)

    def terms_within(self, fieldname: str, text: str, maxdist: int, prefix: int = 0) -> Iterator[bytes]:
        for term in self.expand_prefix(fieldname, text[:prefix]):
            if distance(term.decode(), analyzer.stem(text), limit=maxdist) <= maxdist:
                yield term


class _Tree:
    """Evaluates a query tree: which documents fit, with the sum of the BM25F scores of their terms."""

    def __init__(self, index: Searched, corpus: Corpus) -> None:
        self.index = index
        self.corpus = corpus
        self.reader = _Reader(corpus)
        self.terms: dict[tuple[str, str], Term] = {}
        self.matched: dict[tuple[str, str], set[Place]] = {}

    def score(self, node: Any) -> Scores:
        found = self._score(node)
        boost = float(getattr(node, "boost", 1.0) or 1.0)
        return found if boost == 1.0 else {place: value * boost for place, value in found.items()}

    def _score(self, node: Any) -> Scores:
        simple: dict[type, Callable[[Any], Scores]] = {
            query.Term: lambda n: self._term(n.fieldname, _text(n.text)),
            query.Phrase: self._phrase,
            query.And: self._and,
            query.Not: lambda n: self._without(self._every(), self.score(n.query)),
            query.AndNot: lambda n: self._without(self.score(n.a), self.score(n.b)),
            query.AndMaybe: lambda n: self._maybe(self.score(n.a), self.score(n.b)),
            query.Require: lambda n: self._keep(self.score(n.a), self.score(n.b)),
            query.Every: lambda n: self._every(),
        }
        for kind, work in simple.items():
            if type(node) is kind:
                return work(node)
        if isinstance(node, query.DisjunctionMax):
            return self._or(node, max)
        if isinstance(node, query.Or):
            return self._or(node, lambda a, b: a + b)
        if isinstance(node, multi.MultiTerm):
            return self._expanded(node)
        if node is query.NullQuery or not list(node.leaves()):
            return {}
        raise UsageError(f"this kind of query is not supported: {type(node).__name__}", hint="leave out --query-syntax")

    def _every(self) -> Scores:
        return {
            (number, doc): 1.0
            for number, part in enumerate(self.corpus.parts)
            for doc in range(part.segment.size)
            if doc not in part.dead
        }

    def _term(self, fieldname: str, text: str) -> Scores:
        columns = range(len(FIELDS)) if fieldname == ANY else [FIELDS.index(fieldname)]
        settings = self.corpus.settings
        strengths: Scores = {}
        for number, part in enumerate(self.corpus.parts):
            postings = part.segment.postings(text)
            if postings is None:
                continue
            for place, doc in enumerate(postings.docs):
                if doc in part.dead:
                    continue
                x = 0.0
                for column in columns:
                    tfs = postings.tfs[column]
                    if tfs is not None and tfs[place]:
                        length = part.segment.lengths[column][doc]
                        norm = 1.0 - settings.b + settings.b * length / self.corpus.averages[column]
                        x += tfs[place] * settings.boosts[column] / norm
                if x:
                    strengths[(number, doc)] = x
        df = len(strengths)
        idf = math.log(1.0 + (self.corpus.count - df + 0.5) / (df + 0.5)) if df else 0.0
        self.terms[(fieldname, text)] = Term(text, 1.0, df, idf)
        self.matched[(fieldname, text)] = set(strengths)
        top = settings.k1 + 1.0
        return {place: idf * (x * top / (settings.k1 + x)) for place, x in strengths.items()}

    def _and(self, node: Any) -> Scores:
        wanted = [self.score(child) for child in node.subqueries if not isinstance(child, query.Not)]
        refused = [self.score(child.query) for child in node.subqueries if isinstance(child, query.Not)]
        found = wanted[0] if wanted else self._every()
        for other in wanted[1:]:
            found = {place: value + other[place] for place, value in found.items() if place in other}
        for other in refused:
            found = self._without(found, other)
        return found

    def _or(self, node: Any, join: Callable[[float, float], float]) -> Scores:
        found: Scores = {}
        for child in node.subqueries:
            for place, value in self.score(child).items():
                found[place] = join(found[place], value) if place in found else value
        return found

    @staticmethod
    def _without(found: Scores, refused: Scores) -> Scores:
        return {place: value for place, value in found.items() if place not in refused}

    @staticmethod
    def _keep(found: Scores, wanted: Scores) -> Scores:
        return {place: value for place, value in found.items() if place in wanted}

    @staticmethod
    def _maybe(found: Scores, more: Scores) -> Scores:
        return {place: value + more.get(place, 0.0) for place, value in found.items()}

    def _expanded(self, node: Any) -> Scores:
        found: Scores = {}
        texts = sorted({_text(term) for term in node._btexts(self.reader)})
        if len(texts) > EXPANDED:
            raise UsageError(
                f"{node} stands for {len(texts)} words", why=f"at most {EXPANDED} are looked up", hint="write more of it"
            )
        for text in texts:
            for place, value in self._term(node.fieldname, text).items():
                found[place] = max(value, found.get(place, 0.0))
        return found

    def _phrase(self, node: Any) -> Scores:
        words = [_text(word) for word in node.words]
        found = self._and(query.And([query.Term(node.fieldname, word) for word in words]))
        rowids = {self.corpus.parts[number].segment.windows[doc]: (number, doc) for number, doc in found}
        rows = self.index.catalog.rows(
            "SELECT w.rowid, w.text, w.heading, n.title, n.rowid AS note FROM windows w JOIN notes n ON n.rowid = w.note "
            "WHERE w.rowid IN (SELECT value FROM json_each(?))",
            (listed(rowids),),
        )
        kept: Scores = {}
        for row in rows:
            texts = {"body": row["text"], "headings": row["heading"], "title": row["title"]}
            if node.fieldname in (ANY, "tags"):
                tags = self.index.catalog.rows("SELECT tag FROM tags WHERE note = ?", (row["note"],))
                texts["tags"] = "\n".join(tag for (tag,) in tags)
            fields = FIELDS if node.fieldname == ANY else (node.fieldname,)
            if any(_follows(analyzer.tokens(texts.get(name) or ""), words, node.slop) for name in fields):
                place = rowids[row["rowid"]]
                kept[place] = found[place]
        return kept


def _follows(said: list[str], words: list[str], slop: int) -> bool:
    """Tell whether the words stand in this order, each at most `slop` places after the one before."""
    reached = {place for place, term in enumerate(said) if term == words[0]}
    for word in words[1:]:
        reached = {
            place
            for place, term in enumerate(said)
            if term == word and any(place - step in reached for step in range(1, slop + 1))
        }
    return bool(reached)


def _text(term: Any) -> str:
    return term.decode("utf-8", "replace") if isinstance(term, bytes) else str(term)
