"""Damage, kills and crowds: every part of the state may be lost or broken, and two processes may write at once."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from notes_at_hand import found, write

from mdmem.index import catalog as catalog_module
from mdmem.store import Store

Opened = Callable[[], Store]


def test_i21_a_passing_fault_is_retried_and_the_catalog_stays(
    root: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "a.md", "walrus")
    index = opened().index
    index.refresh(embed_budget_s=None)
    epoch = index.catalog.meta("epoch")
    inode = os.stat(index.catalog.path).st_ino
    real = catalog_module.connect
    failures = [sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_CANTOPEN]

    def flaky(path: str) -> sqlite3.Connection:
        if failures:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = failures.pop()
            raise error
        return real(path)

    monkeypatch.setattr(catalog_module, "connect", flaky)
    monkeypatch.setattr(catalog_module, "pause", lambda attempt: None)
    again = opened().index
    assert found(again, "walrus") == ["a.md"]
    assert not failures
    assert again.catalog.meta("epoch") == epoch and os.stat(again.catalog.path).st_ino == inode
    failures.extend([sqlite3.SQLITE_IOERR_READ] * 50)
    with pytest.raises(catalog_module.CatalogBusy):
        opened().index.refresh(embed_budget_s=0.0)
    assert os.stat(again.catalog.path).st_ino == inode


def state_files(store: Store) -> list[Path]:
    return sorted(path for path in store.state_dir.rglob("*") if path.is_file() and not path.name.endswith((".lock", ".queue")))


@pytest.mark.parametrize("how", ["truncate", "zero", "empty", "garbage", "delete"])
def test_i38_damage_to_any_file_of_the_state_is_rebuilt_and_answered(root: Path, opened: Opened, how: str) -> None:
    for number in range(12):
        write(root, f"n{number}.md", f"walrus number{number} " + "words " * 40, title=f"Note {number}")
    store = opened()
    store.index.refresh(embed_budget_s=None)
    store.index.maintain(thorough=True)
    store.index.catalog.close()
    names = [path.relative_to(store.state_dir) for path in state_files(store)]
    assert len(names) >= 7
    for name in names:
        target = store.state_dir / name
        if not target.exists():
            candidates = [path for path in target.parent.glob("*") if path.suffix == target.suffix]
            if not candidates:
                continue  # another generation: nothing of this name is there to harm
            target = candidates[0]
        data = target.read_bytes()
        if how == "delete":
            target.unlink()
        else:
            new = {"truncate": data[: len(data) // 2], "zero": bytes(len(data)), "empty": b""}.get(how)
            target.write_bytes(os.urandom(len(data)) if new is None else new)
        index = opened().index
        assert len(found(index, "walrus")) == 12, name
        index.refresh(embed_budget_s=None)
        assert len(index.vector_search("walrus number3", None, 20)) == 12, name
        index.maintain(thorough=True)
        assert index.verify() == [], name
        index.catalog.close()


def test_a_header_of_another_version_rebuilds(root: Path, opened: Opened) -> None:
    write(root, "a.md", "walrus")
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    index.catalog.put_meta("header", '{"format": 0}')
    index.catalog.close()
    again = opened().index
    out = again.refresh(embed_budget_s=0.0)
    assert out.added == 1 and any("version" in text for text in out.notices)
    assert found(again, "walrus") == ["a.md"]


def test_without_rebuilding_a_damaged_text_index_gives_what_there_is(root: Path, opened: Opened) -> None:
    write(root, "a.md", "walrus")
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    index.maintain(thorough=True)
    (index.state_dir / "text" / "segments.json").write_text("{}")
    hasty = opened().index
    hasty.rebuilds = False
    assert hasty.text_hits("walrus").hits == [] and hasty.take_notices()
    assert found(opened().index, "walrus") == ["a.md"]


WRITER = """
import sys
from pathlib import Path
from mdmem.store import Store
root, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store = Store.open(root)
for n in range(count):
    (root / f"{name}-{n}.md").write_text(f"walrus {name} unique{name}{n}\\n")
    store.index.refresh(embed_budget_s=0.0, wait_s=30.0)
    assert store.index.text_search(f"unique{name}{n}"), n
"""


def run(code: str, *args: str) -> subprocess.Popen[str]:
    environment = dict(os.environ, MDMEM_EMBEDDING_BACKEND="off")
    return subprocess.Popen([sys.executable, "-c", code, *args], env=environment, stderr=subprocess.PIPE, text=True)


def test_i20_i23_two_processes_write_at_once_and_both_succeed(root: Path, opened: Opened) -> None:
    both = [run(WRITER, str(root), name, "20") for name in ("x", "y")]
    errors = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    index = opened().index
    assert len(found(index, "walrus", 200)) == 40
    index.maintain(thorough=True)
    assert index.verify() == []


def test_i4_i18_a_kill_at_any_moment_is_noticed_by_the_next_refresh(root: Path, opened: Opened) -> None:
    for number in range(150):
        write(root, f"n{number}.md", f"walrus number{number} " + "filler " * 60)
    code = "import sys\nfrom pathlib import Path\nfrom mdmem.store import Store\n"
    code += "store = Store.open(Path(sys.argv[1]))\nstore.index.refresh(embed_budget_s=0.0)\n"
    code += "store.index.maintain(thorough=True)\n"
    rng = random.Random(8)
    for turn in range(5):
        process = run(code, str(root))
        try:
            process.wait(timeout=0.15 + rng.random() * 1.0)
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        write(root, f"n{turn}.md", f"walrus changed{turn}")
        (root / f"n{100 + turn}.md").unlink()
    index = opened().index
    assert len(found(index, "walrus", 500)) == 145
    index.refresh(embed_budget_s=None)
    index.maintain(thorough=True)
    assert index.verify() == []


def test_a_full_disk_leaves_the_search_working(root: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a.md", "walrus")
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    write(root, "b.md", "penguin")
    from mdmem.index import fold_in

    def full(*_: object, **__: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fold_in, "fold_in", full)
    out = index.refresh(embed_budget_s=0.0)
    assert out.busy and any("No space left" in text for text in out.notices)
    assert index.text_search("walrus") and not index.text_search("penguin")
    monkeypatch.undo()


def test_a_repository_that_cannot_be_written_to_is_indexed_elsewhere(root: Path, opened: Opened, tmp_path: Path) -> None:
    write(root, "a.md", "walrus")
    store = opened()
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    store.state_dir = blocker / "mdmem"
    assert found(store.index, "walrus") == ["a.md"]
    assert store.data_dir in store.index.state_dir.parents


LIGHT = """
import sys
from pathlib import Path
from mdmem.store import Store
store = Store.open(Path(sys.argv[1]))
store.index.refresh(embed_budget_s=0.0)
assert store.index.text_hits("walrus").hits
heavy = {"numpy", "yaml", "whoosh.index", "whoosh.qparser", "onnxruntime", "tokenizers", "git", "click", "mdmem.index.dense"}
print(sorted(heavy & set(sys.modules)))
"""


def test_a_search_by_words_loads_neither_engine_nor_model(root: Path, opened: Opened) -> None:
    write(root, "a.md", "walrus", title="A")
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    index.maintain(thorough=True)
    done = subprocess.run([sys.executable, "-c", LIGHT, str(root)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    done = subprocess.run(
        [sys.executable, "-c", "import sys, mdmem.index.catalog; print('mdmem.notes' in sys.modules or 'yaml' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "False"


def test_postings_that_do_not_hold_what_was_written_are_a_finding_and_mended(root: Path, opened: Opened) -> None:
    for number in range(12):
        write(root, f"n{number}.md", f"walrus number{number}")
    store = opened()
    store.index.refresh(embed_budget_s=None)
    store.index.maintain(thorough=True)
    store.index.catalog.close()
    (postings,) = [path for path in state_files(store) if path.suffix == ".pst"]
    data = bytearray(postings.read_bytes())
    data[len(data) // 2] ^= 0x55
    postings.write_bytes(data)
    index = opened().index
    assert [line for line in index.verify() if "does not hold what was written" in line]
    assert len(found(index, "walrus", 50)) == 12
