"""Pushing from CI jobs and from machines at once: which commit counts, shallow clones, branches, rewritten histories, renames,
ids that two repositories share, and writers that overtake each other."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mdmem.clock import FixedClock
from mdmem.config import data_home
from mdmem.errors import NotFound, RefusedState
from mdmem.index import dense, milvus_push, milvus_view
from mdmem.index.milvus import Engine, SharedDown, key_of
from mdmem.index.milvus_push import Overtaken
from mdmem.memory import sharing
from mdmem.memory.sharing import push_store
from mdmem.recall.query import Query
from mdmem.recall.recall import recall
from mdmem.repo.lease import LeaseHeld
from mdmem.store import Store
from tests.e2e import shared_scene
from tests.e2e.shared_scene import NOW, ROOT, cloned, commit, git, held, made, opened, seen, write

pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("settings")]
settings, server = shared_scene.settings, shared_scene.server


def published(tmp_path: Path, count: int = 6, name: str = "notes", seed: int = 1) -> tuple[Path, Path]:
    """Return (bare repository, a machine's trusted clone of it with some notes)."""
    root = made(tmp_path / f"{name}-origin", count, seed=seed)
    bare = tmp_path / f"{name}.git"
    git(tmp_path, "clone", "-q", "--bare", str(root), str(bare))
    return bare, cloned(bare, tmp_path / f"{name}-machine")


def merged(machine: Path, name: str, text: str) -> str:
    write(machine, name, text, id=f"mem-{name}")
    rev = commit(machine)
    git(machine, "push", "-q")
    return rev


def ids(root: Path, text: str) -> set[str]:
    return {hit.id for hit in recall(opened(root), Query(text, mode="keyword", limit=50)).results}


def test_a_shallow_clone_as_ci_makes_it_is_made_whole_first(tmp_path: Path) -> None:
    bare, machine = published(tmp_path)
    push_store(opened(machine))
    # Without dates of its own, a note has those of its commits.
    write(machine, "dated", "A walrus without a date.", id="mem-dated")
    git(machine, "add", "-A")
    env_date = "2020-05-04T00:00:00Z"
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "old"],
        cwd=machine,
        check=True,
        env={**os.environ, "GIT_AUTHOR_DATE": env_date, "GIT_COMMITTER_DATE": env_date},
    )
    git(machine, "push", "-q")
    merged(machine, "later", "Something later.")
    job = cloned(f"file://{bare}", tmp_path / "job", "--depth", "1")
    done = push_store(opened(job))
    assert (done.written, done.unchanged) == (2, 6) and any("shallow" in text for text in done.notices)
    hit = recall(opened(job), Query("walrus", mode="keyword")).results[0]
    assert hit.id == "mem-dated" and hit.created.startswith("2020-05-04")
    # A remote that is gone leaves nothing to make it whole from.
    merged(machine, "more", "More.")
    other = cloned(f"file://{bare}", tmp_path / "other", "--depth", "1")
    bare.rename(tmp_path / "away.git")
    with pytest.raises(RefusedState, match="shallow"):
        push_store(opened(other))


def test_jobs_that_end_in_any_order_leave_the_last_commit(tmp_path: Path) -> None:
    bare, machine = published(tmp_path)
    jobs = []
    for number in range(4):
        merged(machine, f"late{number}", f"Walrus number {number}.")
        job = cloned(f"file://{bare}", tmp_path / f"job{number}", "--depth", "1")
        git(job, "checkout", "-q", "--detach")  # as some systems do
        jobs.append(job)
    order = [1, 3, 0, 2]
    done = [push_store(opened(jobs[number])) for number in order]
    assert [one.older for one in done] == [False, False, True, True]
    assert ids(machine, "walrus") == {f"mem-late{number}" for number in range(4)} and len(held(tmp_path)) == 10


def test_a_branch_that_is_not_merged_is_not_pushed(tmp_path: Path) -> None:
    bare, machine = published(tmp_path)
    push_store(opened(machine))
    git(machine, "switch", "-qc", "idea")
    write(machine, "idea", "A walrus of an idea.", id="mem-idea")
    commit(machine)
    git(machine, "push", "-q", "-u", "origin", "idea")
    with pytest.raises(RefusedState, match="idea is not ") as refused:
        push_store(opened(machine))
    assert refused.value.code == "shared_index_branch" and len(held(tmp_path)) == 6
    job = cloned(f"file://{bare}", tmp_path / "job", "--branch", "idea", "--depth", "1")
    git(job, "checkout", "-q", "--detach")
    with pytest.raises(RefusedState, match="is not "):
        push_store(opened(job))
    # A repository whose notes live on another branch says so.
    assert push_store(opened(machine), branch="idea").written == 1
    with pytest.raises(RefusedState, match="is not nosuch"):
        push_store(opened(machine), branch="nosuch")


def test_a_rewritten_main_branch_is_what_counts_once_the_remote_has_it(tmp_path: Path) -> None:
    bare, machine = published(tmp_path)
    before = git(machine, "rev-parse", "HEAD")
    merged(machine, "regretted", "A walrus that nobody should read.")
    push_store(opened(machine))
    other = cloned(bare, tmp_path / "other")
    git(machine, "reset", "-q", "--hard", before)
    write(machine, "instead", "A seal.", id="mem-instead")
    commit(machine)
    # Not pushed to the remote: its main branch still holds the note.
    with pytest.raises(RefusedState, match="not before"):
        push_store(opened(machine))
    git(machine, "push", "-q", "--force")
    done = push_store(opened(machine))
    assert (done.written, done.deleted) == (1, 1) and any("does not hold" in text for text in done.notices)
    assert ids(machine, "walrus") == set() and ids(machine, "seal") == {"mem-instead"}
    # One who has not fetched since puts nothing back.
    with pytest.raises(RefusedState, match="not before"):
        push_store(opened(other))
    # Only cut back, without anything new.
    git(machine, "reset", "-q", "--hard", before)
    git(machine, "push", "-q", "--force")
    assert push_store(opened(machine)).deleted == 1 and len(held(tmp_path)) == 6
    # A fresh job after another rewrite does not know the pushed commit at all.
    git(machine, "commit", "-q", "--amend", "-m", "as if it had always been so")
    git(machine, "push", "-q", "--force")
    job = cloned(f"file://{bare}", tmp_path / "job", "--depth", "1")
    assert push_store(opened(job)).rev == git(job, "rev-parse", "HEAD")


def test_a_renamed_note_moves_and_one_without_an_id_goes_by_its_path(tmp_path: Path) -> None:
    _, machine = published(tmp_path)
    write(machine, "plain", "A walrus without an id.")
    commit(machine)
    push_store(opened(machine))
    git(machine, "mv", "memories/n1.md", "memories/moved.md")
    git(machine, "mv", "memories/plain.md", "memories/plainer.md")
    commit(machine)
    done = push_store(opened(machine))
    assert (done.written, done.deleted, done.unchanged) == (2, 1, 5) and len(held(tmp_path)) == 7
    found = recall(opened(machine), Query("walrus", mode="keyword")).results
    assert [hit.path.split(": ")[1] for hit in found] == ["memories/plainer.md"]


def test_ids_that_two_repositories_share_are_two_notes(tmp_path: Path) -> None:
    _, one = published(tmp_path, name="one")
    _, two = published(tmp_path, name="two")  # the same seed: the same ids, the same text
    write(one, "same", "A walrus of the first.", id="mem-same")
    write(two, "same", "A walrus of the second.", id="mem-same")
    for root in (one, two):
        commit(root)
        assert push_store(opened(root)).written == 7
    assert len(held(tmp_path)) == 14
    found = recall(opened(one), Query("walrus", mode="keyword")).results
    assert sorted((hit.id, hit.path.split(": ")[0].rsplit("/", 1)[1]) for hit in found) == [
        ("mem-same", "one"),
        ("mem-same", "two"),
    ]
    (two / "memories" / "same.md").unlink()
    commit(two)
    assert push_store(opened(two)).deleted == 1
    assert len(recall(opened(one), Query("walrus", mode="keyword")).results) == 1


def test_clones_by_ssh_and_by_https_are_one_repository(tmp_path: Path) -> None:
    """A job clones by https, a person by ssh: what both push is one repository's."""
    bare, machine = published(tmp_path)
    job = cloned(bare, tmp_path / "job")
    git(machine, "remote", "set-url", "origin", "git@example.org:team/notes.git")
    git(job, "remote", "set-url", "origin", "https://token:x@example.org/team/notes")
    first = push_store(opened(machine))
    again = push_store(opened(job))
    assert (first.repo, again.repo) == ("example.org/team/notes", "example.org/team/notes")
    assert (first.written, again.written, again.unchanged) == (6, 0, 6) and len(held(tmp_path)) == 6


def test_a_second_writer_waits_for_the_first_as_long_as_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, machine = published(tmp_path)
    other = cloned(tmp_path / "notes.git", tmp_path / "other")
    inside: list[str] = []
    real = sharing.push

    def while_pushing(*words: Any) -> Any:
        if not inside:
            inside.append("first")
            with pytest.raises(LeaseHeld, match="another writer"):
                push_store(opened(other))
            now = [NOW]
            store = Store.open(other, clock=FixedClock(NOW))
            monkeypatch.setattr(store.clock, "now", lambda: now[0], raising=False)

            def pause(seconds: float) -> None:
                now[0] += timedelta(seconds=seconds)

            with pytest.raises(LeaseHeld):
                push_store(store, wait=10, pause=pause)
            inside.append(str((now[0] - NOW).total_seconds()))
        return real(*words)

    monkeypatch.setattr(sharing, "push", while_pushing)
    push_store(opened(machine))
    assert inside == ["first", "10.0"]
    monkeypatch.setattr(sharing, "push", real)
    assert push_store(opened(other)).unchanged == 6  # it was given back


def test_where_the_remote_takes_no_leases_an_overtaken_writer_deletes_nothing(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job's token may only read the repository: leases hold on each machine alone, and two may push at once."""
    bare, machine = published(tmp_path)
    hook = bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    push_store(opened(machine))
    slow = cloned(bare, tmp_path / "slow")
    write(slow, "mine", "A walrus.", id="mem-mine")
    (slow / "memories" / "n1.md").unlink()
    commit(slow)
    git(slow, "push", "-q")
    git(machine, "pull", "-q", "--ff-only")
    merged(machine, "newest", "A seal.")
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    real = milvus_push.Push._record
    done: list[Any] = []

    def overtaken(*words: Any, **given: Any) -> Any:
        if not done:
            done.append("begun")
            done.append(push_store(opened(machine)))
        return real(*words, **given)

    monkeypatch.setattr(milvus_push.Push, "_record", overtaken)
    with pytest.raises(Overtaken) as error:
        push_store(opened(slow))
    assert error.value.exit_code == 5 and "this machine only" in " ".join(done[1].notices)
    monkeypatch.setattr(milvus_push.Push, "_record", real)
    assert push_store(opened(slow)).older
    assert ids(machine, "seal") == {"mem-newest"} and ids(machine, "walrus") == {"mem-mine"} and len(held(tmp_path)) == 7


def test_terms_that_are_newer_than_the_count_weigh_nothing_below_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer was killed between the lists of terms and the commit: `sparse weight must be finite, non-negative`, said the
    engine to every question for such a term."""
    _, machine = published(tmp_path, 3)
    push_store(opened(machine))
    for number in range(30):
        write(machine, f"more{number}", f"Walrus number {number}.", id=f"mem-more{number}")
    commit(machine)
    git(machine, "push", "-q")
    put = Engine.put

    def killed(engine: Engine, collection: str, rows: Sequence[Any]) -> None:
        if any(row["pk"].startswith("commit:") for row in rows):
            raise SharedDown("cut off")
        put(engine, collection, rows)

    monkeypatch.setattr(Engine, "put", killed)
    with pytest.raises(SharedDown, match="cut off"):
        push_store(opened(machine))
    monkeypatch.setattr(Engine, "put", put)
    answer = recall(opened(machine), Query("walrus", limit=50))
    assert not any("local index" in text for text in answer.notices), answer.notices
    assert push_store(opened(machine)).written == 0
    assert len(ids(machine, "walrus") & {f"mem-more{n}" for n in range(30)}) == 30


def test_terms_are_counted_in_the_largest_repositories_and_a_rare_one_is_found_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, large = published(tmp_path, 12, name="large")
    _, small = published(tmp_path, 2, name="small", seed=2)
    merged(small, "rare", "The walrus is only here.")
    for root in (large, small):
        push_store(opened(root))
    exact = recall(opened(large), Query("walrus word8", mode="keyword"))
    monkeypatch.setattr(milvus_view, "PAIRS", 1)
    drawn = recall(opened(large), Query("walrus word8", mode="keyword"))
    assert exact.results[0].id == drawn.results[0].id == "mem-rare"
    assert {hit.id for hit in exact.results} == {hit.id for hit in drawn.results}
    monkeypatch.setattr(milvus_view, "PAIRS", 64)
    assert seen(recall(opened(large), Query("walrus word8", mode="keyword"))) == seen(exact)


def test_a_push_killed_at_any_moment_is_finished_by_the_next(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own is killed after a random number of calls to the engine, again and again."""
    _, machine = published(tmp_path, 25)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "none")
    monkeypatch.setattr(dense, "load_embedder", shared_scene.loader)
    code = (
        "import os, sys; from mdmem.index.milvus import Engine; from mdmem.index import milvus_push\n"
        "left = [int(sys.argv[1])]\n"
        "milvus_push.NOTES = 4; real = Engine._call\n"
        "def call(engine, *words, **given):\n"
        "    left[0] -= 1\n"
        "    if left[0] < 0: os._exit(9)\n"
        "    return real(engine, *words, **given)\n"
        "Engine._call = call\n"
        "from mdmem.memory.sharing import push_store; from mdmem.store import Store; push_store(Store.open(sys.argv[2]))\n"
    )
    rng = random.Random(3)
    ends = []
    for turn in range(5):
        for number in rng.sample(range(25), 5):
            write(machine, f"n{number}", f"Turn {turn}, walrus {number}.", id=f"mem-1-{number}")
        commit(machine)
        git(machine, "push", "-q")
        words = [sys.executable, "-c", code, str(rng.randint(3, 45)), str(machine)]
        ends.append(subprocess.run(words, capture_output=True).returncode)
    assert 9 in ends and set(ends) <= {0, 9}, ends
    push_store(opened(machine))
    rows = opened(machine).index.catalog.rows(
        "SELECT n.id, count(*) AS n FROM notes n JOIN windows w ON w.note = n.rowid GROUP BY n.rowid"
    )
    assert {note: count for (_, note), count in held(tmp_path).items()} == {key_of(f"id {row['id']}"): row["n"] for row in rows}


def test_two_stores_of_one_repository_are_two(tmp_path: Path) -> None:
    """Both went by the remote's name alone, and each push deleted what the other had brought."""
    _, machine = published(tmp_path, 4)
    inner = made(machine / "docs" / "notes", 3, seed=2)
    assert git(inner, "rev-parse", "--show-toplevel") == str(machine)
    git(machine, "push", "-q")
    names = {push_store(opened(root)).repo for root in (machine, inner)}
    assert {name.rsplit("/", 2)[-1] for name in names} == {"notes"} and len(names) == 2
    assert any(name.endswith("/docs/notes") for name in names)
    for root in (machine, inner):
        assert push_store(opened(root)).deleted == 0
    assert {key.split("-")[1] for key in ids(machine, "word8 word9 word3")} == {"1", "2"}


def test_a_remote_without_a_commit_or_without_a_store_is_named_and_not_kept(tmp_path: Path) -> None:
    """Cloning the empty one had made a store there, and its first commit, which nobody else has, was recorded as pushed."""
    empty, code = tmp_path / "empty.git", tmp_path / "code"
    git(tmp_path, "init", "-q", "--bare", str(empty))
    code.mkdir()
    git(code, "init", "-q")
    (code / "a.py").write_text("pass\n")
    commit(code)
    for url, told in ((f"file://{empty}", "has no commit yet"), (f"file://{code}", "is no store of notes")):
        for _ in range(2):
            with pytest.raises(NotFound, match=told) as error:
                sharing.store_of(url)
            assert url in str(error.value)
        assert not (data_home() / "shared" / key_of(url)).exists()
    # Once it is one, it is pushed.
    made(code, 2)
    assert push_store(sharing.store_of(f"file://{code}")).written == 2


def test_a_note_of_half_a_megabyte_is_pushed_found_and_shown(tmp_path: Path) -> None:
    root = made(tmp_path / "store", 2)
    rng = random.Random(4)
    words = [f"{rng.randrange(10**6)}x" for _ in range(60_000)]
    write(root, "long", " ".join(words) + " walrus", id="mem-long", summary=" ".join(words[:5_000]))
    commit(root)
    done = push_store(opened(root))
    assert done.written == 3 and push_store(opened(root)).unchanged == 3
    (hit,) = recall(opened(root), Query("walrus", mode="keyword")).results
    assert hit.id == "mem-long" and "walrus" in hit.snippet
    write(root, "long", "Short now: walrus.", id="mem-long")
    commit(root)
    assert push_store(opened(root)).written == 1
    assert [count for (_, note), count in held(tmp_path).items() if note == key_of("id mem-long")] == [1]
