"""The list of what no test reaches: each entry has its place in the code, and the tool that reads it notices what is new."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "tools" / "uncovered.py"
CODE = """\
def sign(number):
    if number < 0:
        return -1
    return 1


def never():
    first = 1
    return first
"""


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("uncovered", TOOL)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["uncovered"] = module
    spec.loader.exec_module(module)
    return module


def test_each_reason_says_something_of_a_file_that_is_there() -> None:
    """Whether the line is still there, and whether one is new, is told by the tool itself, which knows what was run."""
    known = tool().reasons()
    assert known and all(len(why) > 20 for why in known.values())
    assert all((ROOT / place.file).is_file() for place in known)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project of three rooms, one of which was measured."""
    pytest.importorskip("coverage")
    for room in ("notes", "repo", "recall"):
        (tmp_path / "mdmem" / room).mkdir(parents=True)
        (tmp_path / "mdmem" / room / "__init__.py").touch()
    (tmp_path / "mdmem" / "__init__.py").touch()
    (tmp_path / "mdmem" / "notes" / "sign.py").write_text(CODE)
    (tmp_path / "tools").mkdir()
    shutil.copy(TOOL, tmp_path / "tools")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "build" / "coverage").mkdir(parents=True)
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'from mdmem.notes.sign import sign; sign(1)'])"
    (tmp_path / "start.py").write_text(script)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "COV_"))}
    env |= {"PYTHONPATH": str(tmp_path), "COVERAGE_TOP": str(tmp_path)}
    for words in (["run", "start.py"], ["combine", "-q"]):
        subprocess.run([sys.executable, "-m", "coverage", *words], cwd=tmp_path, env=env, check=True, capture_output=True)
    return tmp_path


def told(project: Path, reasons: str, *options: str) -> tuple[int, list[str]]:
    (project / "tools" / "uncovered.toml").write_text(reasons)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "COV_", "PYTEST_"))}
    what = [] if "-n" in options else ["--tell"]
    command = [sys.executable, str(project / "tools" / "uncovered.py"), *what, *options]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return done.returncode, [line for line in done.stdout.splitlines() if not line[:1].isdigit()]


def test_what_a_child_process_runs_counts_and_what_is_left_needs_a_reason(project: Path) -> None:
    """The function was called by a process that the measured one started."""
    code, lines = told(project, "", "--least", "0")
    branch = "no reason: mdmem/notes/sign.py  sign:  if number < 0:  ->  return -1"
    run = "no reason: mdmem/notes/sign.py  never:  first = 1"
    assert code == 1 and lines[0] == "mdmem/notes: 50.0 % of branches (1 of 2), 57.1 % of lines (4 of 7)"
    assert [line for line in lines if line.startswith("no ")] == [branch, run]
    known = '''[[because]]
why = "a reason long enough to say something"
places = [
    ["mdmem/notes/sign.py", "sign", "if number < 0:", "return -1"],
    ["mdmem/notes/sign.py", "never", "first = 1"],
]
'''
    assert told(project, known, "--least", "0")[0] == 0
    code, lines = told(project, known)
    assert code == 1 and lines[0].endswith("below 95 %")
    code, lines = told(project, known.replace('"return -1"', '"return -2"'), "--least", "0")
    assert code == 1 and "no such place any more: mdmem/notes/sign.py  sign:  if number < 0:  ->  return -2" in lines
    code, lines = told(project, known.replace('"never"', '"forever"'), "--least", "0")
    assert code == 1 and "no such place any more: mdmem/notes/sign.py  forever:  first = 1" in lines and run in lines


def test_tests_that_are_run_add_to_what_is_known(project: Path) -> None:
    pytest.importorskip("pytest_cov")
    pytest.importorskip("xdist")
    (project / "tests").mkdir()
    (project / "tests" / "test_sign.py").write_text(
        "from mdmem.notes.sign import never, sign\n\ndef test_it():\n    assert sign(-1) == -1 and never() == 1\n"
    )
    code, lines = told(project, "", "-n", "1", "tests/test_sign.py")
    # The way that the process before went is known still.
    assert code == 0 and "mdmem/notes: 100.0 % of branches (2 of 2), 100.0 % of lines (7 of 7)" in lines
    (project / "tests" / "test_sign.py").write_text("def test_it():\n    assert False\n")
    assert told(project, "", "-n", "1", "tests/test_sign.py")[0] == 1
