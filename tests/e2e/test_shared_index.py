"""The shared index on a real engine (milvus-lite, in a file and as a server): pushing, asking, killing writers.

python -m pytest --e2e tests/e2e/test_shared_index.py        with the extra mdmem[milvus]
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mdmem.clock import UTC, FixedClock
from mdmem.errors import RefusedState
from mdmem.index import dense, milvus_push
from mdmem.index.milvus import Engine, SharedDown, key_of
from mdmem.memory.sharing import push_store
from mdmem.recall.query import Filters, Query
from mdmem.recall.recall import recall
from mdmem.store import Store
from tests.e2e import shared_scene
from tests.e2e.shared_scene import QUESTIONS, ROOT, commit, git, held, limited, made, opened, seen, trusted, write

pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("settings")]
settings, server = shared_scene.settings, shared_scene.server


def test_the_shared_index_answers_as_the_local_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = made(tmp_path / "store")
    done = push_store(opened(root))
    assert (done.written, done.deleted, done.without_vectors) == (60, 0, 0)
    windows = opened(root).index.catalog.value("SELECT count(*) FROM windows")
    assert opened(root).index.status()["shared"] == f"{windows} passages"
    asked = [Query(text, mode=mode, limit=10) for text in QUESTIONS for mode in ("keyword", "hybrid", "semantic")]
    asked += [
        Query("word8 word9", limit=10, filters=Filters(tags=("t1",))),
        Query("word8", filters=Filters(scopes=("agent:other",))),
    ]
    shared = [recall(opened(root), query) for query in asked]
    assert not any("local index" in text for answer in shared for text in answer.notices)
    monkeypatch.setenv("MDMEM_INDEX_ENGINE", "whoosh")
    local = [recall(opened(root), query) for query in asked]
    for query, ours, theirs in zip(asked, local, shared):
        assert seen(ours) == seen(theirs), query
    assert sum(map(len, map(seen, shared))) > 60


def test_what_only_a_synonym_names_is_found_there_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = made(tmp_path / "store", 6)
    write(root, "cluster", "The kubernetes control plane is upgraded on Mondays.", id="mem-cluster")
    commit(root)
    push_store(opened(root))
    shared = recall(opened(root), Query("k8s", mode="keyword"))
    monkeypatch.setenv("MDMEM_INDEX_ENGINE", "whoosh")
    assert seen(shared) == seen(recall(opened(root), Query("k8s", mode="keyword")))
    assert "mem-cluster" in [hit.id for hit in shared.results]


def test_other_processes_find_what_one_has_pushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each opens the file anew, as commands do."""
    root = made(tmp_path / "store", 5)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "none")

    def mdmem(*words: str) -> Any:
        done = subprocess.run([sys.executable, "-m", "mdmem", *words, "--json"], cwd=root, capture_output=True, text=True)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
        return json.loads(done.stdout)

    assert mdmem("index", "push")["pushed"][0]["written"] == 5
    again = mdmem("index", "push", "--repo", str(root))["pushed"][0]
    assert (again["written"], again["unchanged"]) == (0, 5)
    answer = mdmem("recall", "word8 word9 word3", "--keyword")
    assert answer["results"] and all(": memories/" in hit["path"] for hit in answer["results"]), answer
    assert mdmem("index", "push", "--all")["pushed"][0]["written"] == 5


def test_a_push_writes_what_differs_and_deletes_what_the_commit_does_not_hold(tmp_path: Path) -> None:
    root = made(tmp_path / "store", 20)
    first = push_store(opened(root))
    assert push_store(opened(root)).written == 0
    before = held(tmp_path)
    write(root, "n3", "A walrus. " * 400, id="mem-1-3", type="fact")
    write(root, "n4", "Short now.", id="mem-1-4", type="fact")
    (root / "memories" / "n5.md").unlink()
    git(root, "mv", "memories/n6.md", "memories/moved.md")
    write(root, "uncommitted", "This is not in the commit: zebrafish.")
    git(root, "add", "memories/n3.md", "memories/n4.md", "memories/n5.md")
    git(root, "commit", "-qm", "changes")
    done = push_store(opened(root))
    assert (done.written, done.deleted, done.unchanged) == (3, 1, 16) and done.rev != first.rev
    after = held(tmp_path)
    assert len(after) == len(before) - 1
    hits = recall(opened(root), Query("walrus", mode="keyword", limit=20)).results
    assert [hit.id for hit in hits] == ["mem-1-3"]
    assert recall(opened(root), Query("zebrafish", mode="keyword")).results == []
    expected = {
        row["id"]: row["n"]
        for row in opened(root)
        .index.as_of(done.rev)
        .catalog.rows("SELECT n.id, count(*) AS n FROM notes n JOIN windows w ON w.note = n.rowid GROUP BY n.rowid")
    }
    assert Counter({key_of(f"id {name}"): count for name, count in expected.items()}) == Counter(
        {note: count for (_, note), count in after.items()}
    )


def test_a_push_that_was_cut_off_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = made(tmp_path / "store", 30)
    push_store(opened(root))
    for number in range(30):
        write(root, f"n{number}", f"New words for each: walrus {number}.", id=f"mem-1-{number}")
    commit(root)
    monkeypatch.setattr(milvus_push, "NOTES", 7)
    put, delete = Engine.put, Engine.delete
    cuts = 0
    for cut in range(1, 9):
        calls = iter(range(1000))

        def stumble(work: Any, *words: Any, calls: Any = calls, cut: int = cut) -> None:
            if next(calls) >= cut:
                raise SharedDown("cut off")
            work(*words)

        monkeypatch.setattr(Engine, "put", lambda *words: stumble(put, *words))
        monkeypatch.setattr(Engine, "delete", lambda *words: stumble(delete, *words))
        try:
            push_store(opened(root))
            break
        except SharedDown:
            cuts += 1
    assert cuts >= 3
    monkeypatch.setattr(Engine, "put", put)
    monkeypatch.setattr(Engine, "delete", delete)
    push_store(opened(root))
    assert set(held(tmp_path).values()) == {1} and len(held(tmp_path)) == 30
    assert len(recall(opened(root), Query("walrus", mode="keyword", limit=50)).results) == 30


def test_an_earlier_commit_changes_nothing_and_another_history_is_refused(tmp_path: Path) -> None:
    root = made(tmp_path / "store", 5)
    early = git(root, "rev-parse", "HEAD")
    write(root, "late", "A walrus.", id="mem-late")
    late = commit(root)
    push_store(opened(root))
    git(root, "checkout", "-q", "--detach", early)
    done = push_store(opened(root))
    assert done.older and done.rev == late and (done.written, done.deleted) == (0, 0)
    write(root, "other", "Another history.", id="mem-other")
    commit(root)
    with pytest.raises(RefusedState, match="not before"):
        push_store(opened(root))
    assert len(held(tmp_path)) == 6
    assert push_store(opened(root), everything=True).deleted == 1
    assert len(held(tmp_path)) == 6


def test_no_repository_scope_or_collection_shows_what_is_not_asked_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = made(tmp_path / "one", 12, seed=1), made(tmp_path / "two", 12, seed=2)
    names = {}
    for number, root in enumerate((one, two), 1):
        git(root, "remote", "add", "origin", f"https://user:secret@example.org/team/repo{number}.git")
        names[number] = push_store(opened(root)).repo
    assert names == {1: "example.org/team/repo1", 2: "example.org/team/repo2"}

    def repos(store: Store, **given: Any) -> set[str]:
        return {hit.path.split(": ")[0] for hit in recall(store, Query("word8 word9 word3", limit=50, **given)).results}

    assert repos(opened(one)) == {"example.org/team/repo1", "example.org/team/repo2"}
    monkeypatch.setenv("MDMEM_INDEX_REPOSITORIES", "example.org/*/repo2")
    assert repos(opened(one)) == {"example.org/team/repo2"}
    monkeypatch.delenv("MDMEM_INDEX_REPOSITORIES")
    monkeypatch.setenv("MDMEM_INDEX_COLLECTION", "apart")
    assert any("pushed" in text for text in recall(opened(one), Query("word8")).notices)
    monkeypatch.delenv("MDMEM_INDEX_COLLECTION")
    limited("shared", "project:*")
    answer = recall(opened(one), Query("word8 word9 word3", limit=50))
    assert answer.results and {hit.scope for hit in answer.results} == {"shared"}
    monkeypatch.setenv("MDMEM_INDEX_SHARE", "others")
    both = recall(opened(one), Query("word8 word9 word3", limit=50)).results
    assert {hit.path.split(": ")[0] for hit in both if ": " in hit.path} == {"example.org/team/repo2"}
    assert any(": " not in hit.path for hit in both)


def test_what_is_hidden_counts_in_no_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recall by a limited agent equals the one of a local index, where hidden scopes count nowhere."""
    root = made(tmp_path / "store", 40)
    push_store(opened(root))
    limited("shar*")
    shared = [recall(opened(root), Query(text, limit=10)) for text in QUESTIONS]
    monkeypatch.setenv("MDMEM_INDEX_ENGINE", "whoosh")
    local = [recall(opened(root), Query(text, limit=10)) for text in QUESTIONS]
    assert [*map(seen, shared)] == [*map(seen, local)] and sum(len(answer.results) for answer in local) > 20


def test_a_local_note_never_leaves_the_device(tmp_path: Path) -> None:
    root = made(tmp_path / "store", 3)
    store = opened(root)
    store.local_folder.create("secret.md", b"---\nid: mem-secret\nscope: local\n---\n\nA walrus of mine.\n")
    push_store(store)
    assert recall(opened(root), Query("walrus", mode="keyword")).results == []
    assert len(held(tmp_path)) == 3


WRITER = """
import os, random, subprocess, sys
from pathlib import Path
from mdmem.errors import MdmemError
from mdmem.memory.sharing import push_store
from mdmem.store import Store
root, seed = Path(sys.argv[1]), int(sys.argv[2])
rng = random.Random(seed)
def git(*words, check=True):
    named = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "merge.mdmem.driver=false"]
    return subprocess.run(["git", *named, *words], cwd=root, check=check, capture_output=True).returncode == 0
for name in (".git/index.lock", ".git/rebase-merge", ".git/HEAD.lock"):
    path = root / name
    if path.is_file():
        path.unlink()
git("rebase", "--abort", check=False)
turn = 0
while True:
    turn += 1
    if not git("fetch", "-q", check=False) or not git("reset", "-q", "--hard", "@{upstream}", check=False):
        continue
    notes = sorted((root / "memories").glob("*.md"))
    for path in rng.sample(notes, 3):
        path.unlink()
    for number in range(4):
        name = f"w{seed}-{turn}-{number}"
        words = " ".join(rng.choice(["alpha", "beta", "gamma", "walrus"]) for _ in range(rng.randint(5, 500)))
        (root / "memories" / f"{name}.md").write_text(f"---\\nid: mem-{name}\\nscope: shared\\n---\\n\\n{words}\\n")
    git("add", "-A")
    git("commit", "-qm", "turn", check=False)
    if git("push", "-q", check=False):
        print("turn", flush=True)
        try:
            push_store(Store.open(root), ttl=1.0)
            print("pushed", flush=True)
        except MdmemError as error:
            print(type(error).__name__, error, file=sys.stderr, flush=True)
"""


def test_three_writers_killed_at_random_leave_exactly_the_notes_of_both_main_branches(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "none")
    monkeypatch.setattr(dense, "load_embedder", dense_loader)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    clones = []
    for number in (1, 2):
        origin = made(tmp_path / f"origin{number}", 12, seed=number)
        bare = tmp_path / f"repo{number}.git"
        git(tmp_path, "clone", "-q", "--bare", str(origin), str(bare))
        for copy in range(2 if number == 1 else 1):
            clone = tmp_path / f"clone{number}{copy}"
            git(tmp_path, "clone", "-q", str(bare), str(clone))
            clones.append(trusted(clone))
    rng = random.Random(7)
    reader = clones[0]
    limited("shared")  # a fifth of the first notes is of another scope
    writers: dict[int, Any] = {}
    turns = killed = asked = pushed = 0
    ends = time.monotonic() + 150
    while time.monotonic() < ends and killed < 12:
        for number, clone in enumerate(clones):
            if number not in writers:
                words = [sys.executable, "-c", WRITER, str(clone), str(100 * killed + number)]
                writers[number] = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        number = rng.choice(sorted(writers))
        victim = writers.pop(number)
        # It says so when it begins to push; somewhere in what follows it ends.
        assert victim.stdout.readline() == b"turn\n"
        turns += 1
        for _ in range(rng.randint(0, 3)):
            line = victim.stdout.readline()
            turns, pushed = turns + (line == b"turn\n"), pushed + (line == b"pushed\n")
        for _ in range(rng.randint(0, 3)):
            answer = recall(opened(reader), Query("walrus alpha", mode="keyword", limit=30))
            assert all("pushed" in text or "none of" in text for text in answer.notices if "local index" in text)
            assert len({(hit.path, hit.id) for hit in answer.results}) == len(answer.results)
            assert {hit.scope for hit in answer.results} <= {"shared"}
            asked += 1
        victim.send_signal(signal.SIGKILL)
        rest = victim.communicate()[0]
        turns, pushed = turns + rest.count(b"turn"), pushed + rest.count(b"pushed")
        killed += 1
    for writer in writers.values():
        writer.kill()
        rest = writer.communicate()[0]
        turns, pushed = turns + rest.count(b"turn"), pushed + rest.count(b"pushed")
    assert killed >= 6 and turns >= 6 and asked >= 6 and pushed >= 3, (killed, turns, asked, pushed)
    expected: Counter[tuple[str, str]] = Counter()
    for number in (1, 2):
        last = tmp_path / f"last{number}"
        shutil.rmtree(last, ignore_errors=True)
        git(tmp_path, "clone", "-q", str(tmp_path / f"repo{number}.git"), str(last))
        trusted(last)
        clock = FixedClock(datetime(2030, 1, 1, tzinfo=UTC))  # long after every lease of a killed writer
        store = Store.open(last, clock=clock)
        name = git(last, "ls-remote", "origin", "refs/mdmem/leases/*").split("\t")[-1]
        if name:
            git(last, "push", "-q", "origin", f":{name}")  # as time would
        done = push_store(store)
        rows = store.index.as_of(done.rev).catalog.rows(
            "SELECT n.id, count(*) AS n FROM notes n JOIN windows w ON w.note = n.rowid GROUP BY n.rowid"
        )
        expected.update({(key_of(done.repo), key_of(f"id {row['id']}")): row["n"] for row in rows})
        again = push_store(store)
        assert (again.written, again.deleted) == (0, 0)
    assert held(tmp_path) == expected


dense_loader = dense.load_embedder
