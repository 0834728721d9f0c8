"""Bringing one repository's commit into the shared index: what lacks is written, what the commit does not hold is deleted.

What is pushed is a commit, never the work tree, and a commit only after those before it: an older one changes nothing, one of
another history needs `everything`. A note's windows carry the mark of its content; new ones are written before old ones go, and
the lists of terms and the commit come last, so that a killed push is finished by the next one. The caller holds the lease.

Where the engine holds exactly what was recorded last, only the notes that git names between the two commits are looked at. That
it does is known as long as no writer is begun and not ended (each leaves a word of that before it changes anything), and its
rows are as many as were recorded. In every other case all notes are compared.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mdmem.errors import Locked, RefusedState
from mdmem.index.milvus import KEYS, LAYOUT, PLAIN_DIMS, Engine, SharedDown, key_of, mark_of, quoted
from mdmem.index.milvus_held import Held, opened
from mdmem.index.milvus_record import BEGUN, begun, begun_pk, kind_of, of_repo, state_of, state_pk, untouched
from mdmem.index.milvus_rows import rows_of
from mdmem.index.milvus_terms import carry, counted, names_of, state_row, write
from mdmem.index.score import Corpus
from mdmem.index.segment import memory

if TYPE_CHECKING:
    from mdmem.clock import Clock
    from mdmem.index.asof import View
    from mdmem.index.changes import Tell
    from mdmem.index.index import Index

NOTES = 200  # notes written between two looks at the lease
GRACE = 600.0  # seconds after which a writer that began is taken for killed
FEW = 2_000  # notes that a commit changes, beyond which all are compared: in one sweep, instead of by their keys
_KEPT = ("repo", "note", "place", "mark", "ord", "size", "script", "row")
Wanted = dict[str, tuple[str, int, int]]  # note → (mark, windows, rowid)
There = dict[str, Counter[str]]  # note → {mark: windows} in the engine


class Overtaken(Locked):
    """Another writer has pushed meanwhile."""

    code = "shared_index_overtaken"


@dataclass
class Pushed:
    """What a push did. `rev`: the commit that the engine now holds; `older`: it held a later one already."""

    repo: str
    rev: str
    written: int = 0
    deleted: int = 0
    unchanged: int = 0
    without_vectors: int = 0
    older: bool = False
    seconds: float = 0.0
    notices: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(self.__dict__)

    def line(self) -> str:
        """Return one line for a person."""
        if self.older:
            return f"{self.repo}: the shared index holds a later commit already"
        parts = [f"{self.written} notes written", f"{self.deleted} deleted", f"{self.unchanged} unchanged"]
        if self.without_vectors:
            parts.append(f"{self.without_vectors} passages without a vector")
        return f"{self.repo}: {', '.join(parts)}, commit {self.rev[:10]}"


@dataclass(frozen=True)
class Commit:
    """What is pushed, and what git knows of it.

    `descends(earlier)`: whether the commit comes after (or is) an earlier one; False: it comes before; None: neither, or
    unknown. `changed(earlier)`: {path: blob id, "" where it is gone} of what differs; None: unknown. `url`: where the
    repository may be cloned from."""

    repo: str
    rev: str
    descends: Callable[[str], bool | None]
    changed: Callable[[str], Mapping[str, str] | None] = lambda earlier: None
    url: str = ""


class Push:
    """One push of one commit."""

    def __init__(
        self, index: Index, engine: Engine, commit: Commit, clock: Clock, keep_lease: Callable[[], None], tell: Tell | None
    ) -> None:
        self.index, self.engine, self.commit, self.clock = index, engine, commit, clock
        self.keep_lease, self.tell = keep_lease, tell
        self.stored = index.dense.vectors()
        self.model = self.stored.fingerprint if self.stored is not None else ""
        self.dims = engine.create(self.stored.dims if self.stored is not None else PLAIN_DIMS)
        if self.stored is not None and self.stored.dims != self.dims:
            raise RefusedState(
                "the shared index was made with a model of another length",
                why=f"{self.dims} numbers a vector, not {self.stored.dims}",
                hint="use the same embedding settings, or another index.collection",
                code="shared_index_model",
            )
        self.known = state_of(engine, commit.repo)
        self.turn = secrets.token_hex(8)
        self.begun = begun(engine, commit.repo)
        self.changing = False
        self.out = Pushed(commit.repo, commit.rev)

    def in_order(self) -> bool:
        """Tell whether the commit comes after the one that is held. Raises RefusedState when neither comes first."""
        after = self.commit.descends(self.known["rev"])
        if after is False:
            self.out.older, self.out.rev = True, self.known["rev"]
        if after is None:
            raise RefusedState(
                f"the shared index holds commit {self.known['rev'][:10]} of {self.commit.repo}, which is not before "
                f"{self.commit.rev[:10]} in this clone",
                why="deleting what only the other history has would need its word",
                hint="mdmem sync, then mdmem index push; after a rewritten history: mdmem index push --all",
                code="shared_index_order",
            )
        return after is True

    def differing(self) -> Mapping[str, str] | None:
        """Return {path: blob id, "" where it is gone} of what git says to differ from what is held; None: it cannot say."""
        return {} if self.known["rev"] == self.commit.rev else self.commit.changed(self.known["rev"])

    def some(self, paths: Mapping[str, str]) -> bool:
        """Bring in the notes at some paths, all that differs; returns False, with nothing done, when names of other notes hang
        on them, so that all have to be compared."""
        known, repo = self.known, self.commit.repo
        if not paths:
            self.out.unchanged = known["notes"]
            if known["rev"] != self.commit.rev:
                self._alone()
                self._put_state({**known, "rev": self.commit.rev, "url": self.commit.url})
            return True
        view = self.index.part_of(self.commit.rev, {path: blob for path, blob in paths.items() if blob})
        wanted, twins, lacking = self._wanted(view)
        before = self._at("place", [key_of(path) for path in paths])
        old: dict[tuple[str, str], dict[int, Any]] = {}
        for row in before:
            old.setdefault((row["repo"], row["note"]), {})[int(row["ord"])] = row
        there = {note: Counter(str(row["mark"]) for row in parts.values()) for (_, note), parts in old.items()}
        # An id that another note has already, here or there, decides which of both goes by it.
        others = self._at("note", [note for note in wanted if note not in there])
        torn = any(0 not in parts or len(parts) != parts[0]["size"] for parts in old.values())
        if known["twins"] or twins or others or torn or any(opened(row).get("cut") for row in before):
            return False
        held = Held(old)
        scope_of = {row["rowid"]: row["scope"] or "shared" for row in held.catalog.rows("SELECT rowid, scope FROM notes")}
        less = counted(Corpus([memory(held.rows())]), scope_of, _wide(held))
        more = counted(Corpus([memory(view.rows())]), _scopes(view, wanted), _wide(view))
        totals = [one["lengths"] for one in known["scopes"].values()]
        windows = sum(one["windows"] for one in known["scopes"].values())
        averages = [sum(column) / windows if windows and sum(column) else 1.0 for column in zip(*totals)] or [1.0] * 4
        self._write(view, wanted, there, averages)
        notes = known["notes"] + len(wanted) - len(there)
        self.out.unchanged = notes - self.out.written
        self.keep_lease()
        scopes = carry(self.engine, repo, self.turn, known["scopes"], more, less)
        self._record(
            scopes,
            {scope: one for scope, one in known["scopes"].items() if scope not in more and scope not in less},
            notes=notes,
            rows=known["rows"] + sum(count for _, count, _ in wanted.values()) - len(before),
            twins=0,
            lacking=lacking,
        )
        return True

    def all(self, everything: bool) -> None:
        """Compare every note of the commit with what the engine holds; `everything`: write each again."""
        view = self.index.as_of(self.commit.rev)
        wanted, twins, lacking = self._wanted(view)
        there = _there(self.engine, self.commit.repo)
        corpus = view.corpus()
        self._write(view, wanted, there, corpus.averages, everything)
        self.out.unchanged = len(wanted) - self.out.written
        rows = sum(count for _, count, _ in wanted.values())
        said = {"kind": kind_of(self.model), "rev": self.commit.rev, "rows": rows, "url": self.commit.url}
        if self.out.written or self.out.deleted or any(self.known.get(name) != value for name, value in said.items()):
            counts = counted(corpus, _scopes(view, wanted), _wide(view))
            self.keep_lease()
            scopes = write(self.engine, self.commit.repo, self.turn, counts)
            self._record(scopes, None, notes=len(wanted), rows=rows, twins=twins, lacking=lacking)
        else:
            self._ended()

    def _at(self, column: str, keys: Sequence[str]) -> list[dict[str, Any]]:
        """Return the rows whose place or note is one of some, without vectors."""
        found: list[dict[str, Any]] = []
        for some in _pieces(keys):
            found += self.engine.rows(self.engine.windows, f"{of_repo(self.commit.repo)} and {column} in {quoted(some)}", _KEPT)
        return found

    def _wanted(self, view: View) -> tuple[Wanted, int, int]:
        """Return what a view holds, how many of its notes share an id, and how many have a passage without a vector.

        A note goes by its id, a second one of the same id by its path."""
        bare = self._bare(view)
        found: Wanted = {}
        twins = lacking = 0
        sql = (
            "SELECT n.rowid, n.id, n.path, n.sha, (SELECT count(*) FROM windows w WHERE w.note = n.rowid) AS size FROM notes n "
            "WHERE n.folder = '' AND coalesce(n.scope, '') != 'local' ORDER BY n.path"
        )
        for row in view.catalog.rows(sql):
            if not row["size"]:
                continue
            name = key_of(f"id {row['id']}") if row["id"] else key_of(f"path {row['path']}")
            if name in found:
                twins += 1
                name = key_of(f"path {row['path']}")
            # What has no vector yet is written again once it has one.
            model = f"{self.model} so far" if row["rowid"] in bare else self.model
            lacking += row["rowid"] in bare
            found[name] = (mark_of(row["sha"], row["path"], model), row["size"], row["rowid"])
        return found, twins, lacking

    def _bare(self, view: View) -> set[int]:
        """Return the notes with a passage that has no vector, though there is a model."""
        if self.stored is None:
            return set()
        windows = view.catalog.rows("SELECT note, hash FROM windows")
        return {window["note"] for window, known in zip(windows, self.stored.has(w["hash"] for w in windows)) if not known}

    def _write(self, view: View, wanted: Wanted, there: There, averages: Sequence[float], everything: bool = False) -> None:
        """Write what lacks of the wanted, then delete what is there and not wanted."""
        lacking = [n for n, (mark, count, _) in wanted.items() if everything or there.get(n) != Counter({mark: count})]
        gone = [note for note in there if note not in wanted]
        repo, engine = self.commit.repo, self.engine
        for start in range(0, len(lacking), NOTES):
            self.keep_lease()
            self.begin()
            part = lacking[start : start + NOTES]
            rows, missing = rows_of(view, repo, {note: wanted[note] for note in part}, averages, self.stored, self.dims)
            engine.put(engine.windows, rows)
            self.out.without_vectors += missing
            for some in _pieces([note for note in part if note in there]):
                marks = [wanted[note][0] for note in some]
                engine.delete(engine.windows, f"{of_repo(repo)} and note in {quoted(some)} and mark not in {quoted(marks)}")
            self.out.written += len(part)
            if self.tell is not None:
                self.tell(self.out.written, len(lacking), "notes pushed")
        self.keep_lease()
        self._alone()
        if gone:
            self.begin()
        for some in _pieces(gone):
            engine.delete(engine.windows, f"{of_repo(repo)} and note in {quoted(some)}")
        self.out.deleted = len(gone)

    def begin(self) -> None:
        """Leave word that this push changes something: whoever finds it compares everything."""
        self.changing = True
        said = {"rev": self.commit.rev, "at": self.clock.now().timestamp()}
        self.engine.put(self.engine.state, [state_row(self.commit.repo, f"{begun_pk(self.commit.repo)}{self.turn}", said)])

    def _ended(self) -> None:
        """Take back the word, and what others have left who were killed: one of late may still be at work, although its lease
        has ended."""
        late = self.clock.now().timestamp() - GRACE
        gone = {f"{begun_pk(self.commit.repo)}{self.turn}", *(pk for pk, at in self.begun.items() if at < late)}
        for some in _pieces(sorted(gone)):
            self.engine.delete(self.engine.state, f"{of_repo(self.commit.repo)} and pk in {quoted(some)}")
        self.changing = False

    def _alone(self) -> None:
        """Raise Overtaken when another writer has finished since this one began: where the remote takes no leases, they hold on
        one machine only. Its next push puts right what both wrote."""
        now = state_of(self.engine, self.commit.repo)
        if (now.get("rev"), now.get("turn")) != (self.known.get("rev"), self.known.get("turn")):
            hint = "run it again; a remote that takes leases, or a CI job that runs alone, prevents it"
            raise Overtaken("another writer has pushed this repository meanwhile", hint=hint)

    def _record(self, written: Mapping[str, Any], kept: Mapping[str, Any] | None, **numbers: int) -> None:
        """Record the commit, after its lists of terms were written; what is left of earlier lists goes last.

        `kept`: scopes whose lists stay as they are (None: all were written). The lists of the record before stay too: a reader
        may have read it a moment ago."""
        repo, engine, before = self.commit.repo, self.engine, self.known.get("scopes", {})
        scopes = {**(kept or {}), **written}
        self.keep_lease()
        self._alone()
        replaced = {scope: one for scope, one in before.items() if scope not in (kept or {})}
        state = {"kind": kind_of(self.model), "layout": LAYOUT, "model": self.model, "dims": self.dims, "turn": self.turn}
        state |= {"repo": repo, "rev": self.commit.rev, "url": self.commit.url, **numbers, "scopes": scopes}
        state["replaced"] = {scope: {"pieces": one["pieces"], "turn": one["turn"]} for scope, one in replaced.items()}
        self._put_state(state)
        if kept is not None:
            old = [pk for scope, one in self.known.get("replaced", {}).items() for pk in names_of(repo, scope, one)]
        else:
            lists = [*scopes.items(), *before.items()]
            stay = {state_pk(repo)}.union(*(names_of(repo, scope, one) for scope, one in lists))
            found = (row["pk"] for row in engine.rows(engine.state, of_repo(repo), ["pk"]))
            old = [pk for pk in found if pk not in stay and not pk.startswith(BEGUN)]
        for some in _pieces(old):
            engine.delete(engine.state, f"{of_repo(repo)} and pk in {quoted(some)}")
        self._ended()
        engine.flush()

    def _put_state(self, state: dict[str, Any]) -> None:
        repo = self.commit.repo
        self.engine.put(self.engine.state, [state_row(repo, state_pk(repo), state)])


def push(
    index: Index,
    engine: Engine,
    commit: Commit,
    clock: Clock,
    everything: bool = False,
    sole: bool = False,
    keep_lease: Callable[[], None] = lambda: None,
    tell: Tell | None = None,
) -> Pushed:
    """Make the engine hold exactly the notes of a commit of its repository, and say what was done.

    `sole`: the lease holds for every machine; `keep_lease` is called between batches. Raises SharedDown, RefusedState,
    LeaseHeld, Overtaken."""
    began = time.monotonic()
    one = Push(index, engine, commit, clock, keep_lease, tell)
    try:
        if not one.known or everything or one.in_order():
            paths = None if everything or not sole or not untouched(engine, commit.repo, one.model) else one.differing()
            if paths is None or len(paths) > FEW or not one.some(paths):
                one.all(everything)
    except BaseException:
        if one.changing:
            with suppress(SharedDown):
                one.begin()  # one who took over may have taken the word for that of a killed writer
        raise
    one.out.seconds = time.monotonic() - began
    return one.out


def _pieces(keys: Sequence[str]) -> Iterable[Sequence[str]]:
    return (keys[start : start + KEYS] for start in range(0, len(keys), KEYS))


def _there(engine: Engine, repo: str) -> There:
    """Return what the engine holds of the repository."""
    found: There = {}
    for row in engine.rows(engine.windows, of_repo(repo), ["note", "mark"]):
        found.setdefault(row["note"], Counter())[row["mark"]] += 1
    return found


def _scopes(view: View, wanted: Wanted) -> dict[int, str]:
    """Return {rowid: scope} of the wanted notes."""
    mine = {rowid for _, _, rowid in wanted.values()}
    found = view.catalog.rows("SELECT rowid, scope FROM notes")
    return {row["rowid"]: row["scope"] or "shared" for row in found if row["rowid"] in mine}


def _wide(view: View | Held) -> set[int]:
    """Return the windows in a CJK script."""
    return {row["rowid"] for row in view.catalog.rows("SELECT rowid FROM windows WHERE wide")}
