"""A reader whose engine is down: the local index answers, says so, and no question waits for long or again and again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from mdmem.clock import FixedClock
from mdmem.index.milvus_down import FILE, PATIENCE
from mdmem.memory.sharing import push_store
from mdmem.recall.query import Query
from mdmem.recall.recall import Recall, recall
from mdmem.store import Store
from tests.e2e import shared_scene
from tests.e2e.shared_scene import NOW, ROOT, made, opened

pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("settings")]
settings, server = shared_scene.settings, shared_scene.server
WAIT = 1.5
MARGIN = 6.0  # a busy machine; what is waited for without a limit is ten seconds and more


def asked(root: Path, later: timedelta = timedelta()) -> tuple[Recall, float]:
    store = Store.open(root, clock=FixedClock(NOW + later))
    began = time.monotonic()
    return recall(store, Query("word8 word9", mode="keyword")), time.monotonic() - began


def local_alone(answer: Recall) -> str:
    told = [text for text in answer.notices if "answered from the local index" in text]
    assert len(told) == 1 and answer.results and not any(": " in hit.path for hit in answer.results), answer.notices
    return told[0]


def test_a_file_that_is_gone_is_named_and_not_made(tmp_path: Path) -> None:
    root = made(tmp_path / "store", 10)
    assert "does not exist" in local_alone(asked(root)[0])
    assert not Path(os.environ["MDMEM_INDEX_URI"]).exists()
    assert "does not exist" in opened(root).index.status()["shared"]
    assert not Path(os.environ["MDMEM_INDEX_URI"]).exists()
    push_store(opened(root))
    assert not asked(root)[0].notices  # asked again at once


def test_a_file_that_another_process_has_costs_no_wait_and_is_asked_again_at_once(tmp_path: Path) -> None:
    root = made(tmp_path / "store", 10)
    push_store(opened(root))
    code = (
        "import sys; from mdmem.index.milvus import Engine, Target; "
        "e = Engine(Target(sys.argv[1])); print(e.there(), flush=True); sys.stdin.read(); e.close()"
    )
    words = [sys.executable, "-c", code, os.environ["MDMEM_INDEX_URI"]]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    other = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "True\n"
    answer, took = asked(root)
    local_alone(answer)
    assert took < WAIT + MARGIN
    other.communicate("")
    assert not asked(root, PATIENCE + timedelta(seconds=1))[0].notices


def down(root: Path, uri: str, monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    monkeypatch.setenv("MDMEM_INDEX_URI", uri)
    monkeypatch.setenv("MDMEM_INDEX_WAIT", str(WAIT))
    answer, took = asked(root)
    local_alone(answer)
    assert took < WAIT + MARGIN
    if slow:
        answer, took = asked(root, timedelta(seconds=5))
        assert "a moment ago" in local_alone(answer) and took < WAIT / 2 + 1
        # What remembers it is damaged or lost: one wait more, no error.
        (opened(root).common_state_dir / FILE).write_bytes(b"\xff{")
        monkeypatch.setattr("mdmem.index.milvus_down._here", {})
        assert asked(root, timedelta(seconds=6))[1] < WAIT + MARGIN
    answer, took = asked(root, timedelta(seconds=7) + PATIENCE)
    assert "a moment ago" not in local_alone(answer) and took < WAIT + MARGIN


def test_a_server_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    down(made(tmp_path / "store", 10), "http://127.0.0.1:9", monkeypatch, slow=False)


def test_a_server_that_takes_connections_and_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(50)
        down(made(tmp_path / "store", 10), f"http://127.0.0.1:{silent.getsockname()[1]}", monkeypatch, slow=True)


@pytest.mark.parametrize("method", ["Search", "Query", "DescribeCollection"])
def test_a_server_that_falls_silent_in_the_middle_of_a_question(
    tmp_path: Path, server: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.e2e.shared_relay import relayed

    root = made(tmp_path / "store", 10)
    push_store(opened(root))
    with relayed(server, mute={method}) as relay:
        down(root, relay.uri, monkeypatch, slow=True)


@pytest.mark.parametrize("method", ["Connect", "DescribeCollection", "Query", "Search"])
def test_a_server_that_answers_with_errors(
    tmp_path: Path, server: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.e2e.shared_relay import relayed

    root = made(tmp_path / "store", 10)
    push_store(opened(root))
    with relayed(server, broken={method}) as relay:
        down(root, relay.uri, monkeypatch, slow=False)
        relay.broken.clear()
        assert not asked(root, 3 * PATIENCE)[0].notices  # and when it is back, it is asked
