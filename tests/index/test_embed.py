"""The local models, run for real."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdmem.config import Config
from mdmem.index import embed_files
from mdmem.index.embed import BUNDLED, Embedder, EmbeddingUnavailable, load_embedder
from mdmem.index.embed_onnx import OnnxEmbedder
from mdmem.index.embed_pieces import Pieces
from mdmem.store import Store
from tests.examples import examples

TEXTS = [
    "a",
    "We chose PostgreSQL as the job queue.",
    "Lunch is at noon.",
    "我们用 PostgreSQL 做任务队列。",
    "def f(x):\n    return x ** 2  # squares, 平方\n" * 6,
    "git merge " * 300,
    "",
    "部署失败的原因是证书过期。" * 20,
]


def chosen(backend: str, **more: Any) -> Config:
    return Config(values={"embedding.backend": backend, **{f"embedding.{name}": value for name, value in more.items()}})


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return load_embedder(Config(), tmp_path_factory.mktemp("state"), "1")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The bundled model in a folder of its own: the exact graph only."""
    folder = tmp_path / "model"
    folder.mkdir()
    described = json.loads((BUNDLED / "model.json").read_bytes())
    for name in ("fast", "pieces"):
        del described[name]
    described["files"] = {name: described["files"][name] for name in ("model.onnx", "tokenizer.json")}
    for name in described["files"]:
        os.symlink(BUNDLED / name, folder / name)
    (folder / "model.json").write_text(json.dumps(described))
    return folder


def test_finds_by_meaning_across_languages(embedder: Embedder) -> None:
    found = embedder.passages(TEXTS[1:4])
    asked = embedder.queries(["which database holds the background jobs?"])
    assert found.dtype == np.float32 and found.shape == (3, 384)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    scores = (found @ asked.T)[:, 0]
    assert scores[0] > scores[1] and scores[2] > scores[1]
    assert embedder.passages([]).shape == (0, 384)
    assert embedder.count_tokens("hello world") == 3 and embedder.count_tokens("") == 0


def test_same_text_same_bits_whatever_the_batch(embedder: Embedder, tmp_path: Path) -> None:
    alone = np.vstack([load_embedder(Config(), tmp_path, "1").passages([text]) for text in TEXTS])
    assert np.array_equal(embedder.passages(TEXTS), alone)
    assert np.array_equal(embedder.passages(TEXTS[::-1])[::-1], alone)
    assert np.array_equal(embedder.passages(TEXTS[2:5] * 3)[3:6], alone[2:5])
    two_threads = load_embedder(chosen("bundled", threads=2), tmp_path, "1")
    assert np.array_equal(two_threads.passages(TEXTS), alone)
    again = load_embedder(Config(), tmp_path, "1")
    for _ in range(2):  # the second question of a process runs in another session
        assert np.array_equal(again.queries(["Lunch?"]), embedder.queries(["Lunch?"]))


def test_the_fast_form_is_the_exact_one_to_three_nines(embedder: Embedder, copied: Path, tmp_path: Path) -> None:
    exact = load_embedder(chosen("onnx", path=str(copied)), tmp_path)
    found = exact.passages(TEXTS)
    for number in (1, 3):
        alone = load_embedder(chosen("onnx", path=str(copied)), tmp_path).passages([TEXTS[number]])
        assert np.array_equal(alone[0], found[number])
    cosines = (embedder.passages(TEXTS) * found).sum(axis=1)
    assert cosines.min() > 0.999 and cosines.mean() > 0.9996


def test_a_processor_that_saturates_gets_the_exact_form(copied: Path, tmp_path: Path) -> None:
    folder = tmp_path / "saturating"
    folder.mkdir()
    for path in BUNDLED.iterdir():
        if path.name != "model.json":
            # Weights of a graph may not be reached through links that lead out of its folder.
            shutil.copyfile(path, folder / path.name)
    described = json.loads((BUNDLED / "model.json").read_bytes())
    described["fast"]["check"]["value"] += 1
    (folder / "model.json").write_text(json.dumps(described))
    found = load_embedder(chosen("onnx", path=str(folder)), tmp_path).passages(TEXTS[:3])
    assert np.array_equal(found, load_embedder(chosen("onnx", path=str(copied)), tmp_path).passages(TEXTS[:3]))


def test_the_settings_that_a_vector_depends_on_are_in_its_fingerprint(copied: Path, tmp_path: Path) -> None:
    def current(chunking: str = "1") -> str:
        return load_embedder(chosen("onnx", path=str(copied)), tmp_path, chunking).fingerprint

    seen = {load_embedder(Config(), tmp_path, "1").fingerprint, current(), current("2")}
    described = json.loads((copied / "model.json").read_bytes())
    for change in ({"query_prefix": "Q: "}, {"passage_prefix": "P: "}, {"max_tokens": 256}):
        (copied / "model.json").write_text(json.dumps({**described, **change}))
        seen.add(current())
    assert len(seen) == 6
    (copied / "model.json").write_text(json.dumps(described))
    assert current() in seen


def test_i14_two_models_in_one_process_do_not_mix(embedder: Embedder, copied: Path, tmp_path: Path) -> None:
    """Each store's question is put by its own model, in turns, as if the other were not there."""
    described = json.loads((copied / "model.json").read_bytes())
    (copied / "model.json").write_text(json.dumps({**described, "query_prefix": "", "passage_prefix": ""}))
    other = load_embedder(chosen("onnx", path=str(copied)), tmp_path, "1")
    assert other.fingerprint != embedder.fingerprint
    first, second = embedder.queries(["Lunch?"]), other.queries(["Lunch?"])
    assert np.array_equal(first, embedder.queries(["Lunch?"])) and np.array_equal(second, other.queries(["Lunch?"]))
    assert float((first * second).sum()) < 0.99
    assert np.array_equal(second, other.passages(["Lunch?"]))  # it has no prefixes


TINY = base64.b64decode(
    "CAg63wEKGQoJaW5wdXRfaWRzCgRmb3VyEgFtIgNNb2QKIQoBdwoBbRIRbGFzdF9oaWRkZW5fc3RhdGUiBkdhdGhlchIEdGlueSo7CAQIAxABQgF3"
    "SjAAAEBAAAAAAAAAAAAAAAAAAACAQAAAAAAAAAAAAAAAAAAAoEAAAIA/AACAPwAAgD8qEhAHQgRmb3VySggEAAAAAAAAAFodCglpbnB1dF9pZHMS"
    "EAoOCAcSCgoDEgFiCgMSAXNiKQoRbGFzdF9oaWRkZW5fc3RhdGUSFAoSCAESDgoDEgFiCgMSAXMKAggDQgQKABAR"
)


@pytest.mark.parametrize(("pooling", "expected"), [("mean", [1.5, 0, 2.5]), ("CLS token", [3, 0, 0])])
def test_i16_a_model_whose_vectors_are_not_normalised(tmp_path: Path, pooling: str, expected: list[float]) -> None:
    """A graph with one vector a token: (3,0,0) for ids 0, 4, 8 … and (0,0,5) for ids 2, 6 …; "" is <s>=0 and </s>=2."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(TINY)
    shutil.copy(BUNDLED / "tokenizer.json", folder)
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    (folder / "model.json").write_text(json.dumps({"name": "tiny", "dimensions": 3, "pooling": pooling, "files": hashes}))
    found = load_embedder(chosen("onnx", path=str(folder)), tmp_path).passages(["", "a\ud800"])
    assert np.allclose(found[0], np.array(expected) / np.linalg.norm(expected))
    assert np.allclose(np.linalg.norm(found, axis=1), 1)


@pytest.mark.parametrize("backend", ["off", "none", "nonsense", "onnx"])
def test_no_backend_is_one_typed_error(tmp_path: Path, backend: str) -> None:
    with pytest.raises(EmbeddingUnavailable) as caught:
        load_embedder(chosen(backend), tmp_path)
    assert caught.value.wanted == (backend in ("off", "none"))


def test_i38_an_absent_or_damaged_model_is_one_typed_error(copied: Path, tmp_path: Path) -> None:
    config = chosen("onnx", path=str(copied))
    for name in ("model.onnx", "tokenizer.json"):
        whole = (BUNDLED / name).read_bytes()
        (copied / name).unlink()
        with pytest.raises(EmbeddingUnavailable) as caught:
            load_embedder(config, tmp_path)
        assert name in caught.value.message and caught.value.hint
        middle = len(whole) // 2
        for damaged in (b"", whole[:-1], whole[:middle] + b"\x00" + whole[middle + 1 :]):
            (copied / name).write_bytes(damaged)
            with pytest.raises(EmbeddingUnavailable) as caught:
                load_embedder(config, tmp_path)
            assert "damaged" in caught.value.message
        (copied / name).write_bytes(whole)  # installed again: repaired
        load_embedder(config, tmp_path)
    for text in (b"", b"{}", b"[]", b"\xff", b'{"files": {"../x": ""}, "name": "", "dimensions": 3}'):
        (copied / "model.json").write_bytes(text)
        with pytest.raises(EmbeddingUnavailable):
            load_embedder(config, tmp_path)
    with pytest.raises(EmbeddingUnavailable):
        load_embedder(chosen("onnx", path=str(tmp_path / "nowhere")), tmp_path)


def test_i38_a_file_that_breaks_after_the_check_is_no_crash(tmp_path: Path) -> None:
    """As much as onnxruntime and tokenizers can be made to refuse: text in place of a model, under the right hash."""
    for broken in ("model.onnx", "tokenizer.json"):
        folder = tmp_path / broken
        folder.mkdir()
        for name in ("model.onnx", "tokenizer.json"):
            if name == broken:
                (folder / name).write_text("not what it was")
            else:
                os.symlink(BUNDLED / name, folder / name)
        hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        (folder / "model.json").write_text(json.dumps({"name": "x", "dimensions": 384, "files": hashes}))
        model = load_embedder(chosen("onnx", path=str(folder)), tmp_path)
        with pytest.raises(EmbeddingUnavailable):
            model.queries(["a"])


def test_i16_a_hash_is_computed_once_and_the_memory_of_it_may_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = hashlib.file_digest

    def counted(stream: Any, name: str) -> Any:
        read.append(stream.name)
        return real(stream, name)

    monkeypatch.setattr(embed_files.hashlib, "file_digest", counted)
    for expected in (5, 5):
        load_embedder(Config(), tmp_path)
        assert len(read) == expected
    for text in ("", "{", "[]", '{"x": 1}'):
        (tmp_path / embed_files.REMEMBERED).write_text(text)
        read.clear()
        load_embedder(Config(), tmp_path)
        assert len(read) == 5
    (tmp_path / "file").write_text("")
    load_embedder(Config(), tmp_path / "file" / "below")  # cannot be remembered: no error


def test_a_question_loads_only_what_it_needs(tmp_path: Path) -> None:
    code = """
        import sys; from pathlib import Path
        from mdmem.config import Config; from mdmem.index.embed import load_embedder
        embedder = load_embedder(Config(), Path(sys.argv[1])); embedder.fingerprint, embedder.dims
        assert not {"numpy", "onnxruntime", "tokenizers", "urllib.request"} & set(sys.modules)
        embedder.queries(["where is the lock?", "锁在哪里"])
        assert "tokenizers" not in sys.modules and "concurrent.futures.thread" not in sys.modules
    """
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], cwd=root, check=True, timeout=60)


@pytest.fixture(scope="module")
def both() -> tuple[Pieces, Any]:
    from tokenizers import Tokenizer

    return Pieces(BUNDLED / "pieces.bin"), Tokenizer.from_file(str(BUNDLED / "tokenizer.json"))


ODD = "abc XY01  \n\t\r\u2581\u3000éहﷺ①ﬁ½\u200b\u00ad🙂\U0001fbf9\u0301的我是数据库，。Ａ１￥\x00\x07\u2028<>/s_-.#"


@settings(max_examples=examples(400), deadline=None)
@given(text=st.one_of(st.text(st.characters(codec="utf-8"), max_size=40), st.text(st.sampled_from(ODD), max_size=40)))
def test_both_tokenizers_give_the_same_ids(both: tuple[Pieces, Any], text: str) -> None:
    ids = both[0].encode("query: " + text)
    assert ids is None or ids == both[1].encode("query: " + text).ids


def test_real_texts_give_the_same_ids_and_long_ones_are_cut_alike(both: tuple[Pieces, Any], tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    for path in [*sorted(root.glob("*.md")), *sorted(root.glob("mdmem/index/*.py")), root / "tools" / "build_model_texts.txt"]:
        text = path.read_text("utf-8")
        assert both[0].encode(text) in (None, both[1].encode(text).ids), path
    assert both[0].encode("a </s> b") is None
    model = OnnxEmbedder(BUNDLED, tmp_path)
    by_table = model._encode("word " * 900 + "😀 end")
    model._tokens = 10**9
    assert by_table == model._encode("word " * 900 + "😀 end") and len(by_table) == 512


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_that_lives_on_holds_neither_the_tokenizers_nor_what_a_long_text_took(tmp_path: Path) -> None:
    code = """
        import sys; from pathlib import Path
        from mdmem.index.embed import BUNDLED; from mdmem.index.embed_onnx import OnnxEmbedder
        def held():
            return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024
        model = OnnxEmbedder(BUNDLED, Path(sys.argv[1]))
        model.queries(["where is the lock?", "in the safe"])
        model.spare()
        model._tokens = 10**9
        before = held()
        frugal = model.passages(["the lock lies in the safe " * 90])
        assert held() - before < 20, held() - before
        assert "tokenizers" not in sys.modules
        model._spare = False
        assert (model.passages(["the lock lies in the safe " * 90]) == frugal).all()
    """
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], cwd=root, check=True, timeout=60)


def test_the_runtime_writes_nothing_about_this_machine_and_calls_nobody(tmp_path: Path) -> None:
    """Newer versions of onnxruntime keep a device id in the home folder and report on import unless they are told not to."""
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom mdmem.index.embed_onnx import OnnxEmbedder\n"
        "from mdmem.index.embed import BUNDLED\nOnnxEmbedder(BUNDLED, Path(sys.argv[1])).queries(['a', 'b'])\n"
        "assert 'onnxruntime' in sys.modules\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    env.pop("XDG_CACHE_HOME", None)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(home.rglob("*")) == []


def test_a_first_note_gets_its_vector_also_when_the_time_is_over_before_it_begins(store: Store) -> None:
    (store.root / "memories").mkdir(exist_ok=True)
    for number in range(6):
        (store.root / f"memories/n{number}.md").write_text(f"Note {number} about the plant.\n")
    out = store.index.refresh(embed_budget_s=1e-9)
    assert out.added == 6 and out.pending_vectors == 2  # one short batch of four
