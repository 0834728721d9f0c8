"""What an outsider tries on the real command line: a repository that came as an archive with its own `.git`, state folders that
are links, files that are pipes, names that git takes for options or patterns, and texts that no editor writes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mdmem.cli.main import run
from tests.hooks.host import SAMPLES, payload, run_hook
from tests.injected import count
from tests.repo.conftest import plain_git

from .hostile import Trap
from .test_hostile import READING

ROOT = Path(__file__).resolve().parents[2]
Capsys = pytest.CaptureFixture[str]


def mdmem(top: Path, *words: str, capsys: Capsys, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command in this process; returns what it printed. Fails on another exit code and on a traceback."""
    capsys.readouterr()
    count("probes of an outsider")
    code = run(["-C", str(top), *words])
    told = capsys.readouterr()
    assert code in codes and "unexpected" not in told.err and "Traceback" not in told.err, (words, code, told)
    return told.out + told.err


def process(top: Path, *words: str, seconds: float = 60, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command as a process with a limit in time."""
    count("probes of an outsider")
    return subprocess.run(
        [sys.executable, "-m", "mdmem", "-C", str(top), *words], input=stdin, capture_output=True, timeout=seconds, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MDMEM_EMBEDDING_BACKEND": "off"},
    )  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A store of the user's own with two notes."""
    top = tmp_path / "own"
    assert run(["init", str(top)]) == 0
    for text in ("deploys happen on Thursdays", "the office is in Basel"):
        assert run(["-C", str(top), "remember", "fact", text]) == 0
    return top


def note_at(top: Path, word: str) -> Path:
    return next(path for path in (top / "memories").glob("*.md") if word in path.read_text())


# --- an archive with its own .git ----------------------------------------------------------------


def unpacked(tmp_path: Path, trap: Trap, name: str = "evil") -> Path:
    """A store that came with its `.git`, whose configuration names a program wherever git takes one; `name`: of its filter."""
    top = tmp_path / "unpacked"
    assert run(["init", str(top)]) == 0
    assert run(["-C", str(top), "remember", "fact", "the terminal is green"]) == 0
    note = note_at(top, "terminal")
    assert run(["-C", str(top), "set", f"memories/{note.name}", "importance=0.7"]) == 0
    shutil.rmtree(Path(os.environ["XDG_DATA_HOME"]) / "mdmem")
    shutil.rmtree(top / ".git" / "mdmem")
    (top / ".git" / "more").write_text(f'[core]\n\tpager = "{trap.command}"\n[diff "x"]\n\ttextconv = "{trap.command}"\n')
    program = f'"{trap.command}; cat"'
    with (top / ".git" / "config").open("a") as config:
        config.write(
            f"[include]\n\tpath = more\n[core]\n\tfsmonitor = {program}\n\tsshCommand = {program}\n\tpager = {program}\n"
            f"\teditor = {program}\n\taskPass = {program}\n\talternateRefsCommand = {program}\n\thooksPath = evil-hooks\n"
            f"\tattributesFile = .git/attributes\n\tgitProxy = {program}\n[diff]\n\texternal = {program}\n"
            f'[diff "evil"]\n\ttextconv = {program}\n\tcommand = {program}\n[filter "{name}"]\n\tclean = {program}\n'
            f"\tsmudge = {program}\n\tprocess = {program}\n\trequired = true\n[merge \"mdmem\"]\n\tdriver = {program}\n"
            f"[gpg]\n\tprogram = {program}\n[log]\n\tshowSignature = true\n[credential]\n\thelper = !{trap.command}\n"
            f'[trailer "agent"]\n\tcommand = {program}\n\tcmd = {program}\n[protocol "ext"]\n\tallow = always\n[protocol]\n'
            f"\tallow = always\n[extensions]\n\tpartialClone = origin\n[uploadpack]\n\tpackObjectsHook = {program}\n"
            f'[remote "origin"]\n\turl = ssh://evil.invalid/x\n\tpromisor = true\n'
            f'\tfetch = +refs/heads/*:refs/remotes/origin/*\n\tvcs = ext\n\tuploadpack = {program}\n'
            f"\treceivepack = {program}\n[interactive]\n\tdiffFilter = {program}\n"
            f'[url "ext::sh -c {trap.command.replace(" ", "% ")}"]\n\tinsteadOf = ssh://evil.invalid/x\n'
            f"[alias]\n" + "".join(f"\t{alias} = !{trap.command}\n" for alias in ("status", "log", "rev-parse", "cat-file"))
            + f'[sequence]\n\teditor = {program}\n[pager]\n\tlog = {program}\n[browser "x"]\n\tcmd = {program}\n'
        )  # fmt: skip
    (top / ".git" / "attributes").write_text("*.md filter=evil diff=evil merge=evil\n")
    (top / ".git" / "info").mkdir(exist_ok=True)
    (top / ".git" / "info" / "attributes").write_text(f"*.md filter={name} diff=evil merge=evil\n")
    for folder in (top / ".git" / "hooks", top / "evil-hooks"):
        folder.mkdir(exist_ok=True)
        for hook in ("post-index-change", "reference-transaction", "pre-commit", "post-checkout", "fsmonitor-watchman"):
            (folder / hook).write_text(f"#!/bin/sh\n{trap.command}\n")
            (folder / hook).chmod(0o755)
    return top


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("lacking", "name"), [(False, "evil"), (True, "evil"), (False, "e=vil")])
def test_an_unpacked_archive_with_its_own_git_folder_runs_nothing(
    lacking: bool, name: str, tmp_path: Path, trap: Trap, capsys: Capsys
) -> None:
    """Whatever its `.git/config` names: neither a reading command nor a hook runs it before `mdmem trust`. `lacking`: an object
    is not there, which git would fetch from the promised remote by the program that its ssh is."""
    top = unpacked(tmp_path, trap, name)
    if lacking:
        note = f"HEAD~1:memories/{note_at(top, 'terminal').name}"
        head = plain_git(top, "-c", "core.fsmonitor=false", "rev-parse", note).strip()
        loose = top / ".git" / "objects" / head[:2] / head[2:]
        assert loose.exists()
        loose.unlink()
        trap.sentinel.unlink(missing_ok=True)
    note = f"memories/{note_at(top, 'terminal').name}"
    more = (("history", note), ("show", note), ("show", note, "--at", "HEAD~1"), ("diff", "HEAD~1", "HEAD"))
    for words in (*READING, *more):
        mdmem(top, *words, capsys=capsys, codes=(0, 1, 2, 3, 4, 6))
        assert not trap.sentinel.exists(), words
    for event in SAMPLES:
        done = run_hook(event, {**payload(event, top), **SAMPLES[event]}, cwd=top)
        assert done.code == 0 and b"mdmem-context" not in done.out
        assert not trap.sentinel.exists(), words
    assert "is not trusted" in mdmem(top, "remember", "fact", "mine", capsys=capsys, codes=(1,))
    assert not trap.sentinel.exists()


def kinds_of_state(top: Path) -> list[str]:
    """Return the names below `.git/mdmem` after the store was used, folders too."""
    state = top / ".git" / "mdmem"
    return sorted(path.relative_to(state).as_posix() for path in state.rglob("*"))


@pytest.mark.parametrize("whole", [True, False])
def test_state_that_is_a_link_leads_nobody_outside(whole: bool, tmp_path: Path, trap: Trap, own: Path, capsys: Capsys) -> None:
    """An archive whose `.git/mdmem`, or each file and folder in it, is a link to what the user has elsewhere."""
    mdmem(own, "recall", "deploys", "--keyword", capsys=capsys)
    names = kinds_of_state(own)
    assert len(names) > 5
    state = own / ".git" / "mdmem"
    plan = [""] if whole else names
    shutil.copytree(own, tmp_path / "kept", symlinks=True)
    shutil.rmtree(Path(os.environ["XDG_DATA_HOME"]) / "mdmem")
    for name in plan:
        shutil.rmtree(own)
        shutil.copytree(tmp_path / "kept", own, symlinks=True)
        place = state / name if name else state
        was_folder = place.is_dir()
        shutil.rmtree(place) if was_folder else place.unlink()
        place.symlink_to(trap.outside if was_folder else trap.outside / "secret.md")
        for words in (("list",), ("recall", "deploys", "--keyword"), ("status",), ("stats",)):
            mdmem(own, *words, capsys=capsys, codes=(0, 1, 5, 6))
        if place.is_symlink():
            assert "is a symbolic link" in mdmem(own, "trust", capsys=capsys, codes=(1,)), name
        for event in ("SessionStart", "UserPromptSubmit", "Stop"):
            assert run_hook(event, {**payload(event, own), **SAMPLES[event]}, cwd=own).code == 0
        assert not trap.sentinel.exists(), words


IDS = ("../../../../trap/outside", "/etc", "..", "a/../../../../../trap/outside", "a\\\\b", "x" * 300)


@pytest.mark.parametrize("name", IDS)
def test_a_store_id_that_is_a_path_leads_nobody_outside(name: str, own: Path, trap: Trap, capsys: Capsys) -> None:
    """Notes of this device alone lie in a folder that is called by the store's id: `.mdmem.toml` of a clone says what it is."""
    settings = own / ".mdmem.toml"
    lines = [f'id = "{name}"' if line.startswith("id") else line for line in settings.read_text().splitlines()]
    settings.write_text("\n".join(lines) + "\n")
    for words in (("list",), ("recall", "OUTSIDEWORD", "--keyword"), ("status",), ("list", "--scope", "local")):
        told = mdmem(own, *words, capsys=capsys, codes=(0, 1, 3))
        assert "OUTSIDEWORD of" not in told and "mem-outside" not in told
    assert "is not trusted" in mdmem(own, "remember", "fact", "mine", "--scope", "local", capsys=capsys, codes=(1,))
    trap.unsprung()
