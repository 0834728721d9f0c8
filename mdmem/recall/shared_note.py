"""One note of another repository, as the shared index has it: to read, with where it comes from. Never written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdmem.errors import Ambiguous, MdmemError, NotFound, typed
from mdmem.index.milvus import LIMIT, ROWS, Engine, SharedDown, key_of, key_of_row, quoted, stretch, targets_of, unreadable
from mdmem.locate import repository_name
from mdmem.notes.note import Note, load
from mdmem.recall.select import agent_scopes, may_read
from mdmem.recall.shared import bounds, connected, states_of
from mdmem.repo.remotes import check_url

if TYPE_CHECKING:
    from mdmem.store import Store

_FIRST = ("repo", "note", "mark", "size", "row")


@dataclass(frozen=True)
class Origin:
    """Where a note comes from that is not of this store.

    `url`: where its repository may be cloned from, empty when its writer had no remote; `whole`: whether `Note.data` is the
    file's text (else only its passages, put together)."""

    repository: str
    path: str
    commit: str
    url: str
    whole: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "repository": self.repository,
            "commit": self.commit,
            "url": self.url,
            "whole": self.whole,
            "read_only": True,
        }

    def line(self) -> str:
        """Return in one line what this is, and how to get the repository."""
        text = f"from {self.repository}, commit {self.commit[:10]}, as the shared index has it; read only here"
        if not self.whole:
            text += "; it is too long to be kept there whole, and what is shown are its passages"
        return f"{text}. To have the repository: {typed('mdmem', 'clone', self.url)}" if self.url else text


def read_anywhere(store: Store, reference: str) -> tuple[Note, Origin | None]:
    """Return the note that a reference names: of this store or its folders, else of the shared index where one is configured
    (then with its origin). There a note goes by its id, or by the path that a hit names (`REPOSITORY: PATH`).

    Raises NotFound, Ambiguous."""
    from mdmem.memory.change import read_any

    try:
        return read_any(store, reference), None
    except NotFound as missing:
        if store.config.get("index.engine") != "milvus":
            raise
        try:
            found = _looked_up(store, reference)
        except SharedDown as error:
            raise NotFound(missing.message, why=f"not in this store, and elsewhere: {error}", hint=missing.hint) from missing
        if not found:
            raise
    if len(found) > 1:
        places = [f"{origin.repository}: {origin.path}" for _, origin in found]
        raise Ambiguous(f"{reference} is in several repositories", why="; ".join(places[:5]), hint="name it by one of these")
    return found[0]


def _looked_up(store: Store, reference: str) -> list[tuple[Note, Origin]]:
    """Return what the shared index has under a reference, of the repositories and scopes that may be read. Raises
    SharedDown when no collection answers."""
    found: list[tuple[Note, Origin]] = []
    down: list[SharedDown] = []
    targets = targets_of(store.config)
    for target in targets:
        try:
            with connected(store, target) as engine:
                found += _in_one(store, engine, reference)
        except SharedDown as error:
            down.append(error)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            down.append(unreadable(error))  # rows that are not as we write them
    if down and not found:
        raise down[0]
    return found


def _in_one(store: Store, engine: Engine, reference: str) -> list[tuple[Note, Origin]]:
    apart = () if store.config.get("index.share") == "all" else (repository_name(store.location),)
    states = states_of(engine, store, apart)
    label, _, path = reference.partition(": ")
    if path:
        states = {repo: state for repo, state in states.items() if repo == label}
        wanted = f"place == {quoted([key_of(path)])[1:-1]}"
    else:
        wanted = f"note == {quoted([key_of(f'id {reference}')])[1:-1]}"
    if not states:
        return []
    patterns = agent_scopes(store)
    condition = " and ".join(bounds(patterns, [key_of(repo) for repo in states]))
    rows = engine.few(engine.windows, f"{condition} and ord == 0 and {wanted}", _FIRST)
    # While a writer is at work a note may stand there in two versions.
    first = {(row["repo"], row["note"]): row for row in sorted(rows, key=lambda row: str(row["mark"]), reverse=True)}
    out = []
    for _, row in sorted(first.items()):
        opened = stretch(row["row"])
        if may_read(opened["note"][0]["scope"], patterns):
            out.append(_made(engine, row, opened, condition, states))
    return out


def _made(
    engine: Engine, row: dict[str, Any], opened: dict[str, Any], condition: str, states: dict[str, dict[str, Any]]
) -> tuple[Note, Origin]:
    parts = {0: opened}
    keys = [key_of_row(row["repo"], row["note"], number, row["mark"]) for number in range(1, int(row["size"]))]
    for start in range(0, len(keys), ROWS):
        wanted = f"pk in {quoted(keys[start : start + ROWS])} and {condition}"
        for more in engine.few(engine.windows, wanted, ["ord", "row"], LIMIT):
            parts[int(more["ord"])] = stretch(more["row"])
    ordered = [parts[number] for number in sorted(parts)]
    columns = opened["note"][0]
    whole = len(ordered) == int(row["size"]) and all(part["raw"] is not None for part in ordered)
    body = "".join(part["raw"] for part in ordered) if whole else "\n\n".join(part["text"] for part in ordered)
    repository = str(opened["repo"])
    state = next((state for repo, state in states.items() if key_of(repo) == row["repo"]), {})
    origin = Origin(repository, str(columns["path"]), str(state.get("rev", "")), _url(state.get("url")), whole)
    return load(f"{repository}: {columns['path']}", body.encode("utf-8")), origin


def _url(value: Any) -> str:
    """Return an address to clone from, empty for one that no person should type: another writer wrote it there."""
    try:
        return check_url(value) if isinstance(value, str) and value else ""
    except MdmemError:
        return ""
