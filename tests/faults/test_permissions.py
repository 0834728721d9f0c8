"""State, store and notes become unreadable or read-only under way: commands are run as a user for whom permissions count."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.another_user import NOBODY, become_nobody, in_child, is_root
from tests.repo.conftest import plain_git

from .state_scene import MEMORY, TOLD, Machine, copied, kind_of
from .test_state import CODES, nothing_lost


@pytest.fixture
def nobody(machine: Machine) -> Iterator[Machine]:
    """The machine as one of the user nobody, in a place that nobody can reach."""
    import tempfile

    if not is_root():
        pytest.skip("only root can run a process as another user")
    place = Path(tempfile.mkdtemp(prefix="mdmem-nobody-", dir="/tmp"))
    try:
        place.chmod(0o755)
        there = Machine(place)
        shutil.copytree(machine.root / "kept", there.world, symlinks=True, copy_function=copied)
        plain_git(there.store, "remote", "set-url", "origin", str(there.world / "remote.git"))
        for path in (there.world, *there.world.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        code, told = forked(there, "trust")
        assert code == 0, told
        yield there
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", str(place)], check=False)
        shutil.rmtree(place, ignore_errors=True)


def forked(machine: Machine, *args: str) -> tuple[int, str]:
    """Run a command in a child of this process that has become nobody; returns (exit code, stdout and stderr)."""

    def work() -> tuple[int, str]:
        code, told = 99, io.StringIO()
        os.environ.update({**machine.environ(), "MDMEM_EMBEDDING_BACKEND": "off"})
        try:
            with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
                code = machine.run(*args)
        except BaseException as error:
            told.write(repr(error))
        return code, told.getvalue()

    code, told = in_child(become_nobody, work)
    return code, told


def as_nobody(machine: Machine, *args: str, codes: tuple[int, ...] = CODES) -> str:
    """Run a command as nobody; returns what it printed, and fails on a traceback or on any other code."""
    code, told = forked(machine, *args)
    assert code in codes and "Traceback" not in told and "unexpected" not in told, (args, code, told)
    return told


def found(machine: Machine) -> None:
    """A search finds the note, or says that the catalog cannot be read: a healthy one is never thrown away for that."""
    told = as_nobody(machine, "recall", "deploys", "--keyword", codes=(0, 5))
    assert "Thursdays" in told or "the catalog cannot be read" in told, told


def test_state_that_cannot_be_read_or_written_costs_no_note(nobody: Machine) -> None:
    before = nobody.notes()
    for name, path in nobody.state().items():
        if kind_of(name) not in (MEMORY, TOLD):
            path.chmod(0)
    as_nobody(nobody, "remember", "fact", "the printer is on floor two")
    found(nobody)
    as_nobody(nobody, "sync")
    as_nobody(nobody, "status", codes=(0, 5))
    nothing_lost(nobody, before, "unreadable state")
    for path in nobody.state().values():
        path.chmod(0o600)
    assert "Thursdays" in as_nobody(nobody, "recall", "deploys", "--keyword", codes=(0,))
    as_nobody(nobody, "sync", codes=(0,))
    assert plain_git(nobody.store, "-c", f"safe.directory={nobody.store}", "status", "--porcelain") == ""


def test_a_store_that_becomes_read_only_under_way_is_read_and_nothing_is_lost(nobody: Machine) -> None:
    before = nobody.notes()
    for path in (nobody.store, *nobody.store.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    as_nobody(nobody, "remember", "fact", "the printer is on floor two", codes=(1, 5, 6))
    found(nobody)
    as_nobody(nobody, "sync")
    as_nobody(nobody, "status", codes=(0, 5))
    nothing_lost(nobody, before, "a read-only store")
    subprocess.run(["chmod", "-R", "u+w", str(nobody.store)], check=True)
    as_nobody(nobody, "remember", "fact", "the printer is on floor two", codes=(0,))
    as_nobody(nobody, "sync", codes=(0,))
    assert plain_git(nobody.store, "-c", f"safe.directory={nobody.store}", "status", "--porcelain") == ""


def test_i25_notes_that_become_unreadable_are_named_and_never_taken_for_deleted(nobody: Machine) -> None:
    before = nobody.notes()
    as_nobody(nobody, "list", codes=(0,))
    (nobody.store / "memories").chmod(0)
    synced = as_nobody(nobody, "sync")
    assert "memories" in as_nobody(nobody, "recall", "deploys", "--keyword")
    (nobody.store / "memories").chmod(0o755)
    assert as_nobody(nobody, "sync", codes=(0,)), synced
    nothing_lost(nobody, before, "an unreadable folder")
    git = ("-c", f"safe.directory={nobody.store}")
    assert plain_git(nobody.store, *git, "status", "--porcelain") == ""
    listed = plain_git(nobody.store, *git, "ls-files", "memories")
    assert all(path.removeprefix("store/") in listed for path in before if path.startswith("store/memories/"))
