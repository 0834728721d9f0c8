"""SQL over the catalog: documented tables, read only, bounded in time, and only what this agent may read.

A statement sees temporary tables with what it may read, made for the names that stand in it; SQLite's authorizer lets it read
these and nothing else, so that not even a count of the catalog's own tables comes out.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mdmem.errors import MdmemError, UsageError
from mdmem.recall.query import Filters
from mdmem.recall.select import agent_scopes, allowed, hidden, showable

if TYPE_CHECKING:
    from mdmem.store import Store

SECONDS = 10.0
MAX_ROWS = 100_000
MAX_BYTES = 50_000_000  # of text in an answer, about
MAX_STATEMENT = 20_000
LONGEST = 2_000_000  # bytes of one value: no single function then works for minutes, which the clock cannot interrupt
_HEAP = 1_000_000_000  # bytes that SQLite may hold in this process: a sort of random blobs ends there, not at the machine's
_STEPS = 10_000  # SQLite instructions between two looks at the clock

_COLUMNS = (
    "rowid AS note, id, path, kind, type, category, title, summary, scope, agent, device, session, status, priority, tier, "
    "pinned, importance, initiative, due, expires, valid_from, valid_until, fact_key, created, updated, size, state"
)
_MINE = "IN (SELECT note FROM temp.allowed)"
# name -> (what it holds, its SELECT over the catalog; `allowed` is the set of notes that this agent may read)
TABLES: dict[str, tuple[str, str]] = {
    "notes": (
        "one row a note; `note` is its number in the other tables, `fields` its frontmatter as JSON",
        f"SELECT {_COLUMNS}, fields FROM main.notes WHERE rowid {_MINE}",
    ),
    "tags": ("one row a tag of a note", f"SELECT note, tag FROM main.tags WHERE note {_MINE}"),
    "passages": (
        "the passages that are searched, with their lines",
        f"SELECT note, ord, heading, text, start_line, end_line FROM main.windows WHERE note {_MINE}",
    ),
    "edges": (
        "relations: from note `note` to note `target_note` (NULL: it leads nowhere)",
        f"SELECT src AS note, rel, target, CASE WHEN dst {_MINE} THEN dst END AS target_note, origin, line, "
        f"CASE WHEN dst IS NULL OR dst {_MINE} THEN state ELSE 'dangling' END AS state FROM main.edges WHERE src {_MINE}",
    ),
    "problems": (
        "what is wrong with a note",
        f"SELECT note, path, code, message, line FROM main.problems WHERE note IS NULL OR note {_MINE}",
    ),
    "sessions": ("notes of kind session", "SELECT * FROM temp.notes WHERE kind = 'session'"),
    "tasks": (
        "notes of kind task; `claimed_by` from its claim",
        "SELECT *, substr(json_extract(fields, '$.claim'), 22) AS claimed_by, json_extract(fields, '$.outcome') AS outcome "
        "FROM temp.notes WHERE kind = 'task'",
    ),
    "messages": (
        "notes of kind message",
        "SELECT *, json_extract(fields, '$.to') AS receiver, json_extract(fields, '$.thread') AS thread, "
        "json_extract(fields, '$.read_by') AS read_by FROM temp.notes WHERE kind = 'message'",
    ),
    "agents": (
        "who wrote how many notes, and when last",
        "SELECT agent, device, count(*) AS notes, max(updated) AS last_update FROM temp.notes WHERE agent != '' "
        "GROUP BY agent, device",
    ),
}
# Tables that are not made from the catalog: name -> (what it holds, its columns).
MADE: dict[str, tuple[str, str]] = {
    "history": ("one row a change of a note in git", "path, rev, date, author, agent, device, session, subject, change"),
    "usage": ("how a note was rated on this device: 0 to 1, from 0.5", "note, path, weight, ratings, last_rated"),
}


class NotAllowed(UsageError):
    """The statement would write, or read what is not a documented table."""

    code = "query_not_allowed"


@dataclass(frozen=True)
class Answer:
    """The columns and rows of a statement; `cut`: there were more than MAX_ROWS, or more than MAX_BYTES of them."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    cut: bool = False

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return one dict a row; of two columns with one name the later gets a number."""
        names: list[str] = []
        for name in self.columns:
            plain, count = name, 1
            while name in names:
                count += 1
                name = f"{plain}_{count}"
            names.append(name)
        return [dict(zip(names, row)) for row in self.rows]


def query(store: Store, statement: str, seconds: float = SECONDS) -> Answer:
    """Return the answer to one SELECT. Raises UsageError with SQLite's words, NotAllowed, or MdmemError at the time limit."""
    return queries(store, [statement], seconds)[0]


def queries(store: Store, statements: Sequence[str], seconds: float = SECONDS) -> list[Answer]:
    """Return the answer to each SELECT; the tables are made once for all of them, and the time is that of all."""
    if any(len(statement) > MAX_STATEMENT for statement in statements):
        raise UsageError(f"the query is longer than {MAX_STATEMENT:,} characters")
    store.index.refresh()
    chosen = allowed(store, Filters(retired=True))
    notes = set(chosen) if chosen is not None else {row["rowid"] for row in store.index.catalog.rows("SELECT rowid FROM notes")}
    path = store.index.catalog.path
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)
    deadline = time.monotonic() + seconds
    late = False

    def look() -> int:
        nonlocal late
        late = time.monotonic() > deadline
        return 1 if late else 0

    try:
        _prepare(connection, store, notes, " ".join(statements))
        _functions(connection, store, notes)
        connection.set_progress_handler(look, _STEPS)
        connection.set_authorizer(_authorizer)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        return [_fetched(connection.execute(with_note(statement))) for statement in statements]
    except MemoryError as error:
        hint = "narrow it, or sort fewer columns"
        raise MdmemError("the query needs too much memory", hint=hint, code="too_large") from error
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
        raise _explained(error, late, seconds) from error
    finally:
        connection.close()


def _fetched(cursor: sqlite3.Cursor) -> Answer:
    if cursor.description is None:
        raise NotAllowed("only a SELECT can be asked", hint='mdmem query "SELECT title FROM notes LIMIT 5"')
    columns = [column[0] for column in cursor.description]
    found: list[tuple[Any, ...]] = []
    size = 0
    for row in cursor:
        size += sum(len(cell) if isinstance(cell, (str, bytes)) else 8 for cell in row)
        if len(found) == MAX_ROWS or (found and size > MAX_BYTES):
            return Answer(columns, found, True)
        found.append(row)
    return Answer(columns, found)


def _explained(error: Exception, late: bool, seconds: float) -> MdmemError:
    words = str(error)
    if late:
        return MdmemError(f"the query did not end within {seconds:g} s", hint="narrow it, or: --timeout 60s", code="timeout")
    if "not authorized" in words or "prohibited" in words or "readonly" in words:
        return NotAllowed("the query may only read the documented tables", why=words, hint="mdmem query --tables")
    if "ambiguous column name: note" in words:
        return UsageError("bm25() and similar() need to know which note", hint="write bm25('words', n.note) in a join")
    return UsageError("the query cannot be run", why=words, hint="mdmem query --tables")


_READABLE = frozenset({*TABLES, *MADE})
# printf counts to two thousand million before it looks at a limit.
_DENIED = frozenset({"load_extension", "printf", "format"})
_FUNCTION_TABLES = frozenset({"json_each", "json_tree"})


def _authorizer(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    """Let a statement select from our tables and call functions; everything else is denied."""
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if (second or "").lower() in _DENIED else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ:
        # count(*) over our own tables, a subquery or a WITH comes without a database; the catalog's tables never do.
        ours = first in _READABLE and database == "temp"
        nameless = database is None and not second
        return sqlite3.SQLITE_OK if ours or nameless or first in _FUNCTION_TABLES or not first else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_DENY


def _prepare(connection: sqlite3.Connection, store: Store, notes: set[int], statement: str) -> None:
    """Make the tables that a statement names, with the notes that may be read."""
    words = {word.lower() for word in re.findall(r"\w+", statement)}
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA hard_heap_limit = {_HEAP}")
    connection.execute("CREATE TEMP TABLE allowed (note INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO temp.allowed VALUES (?)", ((note,) for note in notes))
    built_on_notes = {name for name, (_, select) in TABLES.items() if "temp.notes" in select} | set(MADE)
    for name, (_, select) in TABLES.items():
        if name in words or (name == "notes" and words & built_on_notes):
            connection.execute(f"CREATE TEMP TABLE {name} AS {select}")
        else:
            connection.execute(f"CREATE TEMP TABLE {name} (note)")
    if "problems" in words and agent_scopes(store) is not None:
        # What is wrong with a file that is no note (yet) may be wrong in a scope that is not for this agent.
        connection.execute("DELETE FROM temp.problems WHERE note IS NULL")
    for name, (_, columns) in MADE.items():
        connection.execute(f"CREATE TEMP TABLE {name} ({columns})")
    if "history" in words:
        paths = {row[0] for row in connection.execute("SELECT path FROM temp.notes")}
        _history(connection, store, paths)
    if "usage" in words:
        _usage(connection, store)
    # Their first use declares a table, which the authorizer would refuse.
    connection.execute("SELECT count(*) FROM json_each('[]'), json_tree('[]')").fetchall()


def _usage(connection: sqlite3.Connection, store: Store) -> None:
    from mdmem.memory.feedback import ratings

    kept = ratings(store)
    for note, identity, path in connection.execute("SELECT note, id, path FROM temp.notes").fetchall():
        found = kept.get(identity or path)
        if found:
            row = (note, path, found.get("weight"), found.get("count"), found.get("last"))
            connection.execute("INSERT INTO temp.usage VALUES (?, ?, ?, ?, ?)", row)


def _history(connection: sqlite3.Connection, store: Store, paths: set[str]) -> None:
    from mdmem.repo.history import commits

    rows = []
    shows = showable(store)
    for commit in commits(store.git, "HEAD") if store.git.rev("HEAD") else []:
        who = (commit.author, commit.trailers.get("Mdmem-Agent"), commit.trailers.get("Mdmem-Device"))
        session = commit.trailers.get("Mdmem-Session")
        subject = commit.subject if shows(commit) else ""
        for entry in commit.entries:
            path = store.from_git(entry.path)
            # A note that is gone is not known to be readable, so it is left out where scopes are restricted.
            if path in paths:
                rows.append((path, commit.rev, commit.date, *who, session, subject, entry.status))
    connection.executemany("INSERT INTO temp.history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _functions(connection: sqlite3.Connection, store: Store, notes: set[int]) -> None:
    kept: dict[tuple[str, str], dict[int, float]] = {}

    def scorer(name: str, compute: Callable[[str], dict[int, float]]) -> Callable[[Any, Any], float]:
        def score(text: Any, note: Any) -> float:
            key = (name, str(text))
            if key not in kept:
                kept[key] = compute(str(text)) if str(text).strip() else {}
            return kept[key].get(note, 0.0)

        return score

    def words(text: str) -> dict[int, float]:
        best: dict[int, float] = {}
        for hit in store.index.text_hits(text, notes, MAX_ROWS, hidden(store)).hits:
            best[hit.note] = max(hit.score, best.get(hit.note, 0.0))
        return best

    def meaning(text: str) -> dict[int, float]:
        owners = {row["rowid"]: row["note"] for row in store.index.catalog.rows("SELECT rowid, note FROM windows")}
        best: dict[int, float] = {}
        for window, cosine in store.index.vector_search(text, notes, MAX_ROWS):
            note = owners.get(window)
            if note is not None:
                best[note] = max(cosine, best.get(note, -1.0))
        return best

    connection.create_function("bm25", 2, scorer("bm25", words))
    connection.create_function("similar", 2, scorer("similar", meaning))
    connection.create_function("decay", 1, _decay(store), deterministic=True)


def _decay(store: Store) -> Callable[[Any], float]:
    from mdmem.recall import adjust

    window = adjust.window_days(str(store.config.get("recall.decay_window")))
    now = store.clock.now()

    def decay(date: Any) -> float:
        return adjust.decay(adjust.age_in_days(str(date or ""), now), window, 0.0)

    return decay


_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\b(bm25|similar)\s*\(|[()]|,", re.I | re.S)


def with_note(statement: str) -> str:
    """Return the statement with `, note` added to each call of bm25 and similar that has one argument."""
    out: list[str] = []
    calls: list[list[int]] = []  # for each open bracket: [is ours, commas seen]
    last = 0
    for found in _TOKEN.finditer(statement):
        text = found[0]
        if found[1]:
            calls.append([1, 0])
        elif text == "(":
            calls.append([0, 0])
        elif text == "," and calls:
            calls[-1][1] += 1
        elif text == ")" and calls:
            ours, commas = calls.pop()
            if ours and not commas:
                out.append(statement[last : found.start()] + ", note")
                last = found.start()
    return "".join(out) + statement[last:]


def printable(value: Any) -> Any:
    """Return a cell as JSON can hold it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def as_json_lines(answer: Answer) -> str:
    """Return one JSON object a line."""
    rows = ({name: printable(value) for name, value in row.items()} for row in answer.as_dicts())
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
