"""The shared index: many repositories' notes on a Milvus engine. Connection, layout, and the words of its filter language.

A file as `index.uri` runs the embedded engine (milvus-lite), an address a server: the same code. Two collections:
- COLLECTION        one row a window: repository (partition key), note, its mark (content and versions), the fields that
                    filters ask for, the window and (with the first one) its note as JSON, our BM25 weights as a sparse
                    vector, the embedding
- COLLECTION_state  for each repository the commit that was pushed, and for each scope in it how often each term stands there,
                    so that what is hidden from a reader counts in no weight
Knows no store and no git. Everything that Milvus raises becomes SharedDown.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import zlib
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

LAYOUT = 1
BUCKETS, SMALL = 256, 2_000  # a list of more terms than SMALL is kept in BUCKETS pieces; a question reads its own terms'
PIECE = 60_000  # characters of a text field, below Milvus's 65,535
BATCH = 500  # rows sent in one call
LIMIT = 16_384  # rows that one query may return
KEYS = 100  # values in one filter
SCALARS = ("scope", "kind", "type", "category", "agent", "status", "created", "updated")
PLAIN_DIMS = 2  # Milvus wants a vector in each collection, also where there is none

T = TypeVar("T")


class SharedDown(MdmemError):
    """The shared index cannot be asked now."""

    code = "shared_index_down"


@dataclass(frozen=True)
class Target:
    """Where the shared index is: a file or an address, a token, the collection."""

    uri: str
    token: str = ""
    collection: str = "mdmem"


def target_of(config: Config) -> Target | None:
    """Return where the shared index is, None when none is configured. Raises SharedDown when its settings are incomplete."""
    if str(config.get("index.engine")).strip().lower() != "milvus":
        return None
    uri = str(config.get("index.uri")).strip()
    if not uri:
        raise SharedDown("index.engine is milvus, but index.uri is empty", hint="mdmem config set index.uri http://HOST:19530")
    named = str(config.get("index.token_env")).strip()
    collection = "".join(c if c.isalnum() else "_" for c in str(config.get("index.collection")).strip()) or "mdmem"
    uri = os.path.expanduser(uri) if "://" not in uri else uri
    return Target(uri, os.environ.get(named, "") if named else "", collection)


def health_of(config: Config) -> Health:
    """Return the state of the configured shared index; never raises."""
    try:
        target = target_of(config)
        assert target is not None
        engine = Engine(target)
    except SharedDown as error:
        return Health("milvus", trouble=f"{error} ({error.why})" if error.why else str(error))
    try:
        return engine.health()
    finally:
        engine.close()


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


def quoted(values: Iterable[str]) -> str:
    """Return a list of texts in the filter language; what stands in them is data."""
    return json.dumps([*values], ensure_ascii=False)


def squeeze(value: Any) -> str:
    """Return JSON as a short text."""
    return base64.b64encode(zlib.compress(json.dumps(value, ensure_ascii=False).encode(), 6)).decode()


def stretch(text: str) -> Any:
    """Return what was squeezed."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


class Engine:
    """An open connection. Every call raises SharedDown when the engine does not answer."""

    def __init__(self, target: Target, timeout: float = 10.0) -> None:
        if find_spec("pymilvus") is None:
            raise SharedDown("the shared index needs pymilvus, which is not installed", hint='pip install "mdmem[milvus]"')
        self.target = target
        self.timeout = timeout
        self.windows = target.collection
        self.state = target.collection + "_state"
        self._loaded = False
        self._client: Any = self._guarded(self._connect)

    def _connect(self) -> Any:
        import logging

        from pymilvus import MilvusClient

        # It logs each refused call with its traceback; what went wrong is told by us, in one line.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        # The embedded engine complains on stderr when another process has the file.
        with contextlib.redirect_stderr(io.StringIO()):
            return MilvusClient(self.target.uri, token=self.target.token, timeout=self.timeout)

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (MemoryError, MdmemError):
            raise
        except Exception as error:
            why = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
            raise SharedDown("the shared index does not answer", why=why) from error

    def close(self) -> None:
        """Close the connection; the embedded engine gives its file back."""
        with contextlib.suppress(Exception):
            self._client.close()

    def health(self) -> Health:
        """Return how many windows the engine has, or the trouble; never raises."""
        try:
            if not self.there():
                return Health("milvus", trouble=f"nothing was pushed to the collection {self.windows} yet")
            found = self._call("query", self.windows, filter="", output_fields=["count(*)"])
            return Health("milvus", int(found[0]["count(*)"]))
        except SharedDown as error:
            return Health("milvus", trouble=f"{error} ({error.why})" if error.why else str(error))

    def there(self) -> bool:
        """Tell whether the collections are made; the embedded engine's are loaded, which a server does by itself."""
        found = all(self._guarded(lambda name=name: self._client.has_collection(name)) for name in (self.windows, self.state))  # type: ignore[misc]
        if found and not self._loaded and "://" not in self.target.uri:
            for name in (self.windows, self.state):
                self._call("load_collection", name)
            self._loaded = True
        return found

    def _call(self, name: str, *words: Any, **given: Any) -> Any:
        return self._guarded(lambda: getattr(self._client, name)(*words, timeout=self.timeout, **given))

    def create(self, dims: int) -> None:
        """Make the collections unless they are there; two writers may do it at once."""
        from pymilvus import DataType, MilvusClient

        if self.there():
            return
        text = DataType.VARCHAR

        def fields(*more: tuple[str, int]) -> Any:
            schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field("pk", text, max_length=128, is_primary=True)
            schema.add_field("repo", text, max_length=64, is_partition_key=True)
            for name, length in more:
                schema.add_field(name, text, max_length=length)
            return schema

        windows = fields(("note", 64), ("mark", 64), *((name, 1024) for name in SCALARS), ("row", 65_535))
        windows.add_field("ord", DataType.INT64)
        windows.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
        windows.add_field("meaning", DataType.FLOAT_VECTOR, dim=max(dims, PLAIN_DIMS))
        state = fields(("blob", 65_535))
        state.add_field("meaning", DataType.FLOAT_VECTOR, dim=PLAIN_DIMS)
        for name, schema in ((self.windows, windows), (self.state, state)):
            index = MilvusClient.prepare_index_params()
            index.add_index("meaning", index_type="AUTOINDEX" if "://" in self.target.uri else "FLAT", metric_type="IP")
            if schema is windows:
                index.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
            try:
                self._guarded(
                    lambda name=name, schema=schema, index=index: self._client.create_collection(  # type: ignore[misc]
                        name, schema=schema, index_params=index, consistency_level="Strong"
                    )
                )
            except SharedDown:
                if not self._guarded(lambda name=name: self._client.has_collection(name)):  # type: ignore[misc]
                    raise

    def put(self, collection: str, rows: Sequence[dict[str, Any]]) -> None:
        """Write rows, in the place of those with the same key."""
        for start in range(0, len(rows), BATCH):
            self._call("upsert", collection, list(rows[start : start + BATCH]))

    def delete(self, collection: str, condition: str) -> None:
        """Delete the rows that fit."""
        self._call("delete", collection, filter=condition)

    def rows(self, collection: str, condition: str, fields: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield every row that fits, however many."""
        found = self._call("query", collection, filter=condition, output_fields=["count(*)"])
        if int(found[0]["count(*)"]) <= LIMIT // 4:
            yield from self._call("query", collection, filter=condition, output_fields=list(fields), limit=LIMIT)
            return
        walk = self._guarded(
            lambda: self._client.query_iterator(collection, filter=condition, output_fields=list(fields), batch_size=2_000)
        )
        while True:
            part = self._guarded(walk.next)
            if not part:
                walk.close()
                return
            yield from part

    def few(self, collection: str, condition: str, fields: Sequence[str], limit: int = LIMIT) -> list[dict[str, Any]]:
        """Return at most `limit` rows that fit."""
        return [*self._call("query", collection, filter=condition, output_fields=list(fields), limit=limit)]

    def nearest(self, field: str, vector: Any, condition: str, limit: int) -> list[tuple[str, str, int]]:
        """Return (repository, note, number of the window) by inner product, best first."""
        found = self._call(
            "search",
            self.windows,
            data=[vector],
            anns_field=field,
            limit=limit,
            filter=condition,
            output_fields=["repo", "note", "ord"],
            search_params={"metric_type": "IP"},
        )
        return [(hit["entity"]["repo"], hit["entity"]["note"], int(hit["entity"]["ord"])) for hit in found[0]]
