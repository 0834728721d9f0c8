"""The text index on real files: exact after any history, whole after a kill, readable during commits."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mdmem.index.score import Corpus
from mdmem.index.segment import Row, memory
from mdmem.index.text import MANIFEST, TextIndex, TextIndexDamaged, query_words

WORDS = [f"word{number}" for number in range(80)]


def row(window: int, note: int, rng: random.Random) -> Row:
    def some(most: int) -> list[str]:
        return [WORDS[min(int(rng.expovariate(0.06)), 79)] for _ in range(rng.randint(0, most))]

    return Row(window, note, (some(60), some(4), some(3), some(2)))


def fresh(tmp_path: Path) -> TextIndex:
    index = TextIndex(tmp_path / "text", "e1")
    index.create()
    return index


def asked(corpus: Corpus) -> list[object]:
    rng = random.Random(9)
    return [corpus.search([(word, 1.0) for word in rng.sample(WORDS, 4)], None, 15) for _ in range(15)]


def test_a_history_of_updates_and_deletions_equals_a_fresh_build(tmp_path: Path) -> None:
    rng = random.Random(2)
    index = fresh(tmp_path)
    kept: dict[int, list[Row]] = {}
    window = 0
    for turn in range(60):
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
        if turn == 40:
            index.optimize()
    assert len(index.segments()) < 12
    assert any(segment.dead for segment in index.segments())
    truth = Corpus([memory(sorted(r for rows in kept.values() for r in rows))])
    assert asked(index.corpus()) == asked(truth)
    assert asked(TextIndex(tmp_path / "text", "e1").corpus()) == asked(truth)
    assert index.optimize()
    assert len(index.segments()) == 1 and not index.segments()[0].dead
    assert asked(index.corpus()) == asked(truth)


def test_fresh_windows_and_hidden_notes_count_as_if_written(tmp_path: Path) -> None:
    rng = random.Random(3)
    old = [row(n, n, rng) for n in range(1, 200)]
    new = [row(500 + n, n, rng) for n in (3, 77, 900)]
    index = fresh(tmp_path)
    index.update((), old)
    overlaid = index.corpus({3, 77, 900}, new)
    truth = Corpus([memory([r for r in old if r.note not in (3, 77)] + new)])
    assert asked(overlaid) == asked(truth)


def test_query_text_is_literal() -> None:
    words = dict(query_words('foo AND (bar* OR "baz") -title:x ~2'))
    assert {"foo", "and", "bar", "or", "baz"} <= set(words)
    assert query_words("*") == [] and query_words('"" ( ) : ~') == []


def harm(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "delete":
        path.unlink()
    else:
        new = {"truncate": data[: len(data) // 2], "zero": bytes(len(data)), "empty": b""}.get(how)
        path.write_bytes(random.Random(1).randbytes(len(data)) if new is None else new)


@pytest.mark.parametrize("how", ["truncate", "zero", "empty", "garbage", "delete"])
def test_damage_to_any_file_is_reported_as_damage(tmp_path: Path, how: str) -> None:
    rng = random.Random(4)
    index = fresh(tmp_path)
    index.update((), [row(n, n, rng) for n in range(1, 60)])
    names = sorted(os.listdir(tmp_path / "text"))
    assert len(names) == 5
    for name in names:
        saved = (tmp_path / "text" / name).read_bytes()
        harm(tmp_path / "text" / name, how)
        with pytest.raises(TextIndexDamaged):
            reopened = TextIndex(tmp_path / "text", "e1")
            corpus = reopened.corpus()
            reopened.search(corpus, [(word, 1.0) for word in WORDS], None, 5)
            reopened.update({1}, [])  # only the writer reads the table of contents
        (tmp_path / "text" / name).write_bytes(saved)
        if name.startswith("_") or name == MANIFEST:
            continue
        TextIndex(tmp_path / "text", "e1").corpus()
    with pytest.raises(TextIndexDamaged):
        TextIndex(tmp_path / "text", "another catalog").corpus()


def test_i2_a_reader_during_commits_always_answers(tmp_path: Path) -> None:
    rng = random.Random(5)
    writer = fresh(tmp_path)
    writer.update((), [row(n, n, rng) for n in range(1, 30)])
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                reader = TextIndex(tmp_path / "text", "e1")
                assert reader.search(reader.corpus(), [("word0", 1.0)], None, 5).hits
            except BaseException as error:
                failures.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    for turn in range(60):
        writer.update({turn}, [row(100 + turn, 100 + turn, rng)], merge=turn % 5 == 0)
    done.set()
    for thread in readers:
        thread.join()
    assert not failures


LOOP = """
import sys, random
from pathlib import Path
from mdmem.index.text import TextIndex
from mdmem.index.segment import Row
index = TextIndex(Path(sys.argv[1]), "e1")
n = int(sys.argv[2])
print("ready", flush=True)
while True:
    n += 1
    index.update({n - 40}, [Row(n, n, (["same", f"w{n}"] * 50, [], [], []))], merge=n % 7 == 0)
    print(n, flush=True)
"""


def test_i4_a_kill_during_commit_leaves_the_generation_before(tmp_path: Path) -> None:
    index = fresh(tmp_path)
    last = 0
    rng = random.Random(6)
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", LOOP, str(tmp_path / "text"), str(last)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(rng.randint(1, 6)):
            last = int(process.stdout.readline())
        # Somewhere inside the following commit.
        for _ in range(rng.randint(0, 200_000)):
            pass
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().split()
        process.wait()
        last = int(rest[-1]) if rest else last
        reopened = TextIndex(tmp_path / "text", "e1")
        notes = {hit.note for hit in reopened.search(reopened.corpus(), [("same", 1.0)], None, 1000).hits}
        assert last in notes and last - 40 not in notes
        # Whatever the killed process had begun can be done again.
        index.update({last + 1}, [Row(last + 1, last + 1, (["same"], [], [], []))])
        last += 1
