"""Options and fixtures that every test shares."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from mdmem.clock import FixedClock
from mdmem.store import Store
from tests import injected
from tests.examples import SEARCH

# The same examples on every run, and none given up for slowness: a red test is then a change, not a draw.
settings.register_profile("same", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("search", deadline=None, max_examples=SEARCH)
settings.load_profile(os.environ.get("MDMEM_TEST_PROFILE", "same"))

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=timezone.utc)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--e2e", action="store_true", help="also run tests that need real outside programs")
    parser.addoption("--nightly", action="store_true", help="also run the long forms")


# Where tests run whole scenes (real repositories, clones, kills, processes, tutorials) rather than a unit: beginnings of paths.
SCENES = (
    "cli/",
    "doctor/",
    "e2e/",
    "faults/",
    "hooks/",
    "index/test_damage.py",
    "index/test_tantivy.py",
    "index/test_watch.py",
    "graph/test_history.py",
    "index/test_embed.py",
    "install/",
    "learn/test_consolidate.py",
    "learn/test_year.py",
    "mcp/",
    "memory/test_import_places.py",
    "recall/test_fixed_set.py",
    "repo/test_cli",
    "repo/test_commit.py",
    "repo/test_convergence.py",
    "repo/test_driver",
    "repo/test_environment.py",
    "repo/test_faults.py",
    "repo/test_gate",
    "repo/test_history.py",
    "repo/test_lease.py",
    "repo/test_maintenance.py",
    "repo/test_merge_clones.py",
    "repo/test_parallel.py",
    "repo/test_placing.py",
    "repo/test_remote",
    "repo/test_scan.py",
    "repo/test_sync",
    "repo/test_undo.py",
    "scopes/",
    "team/test_handoff.py",
    "team/test_two_clones.py",
    "test_federation.py",
    "test_hazards.py",
    "test_readme.py",
    "test_secrets_everywhere.py",
    "test_shell_sessions.py",
    "test_tutorials.py",
    "warm/",
    "web/",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).as_posix().startswith(SCENES):
            item.add_marker(pytest.mark.scene)
    for option in ("e2e", "nightly"):
        if not config.getoption("--" + option):
            skip = pytest.mark.skip(reason=f"run with --{option}")
            for item in items:
                if option in item.keywords:
                    item.add_marker(skip)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Account the examples that a property test drew; those inside another test account theirs themselves."""
    told = getattr(item, "hypothesis_statistics", "")
    if number := sum(map(int, re.findall(r"(\d+) passing", told))):
        injected.count(f"examples in {item.path.relative_to(Path(__file__).parent).as_posix()}", number)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what was injected in a worker process to the one that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["injected"] = dict(injected.counts)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    injected.counts.update(getattr(node, "workeroutput", {}).get("injected", {}))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how often the tests of faults injected what."""
    if injected.counts:
        terminalreporter.section("injected")
        for what, number in sorted(injected.counts.items()):
            terminalreporter.line(f"{number:7,} {what}")


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test its own HOME, XDG folders and git configuration."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("MDMEM_", "GIT_", "CLAUDE")) and not name.startswith("MDMEM_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / ".local/share"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    runtime = home / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("MDMEM_SERVE", "off")
    (home / ".gitconfig").write_text("[user]\n\tname = Test\n\temail = test@example.org\n[init]\n\tdefaultBranch = main\n")
    return home


@pytest.fixture
def data_dir() -> Path:
    """The folder of benchmark data beside the checkout; skips where it is absent."""
    named = os.environ.get("MDMEM_TEST_DATA")
    places = [Path(named)] if named else []
    here = Path(__file__).resolve()
    places += [parent / "shared" / "data" for parent in here.parents]
    for place in places:
        if (place / "locomo_dev.json").is_file():
            return place
    pytest.skip("the benchmark data folder is not beside this checkout (set MDMEM_TEST_DATA)")


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[..., Store]:
    """Return make(name="store", clock=None, **settings): a new dedicated store on disk, opened for writing."""
    from mdmem.setup import init

    def make(name: str = "store", clock: FixedClock | None = None, **settings: str) -> Store:
        root = tmp_path / name
        init(root)
        options = {"agent": "tester", "device": "laptop", **settings}
        return Store.open(root, need="write", cwd=root, clock=clock or FixedClock(NOW), options=options)

    return make


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    """A new dedicated store; its clock stands at NOW."""
    return make_store()
