"""What the shared index finds is what the local one finds, also where the engine must be asked for the right part of it: each
test makes the pools so small that what was not asked for is not there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdmem.clock import FixedClock
from mdmem.index import milvus_view
from mdmem.index.language import Common, wide
from mdmem.index.milvus import LAYOUT, SCALARS, Engine, squeeze
from mdmem.index.milvus_record import state_of
from mdmem.index.milvus_terms import state_row
from mdmem.locate import repository_name
from mdmem.memory.sharing import push_store
from mdmem.recall import meaning, shared, speakers, streams
from mdmem.recall.query import Filters, Query
from mdmem.recall.recall import Recall, recall
from mdmem.store import Store
from tests.e2e import shared_scene
from tests.e2e.shared_scene import NOW, FakeEmbedder, commit, made, opened, seen, write

pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("settings")]
settings = shared_scene.settings


def small(monkeypatch: pytest.MonkeyPatch, pool: int = 3) -> None:
    for module in (streams, meaning, shared):
        monkeypatch.setattr(module, "POOL", pool)
    monkeypatch.setattr(milvus_view, "MARGIN", 2)


def both(root: Path, query: Query, monkeypatch: pytest.MonkeyPatch, now: datetime = NOW) -> tuple[Recall, Recall]:
    """Return the answers of the local and of the shared index; the note's own path stands in both."""
    answers = []
    for engine in ("whoosh", "milvus"):
        monkeypatch.setenv("MDMEM_INDEX_ENGINE", engine)
        answers.append(recall(Store.open(root, clock=FixedClock(now)), query))
        assert not any("local index" in text for text in answers[-1].notices), answers[-1].notices
    return answers[0], answers[1]


def same(root: Path, query: Query, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    local, there = both(root, query, monkeypatch)
    assert seen(local) == seen(there), query
    return [hit.id for hit in local.results]


def test_a_question_that_names_a_speaker_is_searched_by_the_vector_that_does_without_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked with the question's own vector, before anybody knew that a conversation is asked about."""
    root = made(tmp_path / "store", 0)
    for number in range(12):
        # All are near the names; the answer's words are others than the question's but for the ones without a name.
        said = "Anna: hello Ben hello Ben\nBen: hello Anna hello Anna\n" * 2
        write(
            root,
            f"talk{number}",
            f"{said}Anna: well Anna and Ben {'really ' * number}",
            id=f"mem-talk{number}",
            title=f"Talk {number}",
        )
    answer = "Anna: quartz\nBen: flint\nAnna: granite\nBen: yes\nAnna: what did she find digging"
    write(root, "answer", answer, id="mem-answer", title="Stones")
    commit(root)
    push_store(opened(root))
    small(monkeypatch)
    named: list[Any] = []
    aim = meaning.aim
    monkeypatch.setattr(meaning, "aim", lambda found, *rest: (aim(found, *rest), named.append(found.speakers))[0])
    monkeypatch.setattr(speakers, "usual_question", lambda embedder: None)
    assert "mem-answer" in same(root, Query("what did Anna find digging", limit=10), monkeypatch)
    assert named == [["Anna"], ["Anna"]]  # by the one and by the other
    # Nobody's name: the conversation is not looked through twice.
    same(root, Query("hello well digging", limit=10), monkeypatch)
    assert len(named) == 3


def test_days_without_a_year_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = made(tmp_path / "store", 0)
    days = {"a": "2024-05-04", "b": "2025-05-04", "c": "2025-05-05", "d": "2025-06-04", "e": "2024-02-29"}
    for name, day in days.items():
        stamp = f"{day}T09:00:00Z"
        write(root, name, f"Quartz {name}.", id=f"mem-{name}", created=stamp, updated=stamp)
    commit(root)
    push_store(opened(root))
    asked = {
        "what was done on 4 May": "ab",
        "what was done in May": "abc",
        "5月4日做了什么": "ab",
        "what was done on 4 May 2025": "b",
        "what was done on 29 February": "e",
        "what was done in June": "d",
    }
    for text, names in asked.items():
        found = same(root, Query(text, mode="keyword", limit=10), monkeypatch)
        assert {f"mem-{name}" for name in names} <= set(found), text


def test_of_a_day_with_more_notes_than_are_looked_at_the_newest_that_may_be_found_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine gave any of them; and locally notes that the filters leave out took the places of others."""
    root = made(tmp_path / "store", 0)
    for number in range(12):
        stamp = f"2026-05-04T{number:02d}:00:00Z"
        scope = "agent:other" if number > 8 else "shared"
        name = chr(97 + number)  # no number, which the question's day would find
        write(root, name, "Quartz.", id=f"mem-{name}", created=stamp, updated=stamp, scope=scope)
    commit(root)
    push_store(opened(root))
    for module in (streams, milvus_view):
        monkeypatch.setattr(module, "DATED", 3)
    query = Query("what was done on 4 May 2026", mode="keyword", limit=20, filters=Filters(scopes=("shared",)))
    assert set(same(root, query, monkeypatch)) == {"mem-i", "mem-h", "mem-g"}


def test_filters_choose_what_the_candidates_are_drawn_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tags, paths, statuses and ends of time were only looked at afterwards: of many notes, none was left."""
    root = made(tmp_path / "store", 0)
    for number in range(20):
        write(root, f"n{number}", "quartz " * 9, id=f"mem-{number}", title="Quartz quartz")
        write(root, f"done{number}", "quartz " * 9, id=f"mem-done{number}", kind="task", status="done")
    (root / "memories" / "deep_er").mkdir()
    write(root, "deep_er/one", "A quartz among much else that is said here.", id="mem-deep", tags="['rare, \"one\"', b]")
    write(root, "deepXer", "A quartz among much else that is said there.", id="mem-other", tags="[b]")
    write(root, "over", "A quartz among much else.", id="mem-over", expires="2020-01-01", tags="[gone]")
    write(root, "open", "A quartz among much else.", id="mem-open", kind="task", status="open")
    write(root, "unsaid", "A quartz among much else, a task.", id="mem-unsaid", kind="task")
    commit(root)
    push_store(opened(root))
    small(monkeypatch)
    asked = [
        (Filters(tags=('rare, "one"',)), {"mem-deep"}),
        (Filters(tags=("b", 'rare, "one"')), {"mem-deep"}),
        (Filters(tags=("b",)), {"mem-deep", "mem-other"}),
        (Filters(tags=()), set()),
        (Filters(tags=("gone",)), set()),
        (Filters(tags=("gone",), retired=True), {"mem-over"}),
        (Filters(paths=("memories/deep_er",)), {"mem-deep"}),
        (Filters(paths=("memories/deep_er/one.md", "/memories/deepXer.md/")), {"mem-deep", "mem-other"}),
        (Filters(paths=("memories/deep",)), set()),
        (Filters(paths=()), set()),
        (Filters(kinds=("task",), statuses=("open",)), {"mem-open", "mem-unsaid"}),
    ]
    for filters, expected in asked:
        for mode in ("keyword", "hybrid"):
            assert set(same(root, Query("quartz", mode=mode, limit=10, filters=filters), monkeypatch)) == expected, filters
    # Of one repository, as its hits are named.
    repo = repository_name(opened(root).location)
    for place, expected in ((f"{repo}: memories/deep_er/", {"mem-deep"}), ("elsewhere: memories", set())):
        found = recall(opened(root), Query("quartz", filters=Filters(paths=(place,)))).results
        assert {hit.id for hit in found} == expected


class Leaning(FakeEmbedder):
    """Likes its own language: half of a vector says only which script a text is in."""

    def passages(self, texts: Sequence[str]) -> Any:
        rows = super().passages(texts)
        rows[:, -2:] = [[3.0, 0.0] if wide(text) else [0.0, 3.0] for text in texts]
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    queries = passages


def test_each_of_two_languages_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest of all are those of the question's own language, and all the engine gave were these."""
    monkeypatch.setattr("mdmem.index.dense.load_embedder", lambda config, state_dir, chunking="": Leaning())
    root = made(tmp_path / "store", 0)
    for number in range(9):
        more = " ".join(f"word{other}" for other in range(number * number))
        write(root, f"en{number}", f"The quartz of day {number} lies in the drawer. {more}", id=f"mem-en{number}")
        write(root, f"zh{number}", f"石英 放在 抽屉 里面 quartz drawer {'别的 矿石 ' * number}", id=f"mem-zh{number}")
    commit(root)
    push_store(opened(root))
    unit = np.zeros(64, np.float32)
    means = dict.fromkeys((False, True), unit)
    passages = {True: np.eye(64, dtype=np.float32)[-2] * 3, False: np.eye(64, dtype=np.float32)[-1] * 3}
    monkeypatch.setattr(meaning, "common_of", lambda store: Common(means, passages))
    small(monkeypatch)
    found = same(root, Query("quartz drawer", limit=10), monkeypatch)
    assert any("zh" in name for name in found) and any("en" in name for name in found)
    # What the filters leave of one language only is not taken for two.
    same(root, Query("石英", limit=10, filters=Filters(paths=tuple(f"memories/en{n}.md" for n in range(9)))), monkeypatch)
    monkeypatch.setenv("MDMEM_RECALL_LANGUAGES", "false")
    same(root, Query("quartz drawer", limit=10), monkeypatch)


def test_related_notes_lift_each_other_there_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = made(tmp_path / "store", 0)
    write(root, "vega", "Vega is the billing service.", id="mem-vega", kind="entity", title="Vega")
    (root / "memories" / "team").mkdir()
    write(root, "team/owner", "Runs on three machines. Depends on [[Vega]].", id="mem-owner", title="Machines")
    write(root, "other", "Runs on three machines.", id="mem-other", title="Machines too")
    write(root, "lost", "Runs on [[nothing]] and [[Machines too]].", id="mem-lost", title="Lost")
    commit(root)
    push_store(opened(root))
    # Another repository has a note of the same name: no edge leads there.
    two = made(tmp_path / "two", 0)
    write(two, "vega", "Vega is a star.", id="mem-star", kind="entity", title="Vega")
    commit(two)
    push_store(opened(two))
    monkeypatch.setenv("MDMEM_INDEX_REPOSITORIES", repository_name(opened(root).location))
    local, there = both(root, Query("which machines does Vega run on", limit=10, explain=True), monkeypatch)
    assert seen(local) == seen(there)
    lifted = [{hit.id for hit in answer.results if dict(hit.steps).get("graph")} for answer in (local, there)]
    assert lifted[0] == lifted[1] and {"mem-vega", "mem-owner"} <= lifted[0]
    monkeypatch.delenv("MDMEM_INDEX_REPOSITORIES")
    found = recall(opened(root), Query("which machines does Vega run on", limit=10, explain=True)).results
    assert {"mem-star", "mem-vega"} <= {hit.id for hit in found}
    assert dict(next(hit for hit in found if hit.id == "mem-owner").steps).get("graph")  # it means the Vega of its own


def test_rows_of_another_version_are_not_read_and_the_local_index_says_why(tmp_path: Path) -> None:
    root = made(tmp_path / "store", 5)
    done = push_store(opened(root))
    engine = Engine(shared_scene.target(), writes=True)
    state = state_of(engine, done.repo)
    assert state["layout"] == LAYOUT
    (pk,) = [row["pk"] for row in engine.few(engine.state, 'pk like "commit:%"', ["pk"])]
    engine.put(engine.state, [state_row(done.repo, pk, {**state, "layout": LAYOUT - 1})])
    engine.close()
    answer = recall(opened(root), Query("word8 word9", mode="keyword"))
    assert answer.results and any("another version" in text and "local index" in text for text in answer.notices)


def test_a_collection_with_the_fields_of_an_earlier_version_is_named(tmp_path: Path) -> None:
    from pymilvus import DataType, MilvusClient

    from mdmem.index.milvus import SharedDown

    root = made(tmp_path / "store", 5)
    client = MilvusClient(shared_scene.target().uri)
    for name in ("mdmem", "mdmem_state"):
        schema = MilvusClient.create_schema(auto_id=False)
        schema.add_field("pk", DataType.VARCHAR, max_length=128, is_primary=True)
        schema.add_field("repo", DataType.VARCHAR, max_length=64)
        schema.add_field("blob", DataType.VARCHAR, max_length=65_535)
        schema.add_field("meaning", DataType.FLOAT_VECTOR, dim=2)
        index = MilvusClient.prepare_index_params()
        index.add_index("meaning", index_type="FLAT", metric_type="IP")
        client.create_collection(name, schema=schema, index_params=index)
    engine = Engine(shared_scene.target(), writes=True)
    client.close()
    engine.close()
    with pytest.raises(SharedDown, match="another version") as error:
        push_store(opened(root))
    assert "index.collection" in error.value.hint
    assert recall(opened(root), Query("word8 word9", mode="keyword")).results


def test_rows_that_are_not_as_we_write_them_are_said_and_the_local_index_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may write there. A list of terms or a window that was no JSON ended the question with a traceback."""
    root = made(tmp_path / "store", 5)
    done = push_store(opened(root))
    engine = Engine(shared_scene.target(), writes=True)
    fields = ["pk", "repo", "blob", "meaning"]
    state = {row["pk"]: dict(row) for row in engine.few(engine.state, 'pk != ""', fields)}
    (record,) = [pk for pk in state if pk.startswith("commit:")]
    said = state_of(engine, done.repo)
    scopes = {scope: {**one, "windows": "x"} for scope, one in said["scopes"].items()}
    names = [
        *("pk", "repo", "note", "place", "mark", "path", "tags", "script", "ord", "size", "words", "meaning", "row"),
        *SCALARS,
    ]
    rows = [dict(row) for row in engine.few(engine.windows, 'repo != ""', names)]
    lists = [pk for pk in state if ":terms:" in pk]

    def put(collection: str, wrong: Sequence[dict[str, Any]]) -> None:
        engine = Engine(shared_scene.target(), writes=True)
        engine.put(collection, wrong)
        engine.close()

    engine.close()
    broken: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
        ("mdmem_state", [{**state[record], "blob": blob}], [state[record]])
        for blob in ("", "no base64 %", squeeze([]), squeeze({**said, "scopes": []}), squeeze({**said, "scopes": scopes}))
    ]
    broken += [("mdmem_state", [{**state[pk], "blob": "AAAA"} for pk in lists], [state[pk] for pk in lists])]
    for value in (
        "AAAA",
        squeeze([1]),
        squeeze({"text": "walrus"}),
        squeeze({"text": "x", "note": [{}, 1, 2, 3], "repo": "r"}),
    ):
        broken += [("mdmem", [{**row, "row": value} for row in rows], rows)]
    # One that took long to fail is not asked again for a minute.
    later = [Store.open(root, clock=FixedClock(NOW + timedelta(minutes=2 * turn))) for turn in range(len(broken) + 1)]
    for store, (collection, wrong, right) in zip(later, broken):
        put(collection, wrong)
        answer = recall(store, Query("word8 word9 word3", limit=10))
        assert answer.results and not any(": " in hit.path for hit in answer.results), wrong[0]
        assert any("cannot be read" in text and "local index" in text for text in answer.notices), answer.notices
        put(collection, right)
    answer = recall(later[-1], Query("word8 word9 word3", limit=10))
    assert answer.results and not any("local index" in text for text in answer.notices), answer.notices
    # A record that is none is no commit that was pushed: the next push compares everything.
    put("mdmem_state", [{**state[record], "blob": squeeze({**said, "rev": "--output=x"})}])
    assert push_store(opened(root)).unchanged == 5 and push_store(opened(root)).unchanged == 5
