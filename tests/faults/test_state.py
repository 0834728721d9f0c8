"""Every file of local state damaged in every way: commands and hooks go on, no note is touched, and nobody sees a traceback.

The short form damages all files at once in each way, and each file once; the long form (`--nightly`) each file in each way.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mdmem.repo.own import is_note
from mdmem.warm import address, client, starting
from tests.hooks.host import wait_until
from tests.injected import count
from tests.repo.conftest import plain_git

from .state_scene import FORGOTTEN, KINDS, MEMORY, TOLD, Machine, kind_of, settled

CODES = (0, 1, 3, 4, 5, 6)


# --- the ways ------------------------------------------------------------------------------------


def _write(path: Path, data: bytes) -> None:
    if path.is_socket():
        path.unlink()
        path.touch()
    path.chmod(0o600)
    path.write_bytes(data)


def truncated(path: Path) -> None:
    data = b"" if path.is_socket() else path.read_bytes()
    _write(path, data[: len(data) // 2])


def empty(path: Path) -> None:
    _write(path, b"")


def zeros(path: Path) -> None:
    _write(path, bytes(max(64, path.stat().st_size)))


def garbage(path: Path) -> None:
    _write(path, random.Random(path.name).randbytes(max(64, path.stat().st_size)))


def gone(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inner").write_text("x")


def link(path: Path) -> None:
    """A link to a file that is not ours and must stay as it is."""
    path.unlink()
    path.symlink_to(path.parents[len(path.parts) - 2] / "nowhere" / "at-all")


def _mangled(value: Any) -> Any:
    """Return JSON of the same outer shape whose leaves are of other types."""
    if isinstance(value, dict):
        return {key: _mangled(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_mangled(inner) for inner in value]
    return [None] if isinstance(value, (str, int, float)) else "x"


def other_types(path: Path) -> None:
    """What another version may have written: the same names, values of other types. Not JSON: another first byte."""
    data = b"" if path.is_socket() else path.read_bytes()
    try:
        lines = [json.dumps(_mangled(json.loads(line))) for line in ([data] if path.suffix == ".json" else data.splitlines())]
        _write(path, "\n".join(lines).encode())
    except ValueError:
        _write(path, b"\xff" + data[1:])


def other_shape(path: Path) -> None:
    """Valid JSON of another shape."""
    _write(path, b'[{"format": 99}, [], null, 7]\n')


def deep(path: Path) -> None:
    """JSON that a recursive reader cannot read."""
    _write(path, b"[" * 200_000)


WAYS: dict[str, Callable[[Path], None]] = {
    way.__name__.replace("_", " "): way
    for way in (truncated, empty, zeros, garbage, gone, folder, link, other_types, other_shape, deep)
}


# --- what must hold ------------------------------------------------------------------------------


def used(machine: Machine, capsys: pytest.CaptureFixture[str], where: str, short: bool = False) -> list[int]:
    """Use the store; returns the exit codes of remember, recall, sync and status (which are all, where it is to be short)."""
    fact = next(path for path, data in machine.notes().items() if b"Basel" in data).removeprefix("store/")
    lines = (
        ("remember", "fact", "the printer is on floor two"),
        ("recall", "deploys", "--keyword"),
        ("sync",),
        ("status",),
        ("list", "--scope", "local"),
        ("heartbeat", "--doing", "reading"),
        ("feedback", fact, "useful"),
        ("lease", "list"),
        ("task", "current"),
        ("sync-memories", str(machine.store)),
        ("doctor",),
    )
    codes = []
    for words in lines[:4] if short else lines:
        capsys.readouterr()
        code = machine.run(*words, "--json")
        told = capsys.readouterr()
        count("commands with damaged state")
        at = f"{where}: mdmem {' '.join(words)}: exit {code}\n{told.out}\n{told.err}"
        assert code in CODES and "unexpected" not in told.err + told.out and "Traceback" not in told.err, at
        answer = json.loads(told.out)
        if code == 0 and words[0] == "recall":
            assert any("Thursdays" in hit["title"] for hit in answer["results"]), at
        if code == 0 and words[0] == "remember":
            assert (machine.store / answer["path"]).is_file(), at
        codes.append(code)
    for event in ("SessionStart",) if short else ("SessionStart", "UserPromptSubmit"):
        done = machine.hook(event)
        assert done.returncode == 0, (where, event, done.stderr)
        assert done.stdout == "" or isinstance(json.loads(done.stdout), dict), (where, event, done.stdout)
    settled(machine)
    return codes[:4]


def nothing_lost(machine: Machine, before: dict[str, bytes], where: str) -> None:
    after = machine.notes()
    for path, data in before.items():
        if is_note(path) and "/claude/" not in path:  # its index is written anew by sync-memories
            assert after.get(path) == data, (where, path)
    plain_git(machine.store, "-c", f"safe.directory={machine.store}", "fsck", "--strict")


def damaged(machine: Machine, names: list[str], way: str, capsys: pytest.CaptureFixture[str], short: bool = False) -> None:
    """Damage files, use the store, look; a file whose damage is told is first put right by the command that is named."""
    before = machine.notes()
    for name in names:
        path = machine.state()[name]
        WAYS[way](path)
        count("files of local state damaged")
    where = f"{', '.join(names[:3])} {way}"
    codes = used(machine, capsys, where, short)
    nothing_lost(machine, before, where)
    if not machine.trusted():
        assert codes[0] == 1
        if (path := machine.data / "trusted.json").is_dir():
            assert machine.run("trust") == 1 and "trusted.json" in capsys.readouterr().err
            shutil.rmtree(path)
        assert machine.run("trust") == 0, (where, capsys.readouterr())
        assert used(machine, capsys, where + ", trusted again") == [0, 0, 0, 0]
        nothing_lost(machine, before, where)


def damageable(machine: Machine) -> list[str]:
    return [name for name in machine.state() if kind_of(name) != MEMORY]


def short_enough(machine: Machine) -> bool:
    """Return whether the warm process lives in the machine's runtime folder: a long name of it makes it go elsewhere."""
    return address.folder() == str(machine.runtime)


def test_every_kind_of_local_state_is_classified(machine: Machine) -> None:
    names = list(machine.state())
    unknown = [name for name in names if not kind_of(name)]
    assert unknown == [], "say in KINDS what it costs when these are damaged"
    expected = (r"git/catalog\.db", r"git/vectors/.*", r"git/text/.*", r"git/spool/.*", r"git/seen/.*", r"git/uncommitted")
    expected += (r"git/leases\.json", r"git/claims\.json", r"git/feedback\.json", r"git/heartbeats\.json", r"git/sync\.json")
    expected += (r"git/automemory/.*", r"data/trusted\.json", r"data/device", r"data/places\.json", r"data/llm\.json")
    if short_enough(machine):
        expected += (r"run/[0-9a-f]{8}\.sock", r"run/[0-9a-f]{8}\.lock")
    expected += (r"data/installed\.json", r"data/local/.*\.md", r"git/queue\.jsonl", r"git/last-look")
    for pattern in expected:
        assert any(re.fullmatch(pattern, name) for name in names), f"the scene makes no {pattern}"
    assert len({pattern for pattern, _, _ in KINDS}) == len(KINDS)


@pytest.mark.parametrize("way", WAYS)
def test_all_local_state_damaged_at_once(machine: Machine, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for name in damageable(machine) if kind_of(name) != TOLD]
    assert len(names) > 40
    damaged(machine, names, way, capsys)


@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_list_of_trusted_stores_is_told_and_trust_puts_it_right(
    machine: Machine, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged(machine, ["data/trusted.json"], way, capsys)


def test_each_file_of_what_a_device_noted_damaged_once(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    ways = list(WAYS)
    names = [name for name in damageable(machine) if kind_of(name) == FORGOTTEN]
    assert len(names) > 10
    for number, name in enumerate(names):
        machine.reset()
        damaged(machine, [name], ways[number % len(ways)], capsys, short=True)


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("way", WAYS)
def test_each_file_of_local_state_damaged_in_each_way(machine: Machine, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = damageable(machine)
    wrong = []
    for name in names:
        machine.reset()
        try:
            damaged(machine, [name], way, capsys)
        except (AssertionError, AttributeError, KeyError, ValueError) as error:
            wrong.append(f"{name}: {error}")
    with capsys.disabled():
        print(f"\n{way}: {len(names)} files damaged in turn", end=" ")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(names)} went wrong", *wrong])


@pytest.mark.parametrize("way", WAYS)
def test_the_warm_process_is_had_again_whatever_became_of_its_files(
    machine: Machine, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not short_enough(machine):
        pytest.skip("the temporary folder's name is too long for the address of a socket")
    monkeypatch.setenv("MDMEM_SERVE", "auto")
    monkeypatch.setattr(client, "GREETING", 2.0)
    names = [name for name in machine.state() if name.startswith("run/")]
    assert len(names) == 2
    for name in names:
        WAYS[way](machine.state()[name])
        count("files of the warm process damaged")
    assert client.ask({"op": "status"}) is None
    assert machine.run("recall", "deploys", "--keyword", "--json") == 0
    assert starting.start()
    try:
        wait_until(lambda: client.ask({"op": "status"}) is not None, 30)
        assert not starting.start()
    finally:
        client.ask({"op": "stop"})


# --- locks ---------------------------------------------------------------------------------------


def test_i29_a_lock_file_of_a_dead_process_or_with_a_recycled_id_holds_nobody_up(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    before = machine.notes()
    for name, path in machine.state().items():
        if ".lock" in name:
            path.write_text(str(os.getpid()))  # a process that lives, and is another one
    (machine.git_state / "worker.lock").write_text("1")
    assert used(machine, capsys, "lock files with a recycled id") == [0, 0, 0, 0]
    nothing_lost(machine, before, "lock files with a recycled id")


def test_i29_leftovers_of_a_process_with_our_id_are_in_nobodys_way(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    before, number = machine.notes(), os.getpid()
    for name, path in list(machine.state().items()):
        if kind_of(name) == MEMORY or ".lock" in name:
            continue
        for left in (path.with_name(f".{path.name}.{number}"), path.with_name(f"{path.name}.{number}")):
            left.write_text("left by a process that was killed")
    assert used(machine, capsys, "leftovers") == [0, 0, 0, 0]
    nothing_lost(machine, before, "leftovers")


HOLDER = """
import fcntl, os, sys
for name in sys.argv[1:]:
    fcntl.flock(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.name == "nt", reason="needs flock")
def test_locks_held_by_a_living_process_are_a_clear_answer_and_free_when_it_dies(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    before = machine.notes()
    locked = [str(path) for name, path in machine.state().items() if name.endswith(".lock") or name.endswith("/lock")]
    assert len(locked) > 8
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, *locked], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        codes = used(machine, capsys, "all locks held")
        assert codes[0] == 5 and codes[1] == 0 and codes[3] == 0, codes
        nothing_lost(machine, before, "all locks held")
    finally:
        holder.kill()
        holder.communicate()
    assert used(machine, capsys, "the holder died") == [0, 0, 0, 0]
    nothing_lost(machine, before, "the holder died")
