"""A push that looks only at what git says has changed leaves what a push of everything would, and is trusted no further than it
can be: what another writer left half done, a row that is gone, a passage without a vector bring the comparison of all notes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mdmem.clock import FixedClock
from mdmem.index.embed import EmbeddingUnavailable
from mdmem.index.index import Index
from mdmem.index.milvus import Engine, SharedDown
from mdmem.index.milvus_push import Commit, Push, push
from mdmem.index.milvus_record import state_of
from mdmem.index.milvus_terms import listed
from mdmem.locate import repository_name
from mdmem.memory.sharing import push_store
from mdmem.recall.query import Query
from mdmem.recall.recall import recall
from mdmem.repo.lease import LeaseHeld
from mdmem.store import Store
from tests.e2e import shared_scene
from tests.e2e.shared_scene import NOW, WORDS, FakeEmbedder, cloned, commit, git, held, made, opened, target, write

pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("settings")]
settings = shared_scene.settings


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pushes that compared all notes."""
    found: list[str] = []
    real = Push.all
    monkeypatch.setattr(Push, "all", lambda one, *words: (found.append(one.commit.rev), real(one, *words))[1])
    return found


def everything(repo: str, collection: str) -> tuple[set[tuple[Any, ...]], dict[str, Any]]:
    """Return all rows but for the weights, which are of the averages when they were written, and all counts."""
    engine = Engine(target(collection), writes=True)
    try:
        fields = ["pk", "note", "place", "path", "mark", "scope", "tags", "script", "ord", "size", "row", "meaning"]
        rows = {
            tuple(tuple(value) if isinstance(value, (list, tuple)) else str(value) for value in map(row.get, fields))
            for row in engine.rows(engine.windows, 'repo != ""', fields)
        }
        state = state_of(engine, repo)
        counts = {}
        for scope, one in state["scopes"].items():
            sums = {name: one[name] for name in ("windows", "notes", "lengths", "scripts")}
            counts[scope] = (sums, listed(engine, repo, scope, one))
        numbers = {name: state[name] for name in ("rev", "notes", "rows", "twins", "lacking")}
        lists = {row["pk"].split(":")[1] for row in engine.rows(engine.state, 'pk != ""', ["pk"]) if ":terms:" in row["pk"]}
        assert len(lists) <= 2 * len(counts) + 2, lists  # earlier ones went
        assert not engine.few(engine.state, 'pk like "begun:%"', ["pk"])
        return rows, {"numbers": numbers, "counts": counts}
    finally:
        engine.close()


def test_pushes_of_what_changed_leave_what_a_push_of_everything_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compared: list[str]
) -> None:
    root = made(tmp_path / "store", 30)
    repo = push_store(opened(root)).repo
    rng = random.Random(5)
    folder = root / "memories"

    def note(name: str, **fields: str) -> None:
        words = [*WORDS, "石英放在抽屉里面"]
        text = "\n\n".join(" ".join(rng.choice(words) for _ in range(rng.randint(0, 90))) for _ in range(3))
        write(root, name, text, scope=rng.choice(["shared", "agent:a", "user:b"]), **fields)

    for turn in range(14):
        names = sorted(path.stem for path in folder.glob("*.md"))
        one, two, three, four = rng.sample(names, 4)
        note(f"new{turn}", id=f"mem-new{turn}", tags=f"[t{turn}]")
        note(f"plain{turn}")  # goes by its path
        note(one, id=f"mem-again{turn}")  # another id than before
        (folder / f"{two}.md").unlink()
        git(root, "mv", f"memories/{three}.md", f"memories/moved{turn}.md")
        (folder / f"{four}.md").write_text("")  # nothing to find any more
        if turn in (4, 9):
            note(f"twin{turn}", id="mem-new0")  # an id that another note has
        if turn in (6, 10):
            (folder / f"twin{turn - 2 if turn == 6 else 9}.md").unlink(missing_ok=True)
        if turn == 7:
            (root / "README.txt").write_text("no note")
        commit(root)
        before = len(compared)
        done = push_store(opened(root))
        assert done.written and done.deleted
        if turn in (0, 1, 2, 3, 12, 13):
            assert len(compared) == before, turn
        # What another collection gets at once.
        monkeypatch.setenv("MDMEM_INDEX_COLLECTION", f"fresh{turn}")
        push_store(opened(root))
        monkeypatch.delenv("MDMEM_INDEX_COLLECTION")
        rows, counts = everything(repo, "mdmem")
        fresh_rows, fresh = everything(repo, f"fresh{turn}")
        assert rows == fresh_rows and counts == fresh, turn
        assert done.unchanged + done.written == counts["numbers"]["notes"]


def test_a_push_with_nothing_to_do_reads_no_note_and_takes_no_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compared: list[str]
) -> None:
    root = made(tmp_path / "store", 12)
    push_store(opened(root))

    def never(*words: Any, **given: Any) -> Any:
        raise AssertionError("looked at the notes")

    for name in ("refresh", "as_of", "part_of"):
        monkeypatch.setattr(Index, name, never)
    monkeypatch.setattr("mdmem.memory.sharing.acquire", never)
    monkeypatch.setattr("mdmem.memory.sharing._gate", never)
    monkeypatch.setattr(Engine, "rows", never)
    monkeypatch.setattr(Engine, "put", never)
    done = push_store(opened(root))
    assert (done.written, done.deleted, done.unchanged) == (0, 0, 12) and len(compared) == 1


def test_a_commit_that_changes_no_note_is_recorded_and_nothing_else_is_written(tmp_path: Path, compared: list[str]) -> None:
    root = made(tmp_path / "store", 12)
    push_store(opened(root))
    (root / "code.py").write_text("print()\n")
    (root / "memories" / ".hidden").mkdir()
    (root / "memories" / ".hidden" / "a.md").write_text("not a note")
    rev = commit(root)
    done = push_store(opened(root))
    assert (done.rev, done.written, done.unchanged) == (rev, 0, 12) and len(compared) == 1
    engine = Engine(target(), writes=True)
    assert state_of(engine, done.repo)["rev"] == rev
    engine.close()
    assert len(recall(opened(root), Query("word8 word9", mode="keyword", limit=20)).results) > 3


def test_what_a_killed_writer_left_of_a_history_that_was_then_rewritten_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compared: list[str]
) -> None:
    """Git names what differs from the commit that was pushed to its end, and not what another one wrote and did not record."""
    root = made(tmp_path / "origin", 6)
    bare = tmp_path / "notes.git"
    git(tmp_path, "clone", "-q", "--bare", str(root), str(bare))
    machine = cloned(bare, tmp_path / "machine")
    push_store(opened(machine))
    before = git(machine, "rev-parse", "HEAD")
    write(machine, "regretted", "A walrus.", id="mem-regretted")
    (machine / "memories" / "n1.md").unlink()
    commit(machine)
    git(machine, "push", "-q")

    def killed(*words: Any, **given: Any) -> None:
        raise SharedDown("cut off")

    real = Push._record
    monkeypatch.setattr(Push, "_record", killed)
    with pytest.raises(SharedDown):
        push_store(opened(machine))
    monkeypatch.setattr(Push, "_record", real)
    git(machine, "reset", "-q", "--hard", before)
    write(machine, "instead", "A seal.", id="mem-instead")
    commit(machine)
    git(machine, "push", "-q", "--force")
    done = push_store(opened(machine))
    assert (done.written, done.deleted) == (2, 1) and len(compared) == 2  # the first push, and this one
    assert not recall(opened(machine), Query("walrus", mode="keyword")).results and len(held(tmp_path)) == 7
    # It may still be at work, as far as one can know; later it cannot.
    minutes = [0, 11, 11]
    for number, more in enumerate(minutes):
        write(machine, f"later{number}", "A walrus again.", id=f"mem-later{number}")
        commit(machine)
        later = Store.open(machine, clock=FixedClock(NOW + timedelta(minutes=more)))
        assert push_store(later).written == 1
    assert len(compared) == 4 and len(held(tmp_path)) == 10


def test_a_writer_whose_lease_ended_while_it_wrote_is_not_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compared: list[str]
) -> None:
    """A machine was asleep for longer than its lease. Awake again, it wrote an earlier version of a note over that of the one
    who took over: as many rows as were recorded, and other ones."""
    root = made(tmp_path / "store", 6)
    push_store(opened(root))
    write(root, "n1", "A walrus.", id="mem-1-1")
    commit(root)
    real = Engine.put
    state: list[Any] = []

    def slow(engine: Engine, collection: str, rows: Sequence[Any]) -> None:
        if not state and collection == engine.windows:
            state.append("taken over")
            write(root, "n1", "A seal.", id="mem-1-1")
            commit(root)
            awake = opened(root)
            awake.index.refresh(embed_budget_s=None)
            other = Engine(target(), writes=True)
            theirs = Commit(repo, git(root, "rev-parse", "HEAD"), lambda earlier: True)
            push(awake.index, other, theirs, FixedClock(NOW + timedelta(minutes=11)), sole=True)
            other.close()
        real(engine, collection, rows)

    def lost() -> None:
        if state:
            raise LeaseHeld("somebody else has it")

    store = opened(root)
    repo = repository_name(store.location)
    store.index.refresh(embed_budget_s=None)
    monkeypatch.setattr(Engine, "put", slow)
    engine = Engine(target(), writes=True)
    with pytest.raises(LeaseHeld):
        mine = Commit(repo, git(root, "rev-parse", "HEAD"), lambda earlier: True)
        push(store.index, engine, mine, FixedClock(NOW), keep_lease=lost)
    engine.close()
    monkeypatch.setattr(Engine, "put", real)
    assert push_store(opened(root)).written == 1
    assert not recall(opened(root), Query("walrus", mode="keyword")).results
    assert [hit.id for hit in recall(opened(root), Query("seal", mode="keyword")).results] == ["mem-1-1"]


def test_a_row_that_is_gone_from_the_engine_is_written_again(tmp_path: Path, compared: list[str]) -> None:
    root = made(tmp_path / "store", 12)
    push_store(opened(root))
    engine = Engine(target(), writes=True)
    (row, *_) = engine.few(engine.windows, 'repo != ""', ["pk"])
    engine.delete(engine.windows, f'pk == "{row["pk"]}"')
    engine.close()
    done = push_store(opened(root))
    assert (done.written, done.unchanged) == (1, 11) and len(compared) == 2


class Failing(FakeEmbedder):
    """A model behind a service that is away for some texts."""

    away = ""

    def passages(self, texts: Sequence[str]) -> Any:
        if self.away and any(self.away in text for text in texts):
            raise EmbeddingUnavailable("the service is away")
        return super().passages(texts)


def test_a_passage_that_had_no_vector_is_written_again_once_it_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service was away when it was pushed; with the same model and the same text it was never looked at again."""
    model = Failing()
    monkeypatch.setattr("mdmem.index.dense.load_embedder", lambda config, state_dir, chunking="": model)
    root = made(tmp_path / "store", 6)
    push_store(opened(root))
    write(root, "late", "A walrus on the ice.", id="mem-late")
    commit(root)
    model.away = "walrus"
    done = push_store(opened(root))
    assert (done.written, done.without_vectors) == (1, 1)
    assert push_store(opened(root)).written == 0
    model.away = ""
    assert push_store(opened(root)).written == 1
    (hit, *_) = recall(opened(root), Query("A walrus on the ice.", mode="semantic")).results
    assert hit.id == "mem-late" and hit.cosine is not None
    assert push_store(opened(root)).unchanged == 7


def test_a_change_of_the_stores_settings_compares_everything(tmp_path: Path, compared: list[str]) -> None:
    root = made(tmp_path / "store", 6)
    push_store(opened(root))
    settings_file = root / ".mdmem.toml"
    settings_file.write_text(settings_file.read_text() + "\n# a word\n")
    commit(root)
    assert push_store(opened(root)).unchanged == 6 and len(compared) == 2


def test_a_secret_that_was_let_through_once_is_not_asked_about_again_and_a_new_one_is(tmp_path: Path) -> None:
    """Of a store without a remote every commit was scanned again at every push."""
    from mdmem.errors import Refused

    root = made(tmp_path / "store", 3)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write(root, "secret", f"The token is {token}", id="mem-secret")
    commit(root)
    with pytest.raises(Refused):
        push_store(opened(root))
    push_store(opened(root), allow=["memories/secret.md"])
    write(root, "more", "Quartz.", id="mem-more")
    commit(root)
    assert push_store(opened(root)).written == 1
    write(root, "again", f"The other token is {token[:-1]}Z", id="mem-again")
    commit(root)
    with pytest.raises(Refused, match=r"again\.md"):
        push_store(opened(root))
