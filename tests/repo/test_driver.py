"""The driver as a program: exit codes, fallbacks, signals, and how it is installed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import mdmem
from mdmem.repo import driver, driver_install
from mdmem.repo.driver import driver_command, driver_status, install_driver, run_driver
from mdmem.repo.git import Git
from mdmem.repo.merge import find_conflicts, merge

ROOT = Path(mdmem.__file__).resolve().parent.parent
BASE = b"---\nid: a\npriority: low\n---\n\none\n\ntwo\n"
OURS = BASE.replace(b"low", b"high").replace(b"one", b"ONE")
CLEAN = BASE.replace(b"two", b"TWO")
CLASH = CLEAN.replace(b"low", b"mid")
Files = Callable[..., list[str]]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Write the three files as git does and return the driver's arguments."""

    def write(base: bytes = BASE, ours: bytes = OURS, theirs: bytes = CLASH, path: str = "memories/x.md") -> list[str]:
        monkeypatch.chdir(tmp_path)
        for name, data in ((".merge_file_O", base), (".merge_file_A", ours), (".merge_file_B", theirs)):
            (tmp_path / name).write_bytes(data)
        return [".merge_file_O", ".merge_file_A", ".merge_file_B", "7", path]

    return write


def left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_clean_is_0_and_conflict_is_1_and_the_result_stands_in_a(files: Files, tmp_path: Path) -> None:
    assert run_driver(files(theirs=CLEAN)) == 0
    assert (tmp_path / ".merge_file_A").read_bytes() == merge(BASE, OURS, CLEAN).text
    assert run_driver(files()) == 1
    assert (tmp_path / ".merge_file_A").read_bytes() == merge(BASE, OURS, CLASH).text
    assert left(tmp_path) == [".merge_file_A", ".merge_file_B", ".merge_file_O"]


def test_a_guarded_conflict_has_a_code_that_python_never_gives(files: Files) -> None:
    assert run_driver([*files(theirs=CLEAN), "--guarded"]) == 0
    assert run_driver([*files(), "--guarded"]) == driver.GUARDED_CONFLICT
    assert run_driver([*files(path="--guarded")]) == 1


def test_labels_of_newer_git_and_literal_ones_of_older_are_accepted(files: Files) -> None:
    assert run_driver([*files(theirs=CLEAN), "%S", "%X", "%Y"]) == 0
    assert run_driver([*files(theirs=CLEAN), "base", "HEAD", "side"]) == 0
    assert run_driver(["a"]) == 2


def test_the_mode_of_the_file_stays(files: Files, tmp_path: Path) -> None:
    args = files(theirs=CLEAN)
    (tmp_path / ".merge_file_A").chmod(0o755)
    assert run_driver(args) == 0
    assert (tmp_path / ".merge_file_A").stat().st_mode & 0o777 == 0o755


FAILURES = (ValueError, MemoryError, KeyboardInterrupt, SystemExit, RecursionError, driver._Stopped)


@pytest.mark.parametrize("failure", FAILURES)
def test_any_failure_ends_in_the_text_merge_of_git(
    files: Files,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: type[BaseException],
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*args: object, **rest: object) -> None:
        raise failure("broken")

    monkeypatch.setattr("mdmem.repo.merge.merge", fail)
    assert run_driver(files()) == 1
    text = (tmp_path / ".merge_file_A").read_bytes()
    assert b"<<<<<<< ours\npriority: high\n=======\npriority: mid\n>>>>>>> theirs\n" in text
    assert b"ONE" in text and b"TWO" in text
    out, err = capfd.readouterr()
    assert out == "" and "merged as plain text" in err
    assert run_driver(files(theirs=CLEAN)) == 0


def test_without_git_both_files_stand_between_markers(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "MAX_BYTES", 10)
    monkeypatch.setenv("PATH", "")
    assert run_driver(files()) == 1
    assert (tmp_path / ".merge_file_A").read_bytes() == b"<<<<<<< ours\n" + OURS + b"=======\n" + CLASH + b">>>>>>> theirs\n"


def test_a_file_above_the_limit_goes_to_git(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "MAX_BYTES", 60)
    big = CLEAN + b"more\n" * 20
    assert run_driver(files(theirs=big)) == 0
    assert (tmp_path / ".merge_file_A").read_bytes() == OURS.replace(b"two", b"TWO") + b"more\n" * 20


def test_a_full_disk_leaves_a_as_it_was(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **rest: object) -> int:
        raise OSError(28, "No space left on device")

    args = files()
    monkeypatch.setattr(driver, "_write", full)
    assert run_driver(args) == 1
    assert (tmp_path / ".merge_file_A").read_bytes() == OURS
    assert left(tmp_path) == [".merge_file_A", ".merge_file_B", ".merge_file_O"]


def test_missing_files_are_an_error_not_a_traceback(tmp_path: Path) -> None:
    assert run_driver([str(tmp_path / name) for name in "OAB"]) == 1


def test_it_runs_in_a_thread(files: Files) -> None:
    codes: list[int] = []
    args = files(theirs=CLEAN)
    thread = threading.Thread(target=lambda: codes.append(run_driver(args)))
    thread.start()
    thread.join()
    assert codes == [0]


def test_the_callers_signal_handlers_are_put_back(files: Files) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    run_driver(files())
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_term_while_merging_falls_back_and_reports_a_conflict(files: Files, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "import mdmem.repo.merge as m\n"
        "def slow(*a, **k): os.kill(os.getpid(), signal.SIGTERM); signal.pause()\n"
        "m.merge = slow\n"
        "from mdmem.repo.driver import run_driver\n"
        "sys.exit(run_driver(sys.argv[1:]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *files()], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 1
    assert b"<<<<<<< ours" in (tmp_path / ".merge_file_A").read_bytes()


def test_the_program_imports_nothing_heavy_and_prints_nothing(files: Files) -> None:
    code = (
        "import sys; sys.argv[0] = 'mdmem'; from mdmem.__main__ import main; code = main()\n"
        "heavy = {'click', 'numpy', 'whoosh', 'git', 'onnxruntime', 'rich', 'tokenizers', 'subprocess'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "merge-driver", *files()],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_install_is_idempotent_and_keeps_other_peoples_lines(repo: Path) -> None:
    git = Git(repo)
    attributes = repo / ".git/info/attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_bytes(b"*.png binary\n*.md merge=union")
    assert install_driver(git) is True
    once = attributes.read_bytes(), (repo / ".git/config").read_bytes()
    assert install_driver(git) is False
    assert (attributes.read_bytes(), (repo / ".git/config").read_bytes()) == once
    assert once[0].startswith(b"*.png binary\n*.md merge=union\n# mdmem begin")
    attributes.write_bytes(once[0] + b"*.txt text\n")
    assert install_driver(git) is False
    assert driver_status(git).ok


def test_changed_lines_replace_the_old_ones(repo: Path) -> None:
    git = Git(repo)
    install_driver(git)
    assert install_driver(git, ["/memories/**/*.md -text merge=mdmem"]) is True
    text = (repo / ".git/info/attributes").read_text()
    assert "*.md -text merge=mdmem\n" in text and text.count("merge=mdmem") == 1
    assert driver_status(git).covered and not driver_status(git, "docs/x.md").covered


def test_status_tells_what_is_missing(repo: Path) -> None:
    git = Git(repo)
    assert driver_status(git) == driver_install.DriverStatus("", False, False, False)
    install_driver(git)
    assert driver_status(git) == driver_install.DriverStatus(driver_command(), True, True, True)
    git.run("config", "merge.mdmem.driver", "/nonexistent/mdmem %O %A %B")
    status = driver_status(git)
    assert (status.current, status.works) == (False, False)
    assert install_driver(git) is True and driver_status(git).ok


def test_h13_an_interpreter_path_with_blanks_quotes_and_percent_signs(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a b'c%A \"d\" $HOME"
    folder.mkdir()
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    git = Git(repo)
    install_driver(git)
    assert driver_status(git).ok


def test_the_command_imports_nothing_from_the_work_tree(repo: Path, files: Files, tmp_path: Path) -> None:
    """git runs the driver at the top of a work tree that somebody else can write to."""
    files(theirs=CLEAN)
    for name in ("mdmem", "yaml", "json", "signal"):
        (tmp_path / f"{name}.py").write_text("open('PWNED', 'w').close()\n")
    install_driver(Git(repo))
    assert driver_install.try_driver(driver_command())
    line = driver_command().replace("%O", ".merge_file_O").replace("%A", ".merge_file_A").replace("%B", ".merge_file_B")
    done = subprocess.run(["sh", "-c", line.replace("%L", "7").replace("%P", "x.md")], check=False)
    assert done.returncode == 0
    assert not (tmp_path / "PWNED").exists()
    assert find_conflicts((tmp_path / ".merge_file_A").read_bytes()) == []


def test_a_command_that_hangs_or_cannot_start_does_not_work(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert driver_install.try_driver("sleep 30", timeout=0.2) is False
    monkeypatch.setenv("PATH", "")
    assert driver_install.try_driver(driver_command()) is False


def test_a_merge_that_gives_what_is_there_writes_nothing(files: Files, tmp_path: Path) -> None:
    both = merge(BASE, OURS, CLEAN).text
    arguments = files(ours=both, theirs=OURS)
    before = (tmp_path / ".merge_file_A").stat()
    assert run_driver(arguments) == 0
    after = (tmp_path / ".merge_file_A").stat()
    assert (tmp_path / ".merge_file_A").read_bytes() == both and (before.st_ino, before.st_mtime_ns) == (
        after.st_ino, after.st_mtime_ns,
    )  # fmt: skip


def test_attributes_that_cannot_be_replaced_stay_and_leave_nothing_behind(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = repo / ".git" / "info" / "attributes"
    path.parent.mkdir(exist_ok=True)
    path.write_text("*.txt text\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        install_driver(Git(repo))
    assert path.read_text() == "*.txt text\n"
    assert not list(path.parent.glob("attributes.*"))


def test_an_installed_package_needs_no_path_in_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "PYTHONPATH=" in driver_command()
    package = Path(driver_install.__file__).resolve().parent.parent.parent
    monkeypatch.setattr(driver_install.site, "getsitepackages", lambda: [str(package)])
    assert "PYTHONPATH=" not in driver_command()

    def none() -> list[str]:
        raise AttributeError("this interpreter has no site folders")

    monkeypatch.setattr(driver_install.site, "getsitepackages", none)
    assert "PYTHONPATH=" in driver_command()
