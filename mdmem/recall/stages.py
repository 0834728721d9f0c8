"""The steps of recall that a setting switches on: what each does to the weights before, and to the order after ranking.

The pure parts are in reorder, route and expand; here they meet candidates, stores and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mdmem.recall import reorder
from mdmem.recall.query import Query
from mdmem.recall.rank import Key, Ranked, Settings
from mdmem.recall.streams import Streams, window_rows

if TYPE_CHECKING:
    from mdmem.config import Config
    from mdmem.recall.route import Route

BALANCE = 0.7  # λ of MMR: relevance against sameness
# Sessions of one conversation are much alike: of what leads there, the places up to this one show different ones, at this λ.
TALKED, TALK_BALANCE = 5, 0.85


@dataclass(frozen=True)
class Switches:
    """Which steps are on."""

    standing: bool = False
    length: bool = False
    diversity: bool = False
    mmr: bool = False
    conversations: bool = False
    routing: bool = False
    synonyms: bool = False
    rerank: bool = False

    def on(self) -> list[str]:
        """Return the names of what is on."""
        return [name for name, value in vars(self).items() if value]


def switches(config: Config, query: Query) -> Switches:
    """Return what the settings say; nothing for a plain query."""
    if query.plain:
        return Switches()
    names = ("standing", "length", "diversity", "mmr", "conversations", "routing", "synonyms")
    chosen = {name: bool(config.get(f"recall.{name}")) for name in names}
    return Switches(**chosen, rerank=config.get("rerank.backend") in ("onnx", "http"))


def routed(query: Query, settings: Settings, on: Switches, found: Sequence[Streams]) -> tuple[Settings, Route | None]:
    """Return the settings that fit the kind of question, and the kind; as they are when routing is off."""
    if not on.routing:
        return settings, None
    from mdmem.recall.route import route

    kind = route(query.text, dated=any(streams.periods for streams in found))
    window = settings.window * kind.window if settings.window is not None else None
    weight = min(1.0, settings.weight + kind.words) if query.weight is None else settings.weight
    return replace(settings, weight=weight, window=window), kind


def reordered(ranked: list[Ranked], query: Query, on: Switches, notices: list[str]) -> list[Ranked]:
    """Return the notes in their last order. A step that fails is a notice, and the order before it stays."""
    if on.standing:
        ranked = _standing(ranked, query.explain)
    if on.length:
        ranked = _length(ranked, query.explain)
    if on.rerank:
        ranked = _rerank(ranked, query, notices)
    if on.mmr:
        ranked = _mmr(ranked, query.explain, BALANCE)
    elif on.conversations and query.mode == "hybrid" and any(one.streams.speakers for one in ranked):
        ranked = _mmr(ranked, query.explain, TALK_BALANCE, TALKED)
    if on.diversity:
        ranked = _diversity(ranked, query.explain)
    return ranked


def _multiply(ranked: list[Ranked], factors: dict[Key, float], name: str, explain: bool) -> list[Ranked]:
    for one in ranked:
        factor = factors.get(one.key, 1.0)
        one.score *= factor
        if explain and round(factor, 4) != 1.0:
            _told(one, name, round(factor, 4))
    # Sorting keeps the order of equal scores.
    return sorted(ranked, key=lambda one: -one.score)


def _told(one: Ranked, name: str, value: Any) -> None:
    one.steps[:] = [step for step in one.steps if step[0] != "score"]
    one.steps += [(name, value), ("score", round(one.score, 6))]


def _standing(ranked: list[Ranked], explain: bool) -> list[Ranked]:
    from mdmem.memory.feedback import ratings

    kept: dict[int, dict[str, dict[str, Any]]] = {}
    factors = {}
    for one in ranked:
        row = one.candidate.row
        assert row is not None
        rated = kept.get(one.key[0])
        if rated is None:
            rated = kept[one.key[0]] = ratings(one.streams.store)
        entry = rated.get(str(row["id"] or row["path"]))
        weight = entry.get("weight") if entry else None
        factors[one.key] = reorder.standing(row["tier"] or "", float(weight) if isinstance(weight, (int, float)) else None)
    return _multiply(ranked, factors, "standing", explain)


def _length(ranked: list[Ranked], explain: bool) -> list[Ranked]:
    factors = {}
    for one in ranked:
        assert one.candidate.row is not None
        factors[one.key] = reorder.length_factor(one.candidate.row["size"] or 0)
    return _multiply(ranked, factors, "length", explain)


def _mmr(ranked: list[Ranked], explain: bool, balance: float, places: int | None = None) -> list[Ranked]:
    head = ranked[: reorder.DEPTH]
    known: dict[int, dict[int, Any]] = {}
    for number in sorted({one.key[0] for one in head}):
        mine = [one for one in head if one.key[0] == number]
        wanted = sorted({one.candidate.near_window for one in mine} - {0})
        known[number] = mine[0].streams.index.window_vectors(wanted) if wanted else {}
    vectors = [known[one.key[0]].get(one.candidate.near_window) for one in head]
    if sum(vector is not None for vector in vectors) < 2:
        return ranked
    from mdmem.recall.fuse import scaled

    relevance = scaled({place: one.score for place, one in enumerate(head)})
    order = reorder.mmr([relevance[place] for place in range(len(head))], reorder.likeness(vectors), balance, places)
    if explain:
        for place, number in enumerate(order):
            if place != number:
                _told(head[number], "mmr", f"{number + 1} → {place + 1}")
    return [*(head[number] for number in order), *ranked[len(head) :]]


def _diversity(ranked: list[Ranked], explain: bool) -> list[Ranked]:
    def session(one: Ranked) -> Any:
        row = one.candidate.row
        assert row is not None
        named = row["id"] if row["kind"] == "session" else row["session"]
        return (one.key[0], named) if named else None

    out = reorder.diverse(ranked, session)
    if explain:
        before = {one.key: place for place, one in enumerate(ranked)}
        for place, one in enumerate(out[: reorder.DEPTH * 2]):
            if before[one.key] < place:
                _told(one, "diversity", f"{before[one.key] + 1} → {place + 1}")
    return out


def _rerank(ranked: list[Ranked], query: Query, notices: list[str]) -> list[Ranked]:
    from mdmem.recall.rerank import SHARE, RerankUnavailable, load_reranker

    head = ranked[: reorder.DEPTH]
    if len(head) < 2:
        return ranked
    try:
        judge = load_reranker(head[0].streams.store.config)
        judged = judge.scores(query.text, [_passage(one) for one in head])
    except RerankUnavailable as error:
        notices.append(f"{error}; the order stays as it was found")
        return ranked
    prior = {place: one.score for place, one in enumerate(head)}
    blend = reorder.blended(prior, dict(enumerate(judged)), SHARE)
    for place, one in enumerate(head):
        # Between the best and the last score of the head, so that what follows stays behind.
        one.score = prior[len(head) - 1] + blend[place] * (prior[0] - prior[len(head) - 1])
        if query.explain:
            _told(one, "rerank", round(judged[place], 4))
    return [*sorted(head, key=lambda one: -one.score), *ranked[len(head) :]]


def _passage(one: Ranked) -> str:
    row = one.candidate.row
    assert row is not None
    window = window_rows(one.streams.index.catalog, [one.candidate.window]).get(one.candidate.window)
    return "\n".join(part for part in (row["title"] or "", window["text"] if window is not None else "") if part)
