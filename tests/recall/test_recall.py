"""The pipeline on a real store: what is found, in which order, and what happens when a part is down."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest

from mdmem.clock import FixedClock
from mdmem.errors import MdmemError, NotFound, UsageError
from mdmem.index import dense
from mdmem.index.embed import EmbeddingUnavailable
from mdmem.notes.frontmatter import render
from mdmem.recall.query import Filters, Query
from mdmem.recall.recall import recall, recall_many
from mdmem.recall.select import KEPT, allowed
from mdmem.setup import init
from mdmem.store import Store

NOW = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)
# What this embedder understands: words of one line mean the same.
MEANINGS = ("car automobile vehicle 汽车", "database postgres postgresql 数据库", "lunch noon meal 午饭")


class SynonymEmbedder:
    """Unit vectors of words, synonyms alike."""

    fingerprint = "synonyms"
    dims = 64

    def _vector(self, text: str) -> np.ndarray:
        vector = np.full(self.dims, 1e-2)
        for word in text.lower().replace("?", " ").replace(".", " ").split():
            same = next((line for line in MEANINGS if word in line.split()), word)
            vector[int.from_bytes(hashlib.blake2b(same.encode(), digest_size=4).digest(), "big") % self.dims] += 1
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def passages(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self._vector(text) for text in texts])

    queries = passages

    def count_tokens(self, text: str) -> int:
        return len(text.split())


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch) -> SynonymEmbedder:
    """The embedder that every store of this process uses."""
    fake = SynonymEmbedder()
    monkeypatch.setattr(dense, "load_embedder", lambda config, state_dir, chunking="": fake)
    monkeypatch.setattr("mdmem.setup._driver", lambda *_: None)
    return fake


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty dedicated store whose clock stands still."""
    init(tmp_path / "store")
    return Store.open(tmp_path / "store", need="write", clock=FixedClock(NOW))


Keep = Callable[..., str]


@pytest.fixture
def keep(store: Store) -> Keep:
    """A function that writes a note with these fields and returns its path."""

    def write(name: str, text: str, **fields: object) -> str:
        path = name if name.endswith(".md") else f"memories/{name}.md"
        known: dict[str, object] = {"kind": "memory", "type": "decision", "title": name.replace("-", " ")}
        known |= {"created": "2026-11-01T00:00:00Z", "updated": "2026-11-01T00:00:00Z"} | fields
        store.folder.create(path, render({key: value for key, value in known.items() if value is not None}, text + "\n"))
        return path

    return write


def paths(store: Store, text: str, **options: object) -> list[str]:
    store.index.refresh(embed_budget_s=None)
    found = recall(store, Query(text, **options))  # type: ignore[arg-type]
    return [hit.path.rpartition("/")[2].removesuffix(".md") for hit in found.results]


def test_found_by_words_and_by_meaning(store: Store, keep: Keep) -> None:
    keep("car", "The company automobile is red.")
    keep("food", "Lunch is served daily.")
    assert paths(store, "automobile")[0] == "car"
    assert paths(store, "which vehicle")[0] == "car"
    assert paths(store, "which vehicle", mode="keyword") == []
    assert paths(store, "noon", mode="semantic")[0] == "food"


def test_i17_a_filter_is_applied_before_the_cut(store: Store, keep: Keep) -> None:
    for number in range(300):
        keep(f"n{number}", "the port is 5432 " * 3)
    keep("rare", "somewhere a port", tags=["special"])
    for mode in ("hybrid", "keyword", "semantic"):
        assert paths(store, "port 5432", mode=mode, filters=Filters(tags=("special",))) == ["rare"], mode


def test_i33_superseded_versions_do_not_take_the_places(store: Store, keep: Keep) -> None:
    for number in range(50):
        keep(f"old{number}", "the release train leaves on Monday", status="superseded")
    for number in range(4):
        keep(f"other{number}", "the release notes are long")
    keep("new", "the release train leaves on Tuesday")
    found = paths(store, "release train leaves", limit=5)
    assert found[0] == "new" and len(found) == 5 and not any(name.startswith("old") for name in found)
    assert any(name.startswith("old") for name in paths(store, "release train leaves", filters=Filters(retired=True)))
    assert paths(store, "release train", filters=Filters(statuses=("superseded",)), limit=100) != []


def test_expired_notes_are_left_out(store: Store, keep: Keep) -> None:
    keep("gone", "the wifi password rotates", expires="2026-11-29T00:00:00Z")
    keep("valid", "the wifi password rotates", expires="2026-12-29T00:00:00Z")
    assert paths(store, "wifi password") == ["valid"]


@pytest.mark.parametrize(
    "value", ['x" OR 1=1', "' OR '1'='1", "decision%", "%", "_", "*", "decision') --", "\\", "dec?sion", "DECISION"]
)
def test_i42_filter_values_are_literal(store: Store, keep: Keep, value: str) -> None:
    keep("a", "the port is 5432")
    for name in ("types", "tags", "kinds", "categories", "scopes", "agents", "statuses", "paths"):
        assert paths(store, "port", filters=Filters(**{name: (value,)})) == [], name


def test_n18_a_tag_with_wildcards_is_exact(store: Store, keep: Keep) -> None:
    keep("a", "the port is 5432", tags=["50%_x\\y"])
    keep("b", "the port is 5432", tags=["50a_x\\y"])
    assert paths(store, "port", filters=Filters(tags=("50%_x\\y",))) == ["a"]


def test_no_filter_is_everything_and_an_empty_one_nothing(store: Store, keep: Keep) -> None:
    keep("a", "the port is 5432")
    assert paths(store, "port", filters=Filters()) == ["a"]
    assert paths(store, "port", filters=Filters(types=())) == []


@pytest.mark.parametrize(
    "text", ["AND", "a AND (b", "port:5432", '"', "*", "port*", "NOT port", "[port TO x]", "port^2~", "((((", "🎉"]
)
def test_query_syntax_is_searched_literally(store: Store, keep: Keep, text: str) -> None:
    keep("a", "the port is 5432")
    for mode in ("hybrid", "keyword"):
        recall(store, Query(text, mode=mode))


def test_query_syntax_on_demand(store: Store, keep: Keep) -> None:
    keep("a", "alpha beta")
    keep("b", "alpha gamma")
    assert paths(store, "alpha AND NOT gamma", query_syntax=True, mode="keyword") == ["a"]


def test_tasks_and_messages_only_when_asked_by_kind(store: Store, keep: Keep) -> None:
    keep("tasks/t.md", "deploy the port", kind="task", type=None)
    keep("note", "deploy the port")
    assert paths(store, "deploy port") == ["note"]
    assert paths(store, "deploy port", filters=Filters(kinds=("task",))) == ["t"]


def test_sessions_weigh_less_than_a_fact(store: Store, keep: Keep) -> None:
    keep("sessions/2026/11/s.md", "the port is 5432", kind="session", type=None, title="x")
    keep("fact", "the port is 5432", title="x")
    assert paths(store, "port") == ["fact", "s"]


def test_other_things_equal_the_newer_wins_and_an_exact_old_match_is_not_buried(store: Store, keep: Keep) -> None:
    old, new = "2020-01-01T00:00:00Z", "2026-11-29T00:00:00Z"
    keep("older", "the port is 5432", updated=old, created=old, title="x")
    keep("newer", "the port is 5432", updated=new, created=new, title="x")
    assert paths(store, "port 5432") == ["newer", "older"]
    keep("recent", "a harbour has a port and much else to see", updated=new, created=new, title="y", type="event")
    assert paths(store, "port 5432")[:2] == ["newer", "older"]


def test_equal_scores_keep_one_order(store: Store, keep: Keep) -> None:
    for name in ("c", "a", "b"):
        keep(name, "the port is 5432", title="x", id=f"mem-{name}")
    keep("d", "the port is 5432", title="x", updated="2026-11-20T00:00:00Z", id="mem-z")
    assert paths(store, "port", decay=False) == ["d", "a", "b", "c"]


def test_a_day_named_in_the_question_is_preferred(store: Store, keep: Keep) -> None:
    for day in range(1, 21):
        keep(f"standup-{day:02}", "standup: talked about the release", created=f"2026-05-{day:02}T09:00:00Z", title="standup")
    assert paths(store, "what did we talk about on 4 May")[0] == "standup-04"
    assert paths(store, "5月12日 standup")[0] == "standup-12"


def test_the_very_day_counts_for_more_than_the_day_before_which_has_the_words(store: Store, keep: Keep) -> None:
    keep("before", "a talk about topics", created="2026-04-28T09:00:00Z", updated="2026-04-28T09:00:00Z")
    keep("that day", "alpha beta", created="2026-04-29T09:00:00Z", updated="2026-04-29T09:00:00Z")
    keep("that month", "a talk about topics", created="2026-04-11T09:00:00Z", updated="2026-04-11T09:00:00Z")
    found = recall(store, Query("which topics did we talk about on April 29th", mode="keyword", explain=True))
    steps = {hit.title: dict(hit.steps) for hit in found.results}
    assert {title for title, told in steps.items() if "day" in told} == {"that day"}
    # A month is no day.
    found = recall(store, Query("which topics did we talk about in April", mode="keyword", explain=True))
    assert not any("day" in dict(hit.steps) for hit in found.results)


def test_a_day_finds_notes_that_share_no_word(store: Store, keep: Keep) -> None:
    keep("quiet", "alpha beta", created="2026-05-04T09:00:00Z", updated="2026-05-04T09:00:00Z")
    keep("loud", "gamma delta", created="2026-08-04T09:00:00Z", updated="2026-08-04T09:00:00Z")
    assert paths(store, "on 2026-05-04", mode="keyword") == ["quiet"]


def test_a_phrase_beats_scattered_words(store: Store, keep: Keep) -> None:
    keep("scattered", "The queue grew. We lost a message yesterday, then another.", title="x")
    keep("phrase", "The message queue grew yesterday, and we lost another one.", title="x")
    assert paths(store, "message queue", decay=False)[0] == "phrase"


def test_the_snippet_names_its_lines(store: Store, keep: Keep) -> None:
    path = keep("a", "Opening.\n\nThe port is 5432.\n\nClosing.")
    (hit,) = recall(store, Query("port")).results
    lines = (store.root / path).read_text("utf-8").split("\n")
    assert hit.snippet == "The port is 5432." == lines[hit.start_line - 1] and hit.start_line == hit.end_line


def test_evidence_is_raw(store: Store, keep: Keep) -> None:
    keep("a", "the postgresql port is 5432")
    store.index.refresh(embed_budget_s=None)
    (hit,) = recall(store, Query("which port has xyzzy")).results
    assert hit.matched == ["port"] and 0.0 < hit.share < 1.0 and hit.bm25 is not None and hit.cosine is not None
    assert -1.0 <= hit.cosine <= 1.0


def test_i38_no_model_is_a_notice_and_words_go_on(store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise EmbeddingUnavailable("there is no model here")

    monkeypatch.setattr(dense, "load_embedder", broken)
    keep("a", "the port is 5432")
    found = recall(store, Query("port"))
    assert [hit.path for hit in found.results] == ["memories/a.md"] and found.mode == "keyword"
    assert any("there is no model here" in text for text in found.notices)
    with pytest.raises(MdmemError) as error:
        recall(store, Query("port", mode="semantic"))
    assert error.value.exit_code == 1
    # No match is no error.
    assert recall(store, Query("xyzzy")).results == []


def test_i38_a_broken_text_index_is_rebuilt_and_both_broken_is_an_error(
    store: Store, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep("a", "the port is 5432")
    store.index.refresh(embed_budget_s=None)
    store.index.maintain()
    for file in (store.state_dir / "text").iterdir():
        file.write_bytes(b"damaged")
    again = Store.open(store.root)
    found = recall(again, Query("port", mode="keyword"))
    assert [hit.path for hit in found.results] == ["memories/a.md"]
    for file in (store.state_dir / "text").iterdir():
        file.write_bytes(b"damaged")
    last = Store.open(store.root)
    last.index.rebuilds = False
    assert [hit.path for hit in recall(last, Query("port")).results] == ["memories/a.md"]
    monkeypatch.setattr(last.index.dense, "question", lambda text: None)
    with pytest.raises(MdmemError):
        recall(last, Query("port"))


def test_several_stores_are_ranked_together(tmp_path: Path, store: Store, keep: Keep) -> None:
    keep("a", "the port is 5432")
    init(tmp_path / "other")
    other = Store.open(tmp_path / "other", need="write", clock=store.clock)
    fields = {"kind": "memory", "type": "decision", "title": "b", "created": "2026-11-01", "updated": "2026-11-01"}
    other.folder.create("memories/b.md", render(fields, "the port is 5433, the port of the port\n"))
    found = recall_many([("", store), ("team", other)], Query("port 5433"))
    assert [(hit.store, hit.path) for hit in found.results] == [("team", "memories/b.md"), ("", "memories/a.md")]


def test_a_store_that_fails_does_not_stop_the_others(store: Store, keep: Keep, tmp_path: Path) -> None:
    keep("a", "the port is 5432")

    class Broken:
        root = tmp_path

        @property
        def index(self) -> object:
            raise MdmemError("it is gone")

    found = recall_many([("", store), ("team", Broken())], Query("port"))  # type: ignore[list-item]
    assert [hit.path for hit in found.results] == ["memories/a.md"] and "team: it is gone" in found.notices


def test_as_of_sees_the_store_as_it_was(store: Store, keep: Keep) -> None:
    path = keep("a", "the port is 5432")
    for moment, text in (("2026-01-01", ""), ("2026-06-01", "changed")):
        if text:
            (store.root / path).write_text((store.root / path).read_text("utf-8").replace("5432", "6543"), "utf-8")
        subprocess.run(["git", "add", "-A"], cwd=store.root, check=True)
        date = f"{moment}T00:00:00Z"
        subprocess.run(
            ["git", "commit", "-qm", "x", "--date", date],
            cwd=store.root,
            check=True,
            env={"GIT_COMMITTER_DATE": date, "HOME": str(store.root.parent), "PATH": "/usr/bin:/bin", **_identity()},
        )
    from mdmem.clock import parse_time

    then = recall(store, Query("port", as_of=parse_time("2026-03-01")))
    assert "5432" in then.results[0].snippet
    assert "6543" in recall(store, Query("port")).results[0].snippet


def _identity() -> dict[str, str]:
    return {f"GIT_{who}_{what}": f"a{at}b" for who in ("AUTHOR", "COMMITTER") for what, at in (("NAME", " "), ("EMAIL", "@"))}


def test_explain_names_each_step(store: Store, keep: Keep) -> None:
    keep("a", "the message queue is full", created="2026-05-04T00:00:00Z", updated="2020-01-01T00:00:00Z", type="event")
    store.index.refresh(embed_budget_s=None)
    data = recall(store, Query("message queue on 4 May", explain=True)).as_dict()
    assert list(data["results"][0]["explain"]) == [
        "bm25",
        "cosine",
        "share",
        "fused",
        "date",
        "day",
        "phrase",
        "decay",
        "score",
    ]
    assert data["explain"]["dates"] and data["explain"]["terms"] and data["explain"]["candidates"] == 1


def test_the_context_block_fits_its_budget(store: Store, keep: Keep) -> None:
    for number in range(20):
        keep(f"n{number}", f"the port of service {number} is {5000 + number}")
    found = recall(store, Query("port of a service", budget=150, limit=20))
    assert found.context.startswith("<mdmem-context") and len(found.context) <= 4 * 150


@pytest.mark.parametrize("bad", [{"text": " "}, {"limit": 0}, {"mode": "magic"}, {"fusion": "magic"}, {"budget": 0}])
def test_what_makes_no_sense_is_refused(store: Store, bad: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        recall(store, Query(**{"text": "port", **bad}))  # type: ignore[arg-type]


def test_by_words_alone_loads_neither_model_nor_numpy(store: Store, keep: Keep) -> None:
    keep("a", "the port is 5432")
    recall(store, Query("port", mode="keyword"))
    code = (
        "import sys; from pathlib import Path; from mdmem.store import Store; from mdmem.recall.query import Query;"
        "from mdmem.recall.recall import recall; s = Store.open(Path(sys.argv[1]));"
        "assert recall(s, Query('port', mode='keyword')).results;"
        "print(sorted({'numpy', 'onnxruntime', 'tokenizers', 'whoosh.index', 'git', 'rich', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(store.root)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_a_block_that_holds_nothing_says_so(store: Store, keep: Keep) -> None:
    keep("a", "the port of the service is 5432")
    found = recall(store, Query("port", budget=5))
    assert found.context == "" and found.results
    needed = int(found.notices[-1].rpartition(" ")[2])
    assert "empty" in found.notices[-1] and "5 tokens" in found.notices[-1]
    assert recall(store, Query("port", budget=needed)).context and not recall(store, Query("port", budget=needed - 1)).context
    assert "nothing was found" in recall(store, Query("walrus", mode="keyword", budget=500)).notices[-1]


def test_the_ranking_is_the_same_to_the_last_bit_whatever_the_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.index import flush

    rng = random.Random(7)
    words = [*" ".join(MEANINGS).split(), *(f"word{number}" for number in range(60))]
    notes = [(f"n{number}.md", " ".join(rng.choices(words, k=rng.randint(3, 300)))) for number in range(20)]
    questions = [" ".join(rng.sample(words, 4)) for _ in range(8)]
    orders: list[list[tuple[str, str]]] = []
    for batch, at_once in ((2, 7), (5, 20), (2000, 20)):
        monkeypatch.setattr(dense, "BATCH", batch)
        monkeypatch.setattr(flush, "BATCH", batch)
        monkeypatch.setattr("mdmem.index.refresh.OVERLAY", 3)
        init(tmp_path / f"store{batch}")
        store = Store.open(tmp_path / f"store{batch}", need="write", clock=FixedClock(NOW))
        for start in range(0, len(notes), at_once):
            for path, text in notes[start : start + at_once]:
                (store.root / path).write_text(f"---\ncreated: 2026-11-01\nupdated: 2026-11-01\n---\n\n{text}\n")
            store.index.refresh(embed_budget_s=None)
        asked = [Query(question, limit=20, mode=mode) for question in questions for mode in ("hybrid", "keyword")]
        found = [recall(store, query) for query in asked]
        orders.append([(hit.path, hit.score.hex()) for one in found for hit in one.results])
    assert len(orders[0]) > 80
    assert orders[0] == orders[1] == orders[2]


def test_what_may_be_found_is_worked_out_anew_when_a_note_changes_or_expires(store: Store, keep: Keep) -> None:
    keep("a", "the port is 5432", expires="2026-12-01T00:00:00Z")
    keep("b", "the port is 6543")
    keep("c", "the port is 7654", status="superseded")
    assert sorted(paths(store, "port")) == ["a", "b"]
    assert allowed(store, Filters()) is allowed(store, Filters())
    assert isinstance(store.clock, FixedClock)
    store.clock.moment = datetime(2026, 12, 1, tzinfo=timezone.utc)
    assert paths(store, "port") == ["b"]
    # A clock that goes back is no reason to keep what was true later.
    store.clock.moment = NOW
    assert sorted(paths(store, "port")) == ["a", "b"]
    keep("d", "the port is 8765")
    assert sorted(paths(store, "port")) == ["a", "b", "d"]
    (store.root / "memories/b.md").unlink()
    assert sorted(paths(store, "port")) == ["a", "d"]


def test_a_period_is_filtered_by_its_end_and_no_tag_at_all_fits_nothing(store: Store, keep: Keep) -> None:
    keep("old", "the port is 5432", updated="2026-01-01T00:00:00Z")
    keep("new", "the port is 5432", updated="2026-11-01T00:00:00Z", tags=["x"])
    until = datetime(2026, 6, 1, tzinfo=timezone.utc)
    assert paths(store, "port", filters=Filters(until=until)) == ["old"]
    assert paths(store, "port", filters=Filters(since=until)) == ["new"]
    assert paths(store, "port", filters=Filters(tags=())) == []
    assert paths(store, "port", filters=Filters(paths=("/",))) == paths(store, "port")


def test_what_the_store_allows_an_agent_narrows_what_the_user_allows(store: Store, keep: Keep) -> None:
    for scope in ("shared", "project:a", "project:b", "user:me"):
        keep(scope.replace(":", "-"), "the port is 5432", scope=scope)
    agent = store.identity.agent
    store.config.user["agents"] = {agent: {"scopes": ["shared", "project:*"]}}
    store.config.repository["agents"] = {agent: {"scopes": ["project:a", "user:*"]}}
    assert paths(store, "port") == ["project-a"]  # the store cannot let in what the user did not
    store.config.user["agents"] = {agent: {"scopes": ["project:a", "project:b"]}}
    store.config.repository["agents"] = {agent: {"scopes": ["project:*"]}}
    assert sorted(paths(store, "port")) == ["project-a", "project-b"]
    store.config.repository["agents"] = {agent: {"scopes": []}}
    assert paths(store, "port") == []


def test_sets_of_allowed_notes_are_not_kept_without_end(store: Store, keep: Keep) -> None:
    keep("a", "the port is 5432", tags=["t1"])
    keep("b", "the port is 5432")
    store.index.refresh()
    for number in range(3 * KEPT):
        assert len(allowed(store, Filters(tags=(f"t{number}",))) or ()) == (number == 1)
    assert len(store.index.catalog.kept()) <= KEPT + 1
    assert len(allowed(store, Filters(tags=("t1",))) or ()) == 1


def test_before_the_first_commit_there_is_nothing_to_look_at(store: Store, keep: Keep) -> None:
    keep("a", "the port is 5432")
    with pytest.raises(NotFound, match="no commit at or before 2001-01-01"):
        recall(store, Query("port", as_of=datetime(2001, 1, 1, tzinfo=timezone.utc)))


def test_a_whole_year_in_a_question_adds_no_notes_and_a_day_only_those_that_fit(store: Store, keep: Keep) -> None:
    keep("a", "one thing", created="2025-05-04T00:00:00Z", tags=["x"])
    keep("b", "another thing", created="2025-05-04T00:00:00Z")
    assert paths(store, "zzz in 2025", mode="keyword") == []
    assert sorted(paths(store, "zzz on 2025-05-04", mode="keyword")) == ["a", "b"]
    assert paths(store, "zzz on 2025-05-04", mode="keyword", filters=Filters(tags=("x",))) == ["a"]


def test_the_words_alone_being_broken_is_an_error_where_words_were_asked_for(store: Store, keep: Keep) -> None:
    keep("a", "the port is 5432")
    store.index.refresh(embed_budget_s=None)
    store.index.maintain()
    for file in (store.state_dir / "text").iterdir():
        file.write_bytes(b"damaged")
    last = Store.open(store.root)
    last.index.rebuilds = False
    with pytest.raises(MdmemError, match="text index") as caught:
        recall(last, Query("port", mode="keyword"))
    assert caught.value.hint == "mdmem index rebuild text"


@pytest.mark.parametrize("fusion", ["rrf", "minmax", ""])
@pytest.mark.parametrize("explain", [False, True])
def test_each_way_to_join_the_streams_can_be_explained_or_not(store: Store, keep: Keep, fusion: str, explain: bool) -> None:
    keep("a", "the company automobile is red")
    keep("b", "lunch is served daily")
    store.index.refresh(embed_budget_s=None)
    for plain in (False, True):
        found = recall(store, Query("which vehicle", fusion=fusion, explain=explain, plain=plain))
        data = found.as_dict()
        assert data["results"][0]["path"] == "memories/a.md"
        assert ("explain" in data) == explain and ("explain" in data["results"][0]) == explain
        if explain:
            assert ("share" in data["results"][0]["explain"]) == (not plain)
    assert "context" not in data and "context" in recall(store, Query("vehicle", budget=100)).as_dict()


def test_a_query_that_cannot_be_read_is_an_error_and_not_a_notice(store: Store, keep: Keep) -> None:
    from mdmem.index.syntax import EXPANDED

    keep("a", " ".join(f"zq{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}x" for n in range(EXPANDED + 1)))
    store.index.refresh(embed_budget_s=None)
    with pytest.raises(UsageError, match="stands for"):
        recall(store, Query("zq*", query_syntax=True))


def test_a_note_that_words_alone_brought_is_compared_by_meaning_as_well(store: Store, keep: Keep) -> None:
    """More notes are nearer in meaning than a stream hands on: the one with the rare word still has its cosine."""
    for number in range(230):
        keep(f"n{number:03d}", f"the vehicle number {number}")
    keep("rare", "a zebra crossing")
    store.index.refresh(embed_budget_s=None)
    found = recall(store, Query("vehicle zebra", limit=300))
    (hit,) = [hit for hit in found.results if hit.title == "rare"]
    assert hit.bm25 is not None and hit.cosine is not None


def test_the_ways_to_join_the_streams_are_different_ones(store: Store, keep: Keep) -> None:
    for number in range(6):
        keep(f"n{number}", f"the vehicle number {number} " + "and lunch " * number)
    store.index.refresh(embed_budget_s=None)
    fused = {
        fusion: [dict(hit.steps)["fused"] for hit in recall(store, Query("vehicle lunch", fusion=fusion, explain=True)).results]
        for fusion in ("rrf", "minmax")
    }
    assert fused["rrf"] != fused["minmax"]
