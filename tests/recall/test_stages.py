"""The switched steps on a real store: each does what it says, shows in explain, and can fail without harm."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdmem.clock import FixedClock
from mdmem.config import load_config
from mdmem.index import dense
from mdmem.memory.feedback import rate
from mdmem.notes.frontmatter import render
from mdmem.recall import rerank, rerank_http
from mdmem.recall.query import Filters, Query
from mdmem.recall.recall import Recall, recall
from mdmem.setup import init
from mdmem.store import Store

NOW = datetime(2026, 11, 2, tzinfo=timezone.utc)


class WordEmbedder:
    """Unit vectors of words."""

    fingerprint, dims = "words", 64

    def passages(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.full((len(texts), self.dims), 1e-2)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace(".", " ").replace(",", " ").split():
                row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % self.dims] += 1
            row /= np.linalg.norm(row)
        return rows.astype(np.float32)

    queries = passages

    def count_tokens(self, text: str) -> int:
        return len(text.split())


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    fake = WordEmbedder()
    monkeypatch.setattr(dense, "load_embedder", lambda config, state_dir, chunking="": fake)
    monkeypatch.setattr("mdmem.setup._driver", lambda *_: None)
    monkeypatch.setattr(rerank, "_kept", {})
    init(tmp_path / "store")
    return Store.open(tmp_path / "store", need="write", clock=FixedClock(NOW))


def keep(store: Store, name: str, text: str, **fields: object) -> None:
    known: dict[str, object] = {"kind": "memory", "type": "decision", "title": name}
    known |= {"created": "2026-11-01T00:00:00Z", "updated": "2026-11-01T00:00:00Z"} | fields
    store.folder.create(f"memories/{name}.md", render(known, text + "\n"))


def ask(store: Store, text: str, **settings: Any) -> Recall:
    defaults = ("standing", "length", "diversity", "mmr", "conversations", "routing", "synonyms")
    store.config.values |= {f"recall.{name}": False for name in defaults}
    store.config.values |= {name.replace("__", "."): value for name, value in settings.items()}
    store.index.refresh(embed_budget_s=None)
    return recall(store, Query(text, limit=10, explain=True))


def names(found: Recall) -> list[str]:
    return [hit.title for hit in found.results]


def steps(found: Recall, name: str) -> dict[str, Any]:
    return dict(next(hit.steps for hit in found.results if hit.title == name))


def test_ratings_and_tiers_move_notes_that_match_equally(store: Store) -> None:
    keep(store, "alpha", "the parser reads tabs")
    keep(store, "beta", "the parser reads tabs", tier="peripheral")
    keep(store, "gamma", "the parser reads tabs")
    for _ in range(3):
        rate(store, "memories/gamma.md", "useful")
    off = ask(store, "parser tabs")
    assert "standing" not in steps(off, "gamma")
    on = ask(store, "parser tabs", recall__standing=True)
    assert names(on) == ["gamma", "alpha", "beta"]
    assert steps(on, "gamma")["standing"] > 1 > steps(on, "beta")["standing"]
    assert on.explained["stages"] == ["standing"]


def test_length_puts_the_short_note_first(store: Store) -> None:
    keep(store, "long", "kestrel nest\n\n" + "\n\n".join(f"line {n} about other things altogether" for n in range(300)))
    keep(store, "short", "kestrel nest")
    found = ask(store, "kestrel nest", recall__length=True)
    assert names(found)[0] == "short"
    assert steps(found, "long")["length"] < 1


def test_no_more_than_three_of_one_session_stand_first(store: Store) -> None:
    for number in range(5):
        keep(store, f"same{number}", "the heron fishes here", session="s1")
    keep(store, "other", "a heron, seen once, fishes far from here in the delta", session="s2")
    assert names(ask(store, "heron fishes here"))[-1] == "other"
    found = ask(store, "heron fishes here", recall__diversity=True)
    assert names(found).index("other") == 3
    assert sorted(names(found)) == ["other", *(f"same{n}" for n in range(5))]


def test_mmr_shows_another_voice_earlier(store: Store) -> None:
    for name in ("one", "two", "three"):
        keep(store, name, "car engine repair in the old workshop beside the river below the mill")
    keep(store, "else", "car engine repair: a course for beginners, each winter, with tools and a certificate")
    keep(store, "far", "repair of clocks, of chairs, of old lamps, of shoes, of nets, of walls and of roofs")
    before = names(ask(store, "car engine repair"))
    found = ask(store, "car engine repair", recall__mmr=True)
    assert (before.index("else"), names(found).index("else")) == (3, 1)
    assert steps(found, "else")["mmr"] == "4 \u2192 2"
    assert names(recall(store, Query("car engine repair", limit=10))) == names(found)
    assert names(found)[0] in ("one", "two", "three")
    assert sorted(names(found)) == sorted(before)


def test_a_synonym_finds_the_note_by_words_alone(store: Store) -> None:
    keep(store, "d", "the defect in the importer was a missing lock")
    store.config.values["embedding.backend"] = "none"
    store.index.refresh(embed_budget_s=0.0)
    store.config.values["recall.synonyms"] = False
    assert recall(store, Query("bug", mode="keyword")).results == []
    store.config.values["recall.synonyms"] = True
    found = recall(store, Query("bug", mode="keyword", explain=True))
    assert names(found) == ["d"]
    assert {"defect"} <= {term["term"] for term in found.explained["terms"] if term.get("synonym")}


def test_routing_is_told(store: Store) -> None:
    keep(store, "d", "parse_config reads the file")
    assert ask(store, "parse_config", recall__routing=True).explained["kind"] == "identifier"
    assert ask(store, "parse_config").explained["kind"] is None


class Judge:
    """A /rerank endpoint on this machine that likes passages with `owl` in them."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.mode = "jina"
        self.elsewhere = "/v1/rerank"
        judge = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                judge.asked.append({"path": self.path} | body)
                judge.keys.append(self.headers.get("Authorization"))
                status, answer = judge.answer(body)
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", judge.elsewhere)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, body: dict[str, Any]) -> tuple[int, Any]:
        texts = body.get("texts") or body.get("documents") or []
        scored = [(number, 0.9 if "owl" in text else 0.1) for number, text in enumerate(texts)]
        if self.mode == "tei":
            return (200, [{"index": n, "score": s} for n, s in scored]) if "texts" in body else (422, {"error": "texts"})
        if self.mode == "jina":
            return 200, {"results": [{"index": n, "relevance_score": s} for n, s in reversed(scored)]}
        return {
            "error": (500, {}),
            "redirect": (302, {}),
            "text": (200, b"<html>"),
            "few": (200, {"results": [{"index": 0, "relevance_score": 1.0}]}),
            "nan": (200, {"results": [{"index": n, "relevance_score": "nan"} for n, _ in scored]}),
            "twice": (200, {"results": [{"index": 0, "relevance_score": 1.0} for _ in scored]}),
            "deep": (200, b"[" * 100_000),
            "huge": (200, json.dumps([{"index": n, "score": s} for n, s in scored]).encode().ljust(5 << 20)),
        }[self.mode]


@pytest.fixture
def judge() -> Iterator[Judge]:
    made = Judge()
    yield made
    made.http.shutdown()
    made.http.server_close()


def two(store: Store) -> None:
    keep(store, "day", "the hunt of the falcon, the falcon hunts by day")
    keep(store, "night", "the owl: a falcon it is not")


@pytest.mark.parametrize("mode", ["jina", "tei"])
def test_an_endpoint_in_jinas_or_teis_shape_judges_the_best_passages(
    store: Store, judge: Judge, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    two(store)
    judge.mode = mode
    monkeypatch.setenv("RERANK_KEY", "k-123")
    assert names(ask(store, "falcon hunts by day")) == ["day", "night"]
    found = ask(
        store, "falcon hunts by day", rerank__backend="http", rerank__base_url=judge.url, rerank__api_key_env="RERANK_KEY"
    )
    assert names(found) == ["night", "day"]
    assert steps(found, "night")["rerank"] == 0.9
    assert judge.asked[0]["path"] == "/v1/rerank" and judge.asked[0]["query"] == "falcon hunts by day"
    assert set(judge.keys) == {"Bearer k-123"}
    assert found.notices == []


@pytest.mark.parametrize("mode", ["error", "redirect", "text", "few", "nan", "twice", "deep", "huge"])
def test_an_endpoint_that_fails_leaves_the_order_and_a_notice(store: Store, judge: Judge, mode: str) -> None:
    two(store)
    judge.mode = mode
    before = names(ask(store, "falcon hunts by day"))
    found = ask(store, "falcon hunts by day", rerank__backend="http", rerank__base_url=judge.url)
    assert names(found) == before
    assert len(found.notices) == 1 and "the order stays as it was found" in found.notices[0]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "ftp://here", ""])
def test_an_endpoint_that_is_not_there_leaves_the_order(store: Store, url: str) -> None:
    two(store)
    found = ask(store, "falcon hunts by day", rerank__backend="http", rerank__base_url=url)
    assert names(found) == ["day", "night"]
    assert len(found.notices) == 1


def packed(*fields: tuple[int, int | str | bytes]) -> bytes:
    """A message of protocol buffers, of which an ONNX file is made: (number of the field, value)."""

    def varint(number: int) -> bytes:
        out = b""
        while number > 127:
            out += bytes([number & 127 | 128])
            number >>= 7
        return out + bytes([number])

    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def counting_graph(copies: int) -> bytes:
    """An ONNX model whose `copies` logits are each the number of times that word 7 stands in the pair."""
    int64, float32 = 7, 1

    def node(name: str, inputs: list[str], output: str, *attributes: bytes) -> tuple[int, bytes]:
        return 1, packed(*((1, one) for one in inputs), (2, output), (4, name), *((5, one) for one in attributes))

    def constant(name: str, value: int) -> tuple[int, bytes]:
        return 5, packed((1, 1), (2, int64), (7, value), (8, name))

    def value(name: str, kind: int, width: bytes) -> bytes:
        shape = packed((1, packed((1, 1))), (1, width))
        return packed((1, name), (2, packed((1, packed((1, kind), (2, shape))))))

    graph = packed(
        node("Equal", ["input_ids", "seven"], "is"),
        node("Cast", ["is"], "count", packed((1, "to"), (3, float32), (20, 2))),
        node("ReduceSum", ["count", "axis"], "one", packed((1, "keepdims"), (3, 1), (20, 2))),
        node("Concat", ["one"] * copies, "logits", packed((1, "axis"), (3, 1), (20, 2))),
        (2, "judge"),
        constant("seven", 7),
        constant("axis", 1),
        (11, value("input_ids", int64, packed((2, "n")))),
        (12, value("logits", float32, packed((1, copies)))),
    )
    return packed((1, 8), (7, graph), (8, packed((1, ""), (2, 17))))


@pytest.fixture
def cross(tmp_path: Path) -> Path:
    """A folder with a cross-encoder that likes passages with `owl` in them."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path / "cross"
    folder.mkdir()
    words = Tokenizer(models.WordLevel({"[UNK]": 1, "owl": 7, "falcon": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(folder / "tokenizer.json"))
    (folder / "model.onnx").write_bytes(counting_graph(1))
    return folder


def test_a_cross_encoder_in_a_folder_judges_and_a_broken_one_does_not_harm(store: Store, cross: Path, tmp_path: Path) -> None:
    two(store)
    for explain in (True, False):
        found = ask(store, "falcon hunts by day", rerank__backend="onnx", rerank__path=str(cross))
        assert found.notices == []
        assert names(found) == ["night", "day"] and steps(found, "night")["rerank"] == 1.0
        plain = recall(store, Query("falcon hunts by day", limit=10, explain=explain))
        assert names(plain) == ["night", "day"]
    (cross / "model.onnx").write_bytes(b"not a model")
    rerank._kept.clear()
    found = ask(store, "falcon hunts by day", rerank__backend="onnx", rerank__path=str(cross))
    assert names(found) == ["day", "night"]
    assert len(found.notices) == 1
    rerank._kept.clear()
    found = ask(store, "falcon hunts by day", rerank__backend="onnx", rerank__path=str(tmp_path / "nowhere"))
    assert names(found) == ["day", "night"] and "there is no cross-encoder in" in found.notices[0]


@pytest.mark.parametrize(("copies", "works"), [(2, True), (3, False)])
def test_a_graph_may_give_one_number_or_two_for_a_pair(store: Store, cross: Path, copies: int, works: bool) -> None:
    two(store)
    (cross / "model.onnx").write_bytes(counting_graph(copies))
    found = ask(store, "falcon hunts by day", rerank__backend="onnx", rerank__path=str(cross))
    if works:  # not relevant, relevant: equal numbers cancel out
        assert found.notices == [] and steps(found, "night")["rerank"] == 0.0
    else:
        assert names(found) == ["day", "night"] and "the order stays as it was found" in found.notices[0]


def test_an_endpoint_that_does_not_answer_is_not_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    two(store)
    monkeypatch.setattr(rerank_http.HttpReranker.__init__, "__defaults__", ("", 0.2))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        found = ask(store, "falcon hunts by day", rerank__backend="http", rerank__base_url=url)
    assert names(found) == ["day", "night"]
    assert [notice for notice in found.notices if "did not answer in time" in notice] == found.notices != []


def test_the_key_does_not_follow_a_redirect(store: Store, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    two(store)
    monkeypatch.setenv("RERANK_KEY", "k-123")
    other = Judge()
    judge.mode, judge.elsewhere = "redirect", other.url + "/rerank"
    settings = {"rerank__backend": "http", "rerank__base_url": judge.url, "rerank__api_key_env": "RERANK_KEY"}
    found = ask(store, "falcon hunts by day", **settings)
    assert judge.asked and other.asked == [] and "it answered 302" in found.notices[0]
    other.http.shutdown()
    other.http.server_close()


def test_a_key_that_is_not_there_is_said_before_anything_is_sent(store: Store, judge: Judge) -> None:
    two(store)
    settings = {"rerank__backend": "http", "rerank__base_url": judge.url, "rerank__api_key_env": "NO_SUCH_KEY"}
    found = ask(store, "falcon hunts by day", **settings)
    assert "NO_SUCH_KEY has no key" in found.notices[0] and judge.asked == []
    found = ask(store, "falcon hunts by day", rerank__backend="onnx", rerank__path="")
    assert "rerank.path is not set" in found.notices[0]


def test_a_model_is_named_to_the_endpoint_which_is_opened_once(store: Store, judge: Judge) -> None:
    two(store)
    settings = {"rerank__backend": "http", "rerank__base_url": judge.url, "rerank__model": "m-1"}
    for _ in range(2):
        assert names(ask(store, "falcon hunts by day", **settings)) == ["night", "day"]
    assert [asked["model"] for asked in judge.asked] == ["m-1", "m-1"]
    assert rerank.load_reranker(store.config) is rerank.load_reranker(store.config)
    keep(store, "alone", "a heron")
    assert names(ask(store, "heron", **settings)) == ["alone"] or len(judge.asked) == 3
    before = len(judge.asked)
    store.config.values["recall.languages"] = False
    found = recall(store, Query("falcon hunts by day", limit=10, mode="keyword", filters=Filters(paths=("memories/day.md",))))
    assert [hit.title for hit in found.results] == ["day"] and len(judge.asked) == before  # nothing to compare


def test_a_pulled_repository_cannot_name_a_judge(store: Store) -> None:
    (store.root / ".mdmem.toml").write_text('format = 1\n[rerank]\nbackend = "http"\nbase_url = "http://example.org"\n')
    config = load_config(store.root)
    assert config.get("rerank.backend") == "off" and config.get("rerank.base_url") == ""
    assert len(config.notices) == 2
