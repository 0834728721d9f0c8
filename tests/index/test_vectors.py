"""The vector store: exact, in a stable order, whole after a kill, and honest about damage."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mdmem.index import vectors as module
from mdmem.index.vectors import Vectors, VectorsDamaged

DIMS = 24


def names(count: int, start: int = 0) -> list[str]:
    return [hashlib.sha256(str(number).encode()).hexdigest() for number in range(start, start + count)]


def units(count: int, seed: int = 0, dims: int = DIMS) -> np.ndarray:
    matrix = np.random.default_rng(seed).standard_normal((count, dims)).astype(np.float32)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def filled(folder: Path, count: int = 50, fingerprint: str = "m1") -> Vectors:
    store = Vectors(folder, fingerprint, DIMS)
    store.add(names(count), units(count))
    return store


def test_search_is_exact_and_filter_comes_before_the_cut(tmp_path: Path) -> None:
    store = filled(tmp_path, 500)
    query = units(1, seed=9)[0]
    full = units(500) @ query
    assert [hit.row for hit in store.search(query, None, 7)] == list(np.argsort(-full)[:7])
    worst = np.argsort(full)[:3]
    found = store.search(query, worst, 10)
    assert [hit.row for hit in found] == list(worst[::-1])
    assert found[0].hash == names(500)[worst[2]][:32]
    assert len(store.search(query, np.array([4, 4, -1, 10_000]), 5)) == 1
    assert store.search(query, np.array([], np.int64), 5) == []


def test_order_of_rows_does_not_move_a_digit(tmp_path: Path) -> None:
    count = 203
    matrix, keys = units(count), names(count)
    matrix[100] = matrix[7]  # a tie
    order = np.random.default_rng(3).permutation(count)
    one = Vectors(tmp_path / "a", "m", DIMS)
    one.add(keys, matrix)
    two = Vectors(tmp_path / "b", "m", DIMS)
    for part in np.array_split(order, 7):
        two.add([keys[i] for i in part], matrix[part])
    query = matrix[7]
    pick = lambda store: [(hit.hash, hit.cosine) for hit in store.search(query, None, 20)]  # noqa: E731
    assert pick(one) == pick(two)
    assert {hit[0] for hit in pick(one)[:2]} == {keys[7][:32], keys[100][:32]}


def test_equal_texts_far_apart_are_told_apart_by_hash_only(tmp_path: Path) -> None:
    """The product of a matrix and a vector rounds differently at the end of a block; the order must not show it."""
    matrix = units(1003, dims=384)
    same = np.flatnonzero(np.arange(1003) % 9 == 4)
    matrix[same] = matrix[4]
    store = Vectors(tmp_path, "m", 384)
    store.add(names(1003), matrix)
    first = sorted(names(1003)[row] for row in same)
    for limit in (1, 2, 5):
        assert [hit.hash for hit in store.search(matrix[4], None, limit)] == [name[:32] for name in first[:limit]]


def test_a_hash_is_stored_once(tmp_path: Path) -> None:
    store = filled(tmp_path, 10)
    assert store.add([*names(3), *names(2, 10), *names(1, 10)], units(6, seed=5)) == 2
    assert store.has(names(13)) == [True] * 12 + [False]
    assert list(store.rows_of(names(2, 11))) == [11, -1]
    assert np.array_equal(store.get(np.array([0, 9])), units(10)[[0, 9]])


def test_i12_another_model_or_length_starts_again(tmp_path: Path) -> None:
    filled(tmp_path)
    for fingerprint, dims in (("m1", 48), ("m1", DIMS), ("m2", DIMS)):
        store = Vectors(tmp_path, fingerprint, dims)
        assert len(store) == 0 and not any(store.has(names(50)))
        store.add(names(4), units(4, dims=dims))
        assert len(Vectors(tmp_path, fingerprint, dims)) == 4
    assert len(list(tmp_path.iterdir())) == 3  # nothing of the old ones is left behind


def test_looking_with_another_model_deletes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    assert len(Vectors(tmp_path, "m2", DIMS)) == 0
    assert len(Vectors(tmp_path, "m1", DIMS)) == 50


def test_i32_single_row_has_a_finite_score(tmp_path: Path) -> None:
    store = filled(tmp_path, 1)
    (hit,) = store.search(units(1)[0], None, 5)
    assert np.isclose(hit.cosine, 1)
    assert Vectors(tmp_path / "none", "m", DIMS).search(units(1)[0], None, 5) == []


def test_reader_sees_what_another_process_added_and_survives_a_compaction(tmp_path: Path) -> None:
    writer, reader = filled(tmp_path), Vectors(tmp_path, "m1", DIMS)
    writer.add(names(5, 50), units(5, seed=1))
    assert len(reader) == 50 and reader.refresh() and len(reader) == 55 and not reader.refresh()
    assert writer.compact(names(20, 10)) == 35
    assert len(reader.search(units(1)[0], None, 3)) == 3  # the old map still serves
    assert reader.refresh() and len(reader) == 20 and reader.verify() == 20
    assert np.array_equal(reader.get(reader.rows_of(names(20, 10))), units(50)[10:30])
    writer.clear()
    assert reader.refresh() and len(reader) == 0


def test_only_unit_vectors_and_real_hashes_enter(tmp_path: Path) -> None:
    store = Vectors(tmp_path, "m", DIMS)
    for keys, matrix in (
        (names(1), units(1) * 2),
        (names(1), np.full((1, DIMS), np.nan)),
        (names(2), units(1)),
        (["abcd"], units(1)),
        (["z" * 32], units(1)),
    ):
        with pytest.raises(ValueError):
            store.add(keys, matrix)
    assert len(store) == 0


class Killed(BaseException):
    pass


def test_i18_a_writer_that_dies_at_any_step_leaves_whole_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write, sync and replace of add, clear and compact is the last one once; half of the bytes reach the file."""
    real = module._write_at
    finished = False
    for step in range(40):
        folder = tmp_path / str(step)
        store = filled(folder, 8)
        calls = 0

        def dying(path: Path, offset: int, data: bytes, last: int = step) -> None:
            nonlocal calls
            if calls == last:
                real(path, offset, data[: len(data) // 2])
                raise Killed
            calls += 1
            real(path, offset, data)

        monkeypatch.setattr(module, "_write_at", dying)
        try:
            store.add(names(5, 8), units(5, seed=2))
            store.compact(names(11, 2))
            store.clear()
            finished = True
        except Killed:
            pass
        monkeypatch.setattr(module, "_write_at", real)
        again = Vectors(folder, "m1", DIMS)
        again.verify()
        expected = dict(zip(names(13), np.vstack([units(8), units(5, seed=2)])))
        for name, stored in zip(names(13), again.has(names(13)), strict=True):
            if stored:
                assert np.array_equal(again.get(again.rows_of([name]))[0], expected[name])
        again.add(names(13), np.vstack([units(8), units(5, seed=2)]))
        assert all(again.has(names(13))) and again.verify() >= 13
        if finished:
            break
    assert finished and step > 4


WRITER = """
import sys; from pathlib import Path; import numpy as np
from tests.index.test_vectors import names, units, DIMS
from mdmem.index.vectors import Vectors
store = Vectors(Path(sys.argv[1]), "m1", DIMS)
start = len(store)
while True:
    store.add(names(40, start), units(40, seed=start))
    start += 40
    print(start, flush=True)
"""


def test_i18_sigkill_keeps_every_acknowledged_row(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
        )
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(4)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        store = Vectors(tmp_path, "m1", DIMS)
        assert store.verify() >= max(int(line) for line in said if line.endswith("\n"))


def corrupt(path: Path, offset: int, length: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset : offset + length] = bytes(byte ^ 0x5A for byte in data[offset : offset + length])
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("suffix", ["json", "bin", "f32"])
def test_damage_of_any_byte_range_is_found(tmp_path: Path, suffix: str) -> None:
    filled(tmp_path)
    (path,) = tmp_path.glob(f"*.{suffix}")
    whole = path.read_bytes()
    for offset in range(0, len(whole), max(1, len(whole) // 97)):
        corrupt(path, offset, 3)
        with pytest.raises(VectorsDamaged):
            Vectors(tmp_path, "m1", DIMS).verify()
        path.write_bytes(whole)
    assert Vectors(tmp_path, "m1", DIMS).verify() == 50


@pytest.mark.parametrize("limit", [1, 5, 50])
@pytest.mark.parametrize("hole", [np.full(DIMS, np.nan), units(1)[0] * 3, -units(1)[0], units(1)[0]])
def test_search_never_returns_a_damaged_row(tmp_path: Path, hole: np.ndarray, limit: int) -> None:
    """Whatever took a row's place while the store was open: not a number, too long, or another text's vector."""
    filled(tmp_path)
    (path,) = tmp_path.glob("*.f32")
    store = Vectors(tmp_path, "m1", DIMS)
    with open(path, "r+b") as stream:
        stream.seek(7 * DIMS * 4)
        stream.write(hole.astype("<f4").tobytes())
    try:
        assert 7 not in [hit.row for hit in store.search(units(1)[0], None, limit)]
        assert limit == 1 or (limit < 50 and hole @ units(1)[0] < 0)  # only a lower score stays unseen
    except VectorsDamaged:
        pass
    with pytest.raises(VectorsDamaged):
        store.verify()
    store.clear()
    assert store.add(names(50), units(50)) == 50 and store.verify() == 50


def test_cut_or_missing_files_are_damage_and_a_refused_read_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path)
    (rows,) = tmp_path.glob("*.f32")
    whole = rows.read_bytes()
    rows.write_bytes(whole[:-1])
    with pytest.raises(VectorsDamaged) as caught:
        Vectors(tmp_path, "m1", DIMS)
    assert caught.value.code == "vectors_damaged"
    rows.unlink()
    with pytest.raises(VectorsDamaged):
        Vectors(tmp_path, "m1", DIMS)
    rows.write_bytes(whole)

    def refused(path: Path) -> bytes:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(VectorsDamaged) as caught:
        Vectors(tmp_path, "m1", DIMS)
    assert caught.value.code == "vectors_unreadable"


def test_hashes_that_share_their_first_half_are_told_apart(tmp_path: Path) -> None:
    store = Vectors(tmp_path, "m", DIMS)
    keys = [f"{'ab' * 8}{tail}" for tail in ("00" * 8, "07" * 8, "ff" * 8)] + names(20) + ["ff" * 16]
    store.add(keys, units(len(keys)))
    other = f"{'ab' * 8}{'08' * 8}"
    assert store.rows_of([*reversed(keys), other, "ff" * 8 + "00" * 8]).tolist() == [*reversed(range(len(keys))), -1, -1]
    assert store.has([other, keys[1]]) == [False, True]
    assert Vectors(tmp_path / "none", "m", DIMS).has([other]) == [False]
    assert store.compact([keys[2], keys[0]]) == len(keys) - 2
    assert store.rows_of([keys[0], keys[1], keys[2]]).tolist() == [0, -1, 1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_at_rest_the_matrix_takes_no_memory_and_is_found_again(tmp_path: Path) -> None:
    store = Vectors(tmp_path, "m", 384)
    store.add(names(4000), units(4000, dims=384))
    query = units(1, seed=9, dims=384)[0]

    def held() -> int:
        """Return the kilobytes of the matrix in this process."""
        part = Path("/proc/self/smaps").read_text().split(".f32\n")[1]
        return int(part.split("Rss:")[1].split()[0])

    before = store.search(query, None, 20)
    assert held() > 5000
    store.rest()
    assert held() == 0
    assert store.search(query, None, 20) == before


def test_a_sieve_of_bytes_gives_what_a_search_through_all_rows_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that searches a large matrix again and again holds a quarter of it; no hit and no digit may change by that."""
    monkeypatch.setattr(module, "LARGE", 0)
    rng = np.random.default_rng(11)
    matrix = units(1500, seed=2)
    matrix[300:340] = matrix[300] + rng.standard_normal((40, DIMS)).astype(np.float32) * 1e-4  # closer than bytes can tell
    matrix[700:720] = matrix[5]  # ties
    matrix[900] = 0
    matrix[900, 3] = 1  # all in one number
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    store = Vectors(tmp_path, "m", DIMS)
    some, few = rng.choice(1500, 900, replace=False), rng.choice(1500, 60, replace=False)
    queries = [*units(6, seed=4), matrix[300], matrix[5], matrix[900], 3 * matrix[310]]

    def agree(count: int) -> None:
        for query in queries[:-1]:
            for allowed in (None, some, few, np.array([300, 301, 320, 330, 5])):
                for limit in (1, 10, 200):
                    plain = Vectors(tmp_path, "m", DIMS)
                    assert store.search(query, allowed, limit) == plain.search(query, allowed, limit)
                    assert plain._sieve is None
        assert store._sieve is not None and len(store._sieve) == count

    for start, end in ((0, 700), (700, 1100), (1100, 1500)):  # within a block, and over its end
        store.add(names(end - start, start), matrix[start:end])
        agree(end)
    wanted = np.array([3, 1499, 512])
    assert store.get(wanted[:0]).shape == (0, DIMS)
    assert (store.get(wanted) == Vectors(tmp_path, "m", DIMS).get(wanted)).all()
    # Few rows are left of the 1,500, or it would be no sieve.
    read: list[int] = []
    taken = store.get
    monkeypatch.setattr(store, "get", lambda rows: read.append(len(rows)) or taken(rows))
    store.search(queries[0], None, 10)
    assert read[0] < 40
    with pytest.raises(VectorsDamaged):
        store.search(queries[-1], None, 10)  # longer than 1: no cosines
    store.compact(names(1500)[::2])
    agree(len(store))


def test_damage_behind_a_sieve_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGE", 0)
    store = filled(tmp_path, 600)
    query = units(600)[77]
    for _ in range(4):
        assert store.search(query, None, 3)[0].row == 77
    path = next(tmp_path.glob("rows-*"))
    data = bytearray(path.read_bytes())
    data[77 * 4 * DIMS + 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(VectorsDamaged):
        store.search(query, None, 3)
    path.write_bytes(data[: 70 * 4 * DIMS])
    with pytest.raises(VectorsDamaged):
        store.search(query, None, 3)
    data[50 * 4 * DIMS : 51 * 4 * DIMS] = np.full(DIMS, np.nan, np.float32).tobytes()
    path.write_bytes(data)
    other = Vectors(tmp_path, "m1", DIMS)
    for _ in range(4):
        with pytest.raises(VectorsDamaged):
            other.search(units(600)[3], None, 5)
