"""The table of windows and their vectors: the same after every change as read anew, and never read anew for one."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdmem.index.catalog import Catalog
from mdmem.index.vectors import Vectors
from mdmem.index.window_table import WindowTable, marked

DIMS = 8


def digest(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def add(connection: sqlite3.Connection, note: int, number: int) -> None:
    connection.execute(
        "INSERT INTO windows (note, ord, heading, text, start_line, end_line, hash, wide) VALUES (?, 0, '', '', 1, 1, ?, ?)",
        (note, digest(number), number % 3 == 0),
    )


def embed(stored: Vectors, numbers: list[int]) -> None:
    rows = np.random.default_rng(1).standard_normal((len(numbers), DIMS)).astype(np.float32)
    stored.add([digest(number) for number in numbers], rows / np.linalg.norm(rows, axis=1, keepdims=True))


def columns(table: WindowTable) -> list[Any]:
    return [column.tolist() for column in (table.rowids, table.notes, table.rows, table.wide)] + [table.lacking]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_followed_is_what_is_read_anew(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    catalog = Catalog.create(tmp_path / "catalog.db", {})
    stored = Vectors(tmp_path / "vectors", "m", DIMS)
    table, number = WindowTable(), 0
    for step in range(25):
        with catalog.writing() as connection:
            for _ in range(rng.randint(0, 4)):
                number += 1
                add(connection, rng.randint(1, 9), number)
            if rng.random() < 0.5:
                connection.execute("DELETE FROM windows WHERE note = ?", (rng.randint(1, 9),))
            if rng.random() < 0.1:
                connection.execute("DELETE FROM windows")
        if rng.random() < 0.6:
            embed(stored, rng.sample(range(1, number + 2), min(number, 3)))
        if rng.random() < 0.1:
            stored.compact([digest(one) for one in range(1, number, 2)])
        table.follow(catalog, stored)
        anew = WindowTable()
        anew.follow(catalog, stored)
        assert columns(table) == columns(anew), step


def test_of_one_new_note_one_row_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog.create(tmp_path / "catalog.db", {})
    stored = Vectors(tmp_path / "vectors", "m", DIMS)
    with catalog.writing() as connection:
        for number in range(300):
            add(connection, number, number)
    embed(stored, list(range(300)))
    table = WindowTable()
    table.follow(catalog, stored)
    with catalog.writing() as connection:
        connection.execute("DELETE FROM windows WHERE note = 7")
        add(connection, 7, 1000)
    asked: list[int] = []
    look_up = Vectors.rows_of
    monkeypatch.setattr(Vectors, "rows_of", lambda self, hashes: (asked.append(len(hashes)), look_up(self, hashes))[1])
    table.follow(catalog, stored)
    assert asked == [1] and table.lacking == {301: digest(1000)}
    assert len(table.rowids) == 300 and 7 not in table.notes[:-1].tolist()


def test_marked_gives_each_number_once() -> None:
    assert marked(np.array([5, 1, 5, 3]), 9).tolist() == [1, 3, 5]
