"""The engine tantivy beside the one of Whoosh: the same hits with the same scores, after any history, under any filter."""

from __future__ import annotations

import random
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from notes_at_hand import found, write

from mdmem.clock import UTC, FixedClock
from mdmem.index import engine
from mdmem.index.score import Corpus
from mdmem.index.segment import Row, memory
from mdmem.index.text import TextIndex, TextIndexDamaged
from mdmem.recall.query import Query
from mdmem.recall.recall import recall
from mdmem.store import Store

pytest.importorskip("tantivy")
from mdmem.index.tantivy_text import HEADER_FILE, MERGE_AT, TantivyText

Opened = Callable[[], Store]
WORDS = [f"word{number}" for number in range(80)] + ["部署", "部", "署", "v1.2.3", "c++", "naïve"]
SYLLABLES = ["ka", "re", "mi", "so", "tu", "la", "po", "ne", "da", "vi", "gu", "he"]


def row(window: int, note: int, rng: random.Random) -> Row:
    def some(most: int) -> list[str]:
        return [WORDS[min(int(rng.expovariate(0.06)), len(WORDS) - 1)] for _ in range(rng.randint(0, most))]

    return Row(window, note, (some(60), some(4), some(3), some(2)))


def fresh(tmp_path: Path) -> TantivyText:
    index = TantivyText(tmp_path / "text", "e1")
    index.create()
    return index


def asked(corpus: Corpus, allowed: set[int] | None = None) -> list[object]:
    rng = random.Random(9)
    found: list[object] = []
    for _ in range(15):
        words = [(word, rng.choice((0.5, 1.0, 2.0))) for word in rng.sample(WORDS, 4)]
        hits = corpus.search(words, allowed, 15)
        found += [hits, corpus.coverage(hits.terms, {hit.note for hit in hits.hits} | {3, 77, 900})]
    return found


def test_a_history_of_updates_and_deletions_gives_what_whoosh_gives_to_the_last_bit(tmp_path: Path) -> None:
    rng = random.Random(2)
    index = fresh(tmp_path)
    kept: dict[int, list[Row]] = {}
    window = 0
    for turn in range(30):
        gone = set(rng.sample(sorted(kept), min(len(kept), rng.randint(0, 6))))
        changed = {note for note in gone if rng.random() < 0.6} | {1000 + turn * 10 + n for n in range(rng.randint(0, 8))}
        for note in gone:
            kept.pop(note)
        added = []
        for note in sorted(changed):
            kept[note] = []
            for _ in range(rng.randint(1, 3)):
                window += 1
                kept[note].append(row(window, note, rng))
            added += kept[note]
        index.update(gone | changed, added)
    rows = sorted(r for rows in kept.values() for r in rows)
    truth = Corpus([memory(rows)])
    assert asked(index.corpus()) == asked(truth)
    assert index.health().windows == len(rows)
    # Each commit waits for the merges that it begins. Cut off with their writer they were begun anew by every following one:
    # the work grew with the square of the commits, and what was half done stayed on the disk.
    assert index.health().segments < MERGE_AT and not index.worn() and not index.optimize()
    assert len(list((tmp_path / "text").glob("*.store"))) == index.health().segments
    assert asked(TantivyText(tmp_path / "text", "e1").corpus()) == asked(truth)


@pytest.mark.parametrize("share", [0.02, 0.9])
def test_filters_and_what_waits_in_the_queue_count_as_in_whoosh(
    tmp_path: Path, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few notes are asked for by name, of many each candidate is looked at; both ways are taken here."""
    monkeypatch.setattr("mdmem.index.tantivy_corpus.FEW", 20)
    rng = random.Random(3)
    old = [row(n, n, rng) for n in range(1, 400)]
    new = [row(500 + n, n, rng) for n in (3, 77, 900)]
    index = fresh(tmp_path)
    index.update((), old)
    overlaid = index.corpus({3, 77, 900, *range(300, 330)}, new)
    truth = Corpus([memory([r for r in old if r.note not in (3, 77) and not 300 <= r.note < 330] + new)])
    allowed = {note for note in range(1, 1000) if rng.random() < share} | {77}
    assert asked(overlaid) == asked(truth)
    assert asked(overlaid, allowed) == asked(truth, allowed)
    assert asked(overlaid, set()) == asked(truth, set())


def test_a_filter_that_leaves_little_of_many_hits_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The allowed notes come last in tantivy's order: it is asked for more until they are reached."""
    monkeypatch.setattr("mdmem.index.tantivy_corpus.FEW", 5)
    monkeypatch.setattr("mdmem.index.tantivy_corpus.MARGIN", 0)
    rows = [Row(n, n, (["walrus"] + ["filler"] * (n // 4), [], [], [])) for n in range(1, 900)]
    index = fresh(tmp_path)
    index.update((), rows)
    allowed = set(range(880, 2000))
    hits = index.corpus().search([("walrus", 1.0)], allowed, 5).hits
    assert hits == Corpus([memory(rows)]).search([("walrus", 1.0)], allowed, 5).hits
    assert len(hits) == 5


def zipf(count: int, rng: random.Random) -> list[Row]:
    words = list(dict.fromkeys("".join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 4))) for _ in range(9000)))
    weights = [1.0 / rank for rank in range(1, len(words) + 1)]
    rows = []
    for number in range(1, count + 1):
        body = rng.choices(words, weights, k=rng.randint(20, 160))
        rows.append(Row(number, number, (body, rng.choices(words, weights, k=5), [], rng.choices(words, weights, k=2))))
    return rows


def test_both_engines_give_the_same_top_ten_among_many_candidates(tmp_path: Path) -> None:
    """More windows match than tantivy is asked for: its lengths of one byte may cost a place far down, not in the first ten."""
    rng = random.Random(5)
    rows = zipf(4000, rng)
    index = fresh(tmp_path)
    index.update((), rows)
    corpus, truth = index.corpus(), Corpus([memory(rows)])
    same = places = 0
    for number in range(60):
        words = [(word, 1.0) for word in dict.fromkeys(rng.sample(rows[rng.randrange(len(rows))].fields[0], 5))]
        ours, theirs = truth.search(words, None, 200), corpus.search(words, None, 200)
        assert ours.terms == theirs.terms and ours.windows == theirs.windows
        assert ours.hits[:10] == theirs.hits[:10], (number, words)
        same += len({hit.window for hit in ours.hits} & {hit.window for hit in theirs.hits})
        places += len(ours.hits)
    assert same / places > 0.95


def test_an_open_reader_sees_what_another_process_writes_and_drops_what_it_kept(tmp_path: Path) -> None:
    writer = fresh(tmp_path)
    writer.update((), [Row(1, 1, (["walrus"], [], [], []))])
    reader = TantivyText(tmp_path / "text", "e1")
    kept = reader.corpus((), (), "stamp")
    assert reader.kept("stamp") is kept and reader.kept("other") is None and not reader.replaced()
    writer.update({1}, [Row(2, 1, (["walrus"], [], [], [])), Row(3, 2, (["walrus"], [], [], []))])
    assert reader.replaced() and reader.kept("stamp") is None
    assert [hit.window for hit in reader.corpus().search([("walrus", 1.0)], None, 9).hits] == [2, 3]
    writer.create()
    assert reader.corpus().search([("walrus", 1.0)], None, 9).hits == []


def test_another_catalog_or_version_counts_as_damage(tmp_path: Path) -> None:
    index = fresh(tmp_path)
    index.update((), [row(1, 1, random.Random(1))])
    with pytest.raises(TextIndexDamaged):
        TantivyText(tmp_path / "text", "another catalog").corpus()
    assert not TextIndex(tmp_path / "text", "e1").exists()
    for name in (HEADER_FILE, "meta.json"):
        (tmp_path / "text" / name).write_text("{}")
        with pytest.raises(TextIndexDamaged):
            TantivyText(tmp_path / "text", "e1").corpus()
        assert TantivyText(tmp_path / "text", "e1").health().trouble


UPDATES = """
import sys
from pathlib import Path
from mdmem.index.segment import Row
from mdmem.index.tantivy_text import TantivyText
index = TantivyText(Path(sys.argv[1]), "e1")
number = 0
while True:
    number += 1
    index.update({1}, [Row(number * 10 + part, 1, (["same", f"turn{number}"], [], [], [])) for part in range(3)])
    print(number, flush=True)
"""


def test_a_kill_in_the_middle_of_a_commit_leaves_a_whole_generation(tmp_path: Path) -> None:
    index = fresh(tmp_path)
    index.update((), [Row(1, 1, (["same", "turn0"], [], [], []))])
    for turns in (1, 3, 4):
        worker = subprocess.Popen([sys.executable, "-c", UPDATES, str(tmp_path / "text")], stdout=subprocess.PIPE)
        assert worker.stdout is not None
        for _ in range(turns):
            worker.stdout.readline()
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        hits = TantivyText(tmp_path / "text", "e1").corpus().search([("same", 1.0)], None, 50).hits
        assert len(hits) == 3 and len({hit.window // 10 for hit in hits}) == 1
    index.update({1}, [Row(7, 1, (["same"], [], [], []))])
    assert [hit.window for hit in index.corpus().search([("same", 1.0)], None, 50).hits] == [7]


# -- as the engine of a store


def configured(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> Store:
    monkeypatch.setenv("MDMEM_INDEX_ENGINE", name)
    return Store.open(root, clock=FixedClock(datetime(2026, 11, 30, tzinfo=UTC)))


def fill(root: Path) -> None:
    rng = random.Random(4)
    for number in range(150):
        words = " ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 300)))
        write(root, f"memories/n{number}.md", words, id=f"mem-{number}", title=" ".join(rng.sample(WORDS, 3)), type="fact")
    write(root, "memories/zh.md", "我们用蓝绿方式部署计费服务。", id="mem-zh", title="部署", type="decision")


QUESTIONS = ["word3 word17 部署", "部署计费", "v1.2.3", "title word5 word60 word61", "c++ word1", "nothing-of-this-kind"]


def test_recall_gives_the_same_answers_with_either_engine(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(root)
    answers = []
    for name in ("whoosh", "tantivy"):
        store = configured(root, monkeypatch, name)
        store.index.refresh(embed_budget_s=None)
        found = [recall(store, Query(text, mode=mode, limit=10)) for text in QUESTIONS for mode in ("keyword", "hybrid")]
        found += [recall(store, Query("title:word5 OR word6*", query_syntax=True, mode="keyword", limit=10))]
        answers.append([[(hit.path, hit.score, hit.bm25, hit.share, hit.matched) for hit in a.results] for a in found])
        assert store.index.status()["engine"] == name
        assert store.index.verify() == []
    assert answers[0] == answers[1] and any(answers[0])


def rows_of(store: Store) -> list[tuple[int, str]]:
    return [(row["rowid"], row["path"]) for row in store.index.catalog.rows("SELECT rowid, path FROM notes ORDER BY rowid")]


def test_another_engine_builds_the_words_again_and_nothing_else(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(root)
    store = configured(root, monkeypatch, "whoosh")
    store.index.refresh(embed_budget_s=None)
    before = rows_of(store)
    store = configured(root, monkeypatch, "tantivy")
    assert found(store.index, "计费") == ["memories/zh.md"]
    assert not (store.index.state_dir / "text" / "segments.json").exists()
    write(root, "memories/later.md", "A walrus was seen.", id="mem-later")
    assert found(store.index, "walrus") == ["memories/later.md"]
    store = configured(root, monkeypatch, "whoosh")
    assert found(store.index, "walrus") == ["memories/later.md"]
    assert not (store.index.state_dir / "text" / HEADER_FILE).exists()
    assert rows_of(store)[:-1] == before


def test_without_the_extra_whoosh_answers_and_a_notice_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    write(root, "memories/a.md", "A walrus was seen.", id="mem-a")
    store = configured(root, monkeypatch, "tantivy")
    answer = recall(store, Query("walrus", mode="keyword"))
    assert [hit.path for hit in answer.results] == ["memories/a.md"]
    assert any("mdmem[tantivy]" in text for text in answer.notices)


@pytest.mark.parametrize("harm", ["meta.json", "a data file", "all but the header"])
def test_a_damaged_index_is_built_again(root: Path, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    fill(root)
    store = configured(root, monkeypatch, "tantivy")
    assert found(store.index, "计费")
    folder = store.index.state_dir / "text"
    if harm == "meta.json":
        (folder / "meta.json").write_bytes(b"\0" * 20)
    elif harm == "a data file":
        for path in folder.glob("*.idx"):
            data = path.read_bytes()
            path.unlink()  # this process has the file mapped: cut short in place, a look at it would end the process
            path.write_bytes(data[:10])
    else:
        header = (folder / HEADER_FILE).read_bytes()
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / HEADER_FILE).write_bytes(header)
    store = configured(root, monkeypatch, "tantivy")
    assert found(store.index, "计费") == ["memories/zh.md"]
    assert any("built again" in text for text in store.index.take_notices())
    assert store.index.verify() == []


def test_an_earlier_day_is_asked_with_tantivy_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(root)
    store = configured(root, monkeypatch, "tantivy")
    store.index.refresh(embed_budget_s=0.0)
    hidden = {row["rowid"] for row in store.index.catalog.rows("SELECT rowid FROM notes WHERE path LIKE '%1.md'")}
    whole, part = store.index.corpus(), store.index.text.corpus(hidden, [])
    assert part.count < whole.count
    assert not {hit.note for hit in part.search([("word3", 1.0)], None, 500).hits} & hidden


@pytest.mark.parametrize("harm", ["a byte", "the end", "all of it", "the file"])
def test_a_damaged_row_is_found_and_all_are_built_again(root: Path, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    fill(root)
    store = configured(root, monkeypatch, "tantivy")
    assert found(store.index, "计费")
    path = store.index.state_dir / "text" / "rows-1.bin"
    data = bytearray(path.read_bytes())
    if harm == "a byte":
        at = 0
        while at < len(data):  # a frequency in each row
            _, terms, more = struct.unpack_from("=III", data, at)
            data[at + 12 + 6 * terms] ^= 4
            at += 12 + 7 * terms + 7 * more
    path.unlink()
    if harm != "the file":
        path.write_bytes(data if harm == "a byte" else data[:-1] if harm == "the end" else b"")
    store = configured(root, monkeypatch, "tantivy")
    assert found(store.index, "计费") == ["memories/zh.md"]
    assert any("built again" in text for text in store.index.take_notices())
    assert store.index.verify() == []


def test_an_index_of_the_format_before_is_built_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(root)
    store = configured(root, monkeypatch, "tantivy")
    assert found(store.index, "计费")
    header = store.index.state_dir / "text" / HEADER_FILE
    header.write_text(header.read_text().replace('"format": 2', '"format": 1'))
    store = configured(root, monkeypatch, "tantivy")
    assert found(store.index, "计费") == ["memories/zh.md"]
    assert '"format": 2' in header.read_text()


def test_rows_of_notes_that_went_do_not_pile_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of rows only grows; once most of it is of notes that were rewritten, all go to a new one."""
    monkeypatch.setattr("mdmem.index.tantivy_text.SLACK", 0)
    fill(root)
    store = configured(root, monkeypatch, "tantivy")
    store.index.refresh(embed_budget_s=0.0)
    store.index.maintain()
    folder = store.index.state_dir / "text"
    assert [path.name for path in folder.glob("rows-*")] == ["rows-1.bin"]
    other = configured(root, monkeypatch, "tantivy")
    corpus = other.index.corpus()
    before = other.index.text.corpus().search([("word3", 1.0)], None, 50)
    for turn in range(3):
        rng = random.Random(turn)
        for number in range(100):
            write(root, f"memories/n{number}.md", " ".join(rng.choice(WORDS) for _ in range(90)), id=f"mem-{number}", title="t")
        store.index.refresh(embed_budget_s=0.0)
        store.index.maintain()
    names = [path.name for path in folder.glob("rows-*")]
    assert len(names) == 1 and names != ["rows-1.bin"]
    assert store.index.verify() == []
    assert corpus.search([("word3", 1.0)], None, 50) == before  # who has the old one open still reads it
    assert found(other.index, "计费") == ["memories/zh.md"]


def test_statistics_leave_out_what_was_deleted_and_not_yet_merged_away(tmp_path: Path) -> None:
    index = fresh(tmp_path)
    rng = random.Random(6)
    rows = [row(n, n, rng) for n in range(1, 120)]
    index.update((), rows)
    assert index.corpus().intact
    index.update({5, 6, 7}, ())
    corpus = index.corpus()
    assert not corpus.intact
    truth = Corpus([memory([one for one in rows if one.note not in (5, 6, 7)])])
    assert asked(corpus) == asked(truth) == asked(corpus)
