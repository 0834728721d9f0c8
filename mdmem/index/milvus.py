"""The shared index: many repositories' notes on a Milvus engine. Connection, layout, and the words of its filter language.

A file as `index.uri` runs the embedded engine (milvus-lite), an address a server: the same code. Two collections:
- COLLECTION        one row a window: repository (partition key), note, place and path, mark (content and versions), the
                    fields that filters ask for, the window, its share of the note's text and (with the first one) the note's
                    columns as JSON, our BM25 weights as a sparse vector, the embedding and which script it is in
- COLLECTION_state  for each repository the commit that was pushed, and for each scope in it how often each term stands there,
                    so that what is hidden from a reader counts in no weight
Knows no store and no git. Everything that Milvus raises becomes SharedDown, and so does an answer that takes too long.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from mdmem.errors import MdmemError
from mdmem.index.engine import Health
from mdmem.index.score import Settings
from mdmem.index.segment import FIELDS
from mdmem.index.versions import ANALYZER, PARSER, WINDOWS

if TYPE_CHECKING:
    from mdmem.config import Config

LAYOUT = 3
BUCKETS, SMALL = 256, 2_000  # a list of more terms than SMALL is kept in BUCKETS pieces; a question reads its own terms'
PIECE = 60_000  # characters of a text field, below Milvus's 65,535
BATCH = 500  # rows sent in one call
LIMIT = 16_384  # rows that one query may return
KEYS = 100  # values in one filter
ROWS = 500  # primary keys in one filter
SCALARS = ("scope", "kind", "type", "category", "agent", "status", "created", "updated", "expires")
PATH = 2_000  # characters of a path that filters see
TAGS = 1_024  # tags of a note that filters see
SCRIPTS = ("other", "cjk")  # of a window with a vector; one without has neither
INDEXED = ("note", "place", "scope", "kind", "status")  # fields with an index of their own: every filter asks for some of them
NEEDS = ("query", "query_iterator", "search")  # calls that need a loaded collection
PLAIN_DIMS = 2  # Milvus wants a vector in each collection, also where there is none

T = TypeVar("T")
# How many of this process's connections use an embedded engine's file.
_used: Counter[str] = Counter()
_embedded = threading.Lock()


class SharedDown(MdmemError):
    """The shared index cannot be asked now."""

    code = "shared_index_down"


@dataclass(frozen=True)
class Target:
    """Where the shared index is: a file or an address, a token, the collection."""

    uri: str
    token: str = ""
    collection: str = "mdmem"


def targets_of(config: Config) -> list[Target]:
    """Return where the shared index is, a collection each; [] when none is configured. Raises SharedDown when its settings
    are incomplete."""
    if str(config.get("index.engine")).strip().lower() != "milvus":
        return []
    uri = str(config.get("index.uri")).strip()
    if not uri:
        raise SharedDown("index.engine is milvus, but index.uri is empty", hint="mdmem config set index.uri http://HOST:19530")
    if "://" not in uri and not (uri.endswith(".db") and os.path.isabs(os.path.expanduser(uri))):
        raise SharedDown(
            f"index.uri is {uri}: neither a server's address nor the whole path of a file that ends in .db",
            hint="mdmem config set index.uri http://HOST:19530",
        )
    named = str(config.get("index.token_env")).strip()
    token = os.environ.get(named, "") if named else ""
    said = [name.strip() for name in str(config.get("index.collection")).split(",")]
    names = ["".join(c if c.isalnum() else "_" for c in name) for name in said if name] or ["mdmem"]
    uri = os.path.expanduser(uri) if "://" not in uri else uri
    return [Target(uri, token, name) for name in dict.fromkeys(names)]


def other_version(target: Target) -> SharedDown:
    """Return the error of a collection whose rows another version of mdmem wrote in a way of its own."""
    return SharedDown(
        f"the collection {target.collection} was made by another version of mdmem",
        hint="choose another index.collection, or drop it and its _state in Milvus and push again",
    )


def target_of(config: Config) -> Target | None:
    """Return where pushes go: the first collection; None when none is configured. Raises SharedDown."""
    return next(iter(targets_of(config)), None)


def health_of(config: Config) -> Health:
    """Return the state of the configured shared index; never raises."""
    windows, troubles = 0, []
    try:
        for target in targets_of(config):
            engine = Engine(target)
            try:
                found = engine.health()
            finally:
                engine.close()
            windows += found.windows
            troubles += [found.trouble] if found.trouble else []
    except SharedDown as error:
        troubles.append(str(error))
    return Health("milvus", windows, trouble="; ".join(troubles))


def mark_of(sha: str, path: str, model: str) -> str:
    """Return what changes when anything that is stored of a note would: its bytes, its path, our versions, the model."""
    text = f"{LAYOUT} {PARSER} {WINDOWS} {ANALYZER} {model} {path} {sha}"
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()


def key_of(text: str) -> str:
    """Return a short fixed name for a repository or a note."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=10).hexdigest()


def dimension(term: str) -> int:
    """Return the place of a term in a sparse vector: 32 bits of a hash; two terms of one place are told apart later."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=4).digest(), "big") % (2**32 - 2)


def piece_of(term: str, scope: str, pieces: int) -> str:
    """Return the name of the piece of a scope's list of terms that a term is in."""
    return f"terms:{key_of(scope)}:{pieces}:{dimension(term) % pieces}"


def weights(packed: dict[str, int], lengths: Sequence[int], averages: Sequence[float], settings: Settings) -> dict[int, float]:
    """Return the sparse vector of a window: for each term the part of BM25F that does not depend on the question.

    With {dimension: weight · idf} of a question's terms, the inner product is the score of score.py."""
    norms = [1.0 / ((1.0 - settings.b) + settings.b * length / average) for length, average in zip(lengths, averages)]
    out: dict[int, float] = {}
    for term, value in packed.items():
        x = sum((value >> 8 * n & 255) * settings.boosts[n] * norms[n] for n in range(len(FIELDS)))
        place = dimension(term)
        out[place] = out.get(place, 0.0) + x * (settings.k1 + 1.0) / (settings.k1 + x)
    return out or {0: 1e-9}  # Milvus refuses an empty one


def tag_key(tag: str) -> str:
    """Return a short fixed name for a tag."""
    return key_of(tag)[:12]


def key_of_row(repo: str, note: str, number: int, mark: str) -> str:
    """Return the primary key of a window: repository and note as the engine names them, its number, the note's mark."""
    return f"{repo}:{note}:{number}:{mark[:8]}"


def quoted(values: Iterable[str]) -> str:
    """Return a list of texts in the filter language; what stands in them is data."""
    return json.dumps([*values], ensure_ascii=False)


def squeeze(value: Any) -> str:
    """Return JSON as a short text."""
    return base64.b64encode(zlib.compress(json.dumps(value, ensure_ascii=False).encode(), 6)).decode()


def stretch(text: str) -> Any:
    """Return what was squeezed. Raises SharedDown for anything else."""
    try:
        return json.loads(zlib.decompress(base64.b64decode(text)))
    except (ValueError, TypeError, zlib.error, RecursionError) as error:
        raise unreadable(error) from error


def unreadable(error: Exception) -> SharedDown:
    """Return the error of rows that are not as we write them: others may write there too."""
    return SharedDown("the shared index holds what cannot be read", why=f"{type(error).__name__}: {error}"[:200])


def load_client() -> None:
    """Load pymilvus, which takes a second. Raises SharedDown when it is not installed or cannot be loaded."""
    if find_spec("pymilvus") is None:
        raise SharedDown("the shared index needs pymilvus, which is not installed", hint='pip install "mdmem[milvus]"')
    import logging

    try:
        import pymilvus  # noqa: F401
    except Exception as error:
        raise SharedDown("the shared index needs pymilvus, which cannot be loaded", why=str(error)[:300]) from error
    # It logs each refused call with its traceback; what went wrong is told by us, in one line.
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)


class Engine:
    """An open connection. Every call raises SharedDown when the engine does not answer.

    A writer (`writes`) makes the embedded engine's file, and sees everything that was written before; a reader makes nothing,
    and may see a row some seconds later, which spares it the wait for the engine's clock."""

    def __init__(self, target: Target, timeout: float = 10.0, writes: bool = False) -> None:
        """`timeout`: seconds that one call may take."""
        load_client()
        self.embedded = "://" not in target.uri
        if self.embedded and not writes and not os.path.exists(target.uri):
            raise SharedDown("the shared index is not there", why=f"{target.uri} does not exist", hint="mdmem index push")
        self.target = target
        self.timeout = timeout
        self.writes = writes
        self.until: float | None = None
        self._closed = False
        self.windows = target.collection
        self.state = target.collection + "_state"
        self._loaded: set[str] = set()
        self._client: Any = self._guarded(self._connect)

    def _connect(self) -> Any:
        from pymilvus import MilvusClient

        if not self.embedded:
            return MilvusClient(self.target.uri, token=self.target.token, timeout=self.timeout)
        # The embedded engine complains on stderr when another process has the file.
        with _embedded, contextlib.redirect_stderr(io.StringIO()):
            client = MilvusClient(self.target.uri, timeout=self.timeout)
            _used[os.path.abspath(self.target.uri)] += 1
            return client

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (MemoryError, MdmemError):
            raise
        except Exception as error:
            details = getattr(error, "details", None)  # of what gRPC itself refuses, such as a token without rights
            told = (details() if callable(details) else "") or getattr(error, "message", "") or str(error)
            why = (str(told).strip().splitlines() or [type(error).__name__])[0][:300]
            raise SharedDown("the shared index does not answer", why=why) from error

    def close(self) -> None:
        """Close the connection; the embedded engine gives its file back when nothing in this process uses it any more."""
        with contextlib.suppress(Exception):
            self._client.close()
        if self.embedded:
            with _embedded, contextlib.suppress(Exception):
                # Closing the client leaves the engine running, and its file locked, until the process ends.
                from milvus_lite.server_manager import server_manager_instance

                path = os.path.abspath(self.target.uri)
                _used[path] -= not self._closed
                if _used[path] <= 0:
                    server_manager_instance.release_server(path)
        self._closed = True

    def health(self) -> Health:
        """Return how many windows the engine has, or the trouble; never raises."""
        try:
            if not self.there():
                return Health("milvus", trouble=f"nothing was pushed to the collection {self.windows} yet")
            return Health("milvus", self.count(""))
        except SharedDown as error:
            return Health("milvus", trouble=str(error))

    def there(self) -> bool:
        """Tell whether the collections are made."""
        return all(self._call("has_collection", name) for name in (self.windows, self.state))

    def limit(self, seconds: float | None) -> None:
        """Let all calls from now on take so many seconds together (None: no such limit)."""
        self.until = None if seconds is None else time.monotonic() + seconds

    def _call(self, name: str, *words: Any, **given: Any) -> Any:
        left = self.timeout
        if self.until is not None:
            left = min(left, self.until - time.monotonic())
            if left <= 0:
                raise SharedDown("the shared index does not answer", why="it took too long")
        if self.writes and name in ("query", "search"):
            given["consistency_level"] = "Strong"
        if self.embedded and name in NEEDS and words[0] not in self._loaded:
            # A server has its collections loaded; here it takes long for a large one, and not every command asks it.
            self._guarded(lambda: self._client.load_collection(words[0], timeout=left))
            self._loaded.add(words[0])
        return self._guarded(lambda: getattr(self._client, name)(*words, timeout=left, **given))

    def create(self, dims: int) -> int:
        """Make the collections unless they are there, and return the length of their vectors; two writers may do it at once.
        Raises SharedDown when they are there and of another version of mdmem."""
        from pymilvus import DataType, MilvusClient

        if self.there():
            held = {field["name"]: field for field in self._call("describe_collection", self.windows)["fields"]}
            if not {"place", "path", "tags", "script"} <= held.keys():
                raise other_version(self.target)
            return int(held["meaning"]["params"]["dim"])
        text = DataType.VARCHAR

        def fields(*more: tuple[str, int]) -> Any:
            schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field("pk", text, max_length=128, is_primary=True)
            schema.add_field("repo", text, max_length=64, is_partition_key=True)
            for name, length in more:
                schema.add_field(name, text, max_length=length)
            return schema

        windows = fields(("note", 64), ("place", 64), ("mark", 64), *((name, 1024) for name in SCALARS), ("row", 65_535))
        windows.add_field("path", text, max_length=4 * PATH)
        windows.add_field("tags", DataType.ARRAY, element_type=text, max_capacity=TAGS, max_length=16)
        windows.add_field("script", text, max_length=8)
        windows.add_field("ord", DataType.INT64)
        windows.add_field("size", DataType.INT64)
        windows.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
        windows.add_field("meaning", DataType.FLOAT_VECTOR, dim=max(dims, PLAIN_DIMS))
        state = fields(("blob", 65_535))
        state.add_field("meaning", DataType.FLOAT_VECTOR, dim=PLAIN_DIMS)
        for name, schema in ((self.windows, windows), (self.state, state)):
            index = MilvusClient.prepare_index_params()
            index.add_index("meaning", index_type="FLAT" if self.embedded else "AUTOINDEX", metric_type="IP")
            if schema is windows:
                index.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
                for name_of_field in INDEXED:
                    index.add_index(name_of_field, index_type="INVERTED")
            try:
                self._call("create_collection", name, schema=schema, index_params=index, consistency_level="Bounded")
            except SharedDown:
                if not self._call("has_collection", name):
                    raise
        return max(dims, PLAIN_DIMS)

    def put(self, collection: str, rows: Sequence[dict[str, Any]]) -> None:
        """Write rows, in the place of those with the same key."""
        for start in range(0, len(rows), BATCH):
            self._call("upsert", collection, list(rows[start : start + BATCH]))

    def flush(self) -> None:
        """Have what was written put into indexed segments. What was only logged is looked through row by row for each
        question: in the embedded engine thirty times as slow. An engine that is busy may refuse; it does so by itself later."""
        for name in (self.windows, self.state):
            with contextlib.suppress(SharedDown):
                self._call("flush", name)

    def delete(self, collection: str, condition: str) -> None:
        """Delete the rows that fit."""
        self._call("delete", collection, filter=condition)

    def count(self, condition: str) -> int:
        """Return how many windows fit. Of all of them ("") the embedded engine knows it; else it looks at each row."""
        return int(self._call("query", self.windows, filter=condition, output_fields=["count(*)"])[0]["count(*)"])

    def rows(self, collection: str, condition: str, fields: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield every row that fits, however many."""
        first = self.few(collection, condition, fields, LIMIT // 4)
        if len(first) < LIMIT // 4:
            yield from first
            return
        walk = self._call("query_iterator", collection, filter=condition, output_fields=list(fields), batch_size=2_000)
        while True:
            part = self._guarded(walk.next)
            if not part:
                walk.close()
                return
            yield from part

    def few(self, collection: str, condition: str, fields: Sequence[str], limit: int = LIMIT) -> list[dict[str, Any]]:
        """Return at most `limit` rows that fit."""
        return [*self._call("query", collection, filter=condition, output_fields=list(fields), limit=limit)]

    def nearest(self, field: str, vector: Any, condition: str, limit: int, fields: Sequence[str]) -> list[dict[str, Any]]:
        """Return the rows with the highest inner products, best first."""
        found = self._call(
            "search",
            self.windows,
            data=[vector],
            anns_field=field,
            limit=limit,
            filter=condition,
            output_fields=list(fields),
            search_params={"metric_type": "IP"},
        )
        return [dict(hit["entity"]) for hit in found[0]]
