"""mdmem recall: options that exclude each other, and a budget that holds nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mdmem.setup import init

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    init(tmp_path / "store")
    (tmp_path / "store/memories").mkdir(exist_ok=True)
    (tmp_path / "store/memories/a.md").write_text("---\ntitle: Ports\n---\n\nThe database listens on port 5432.\n")
    return tmp_path / "store"


def mdmem(store: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "MDMEM_SERVE": "off", "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-m", "mdmem", *arguments], cwd=store, capture_output=True, text=True, env=env)


def test_two_modes_at_once_are_a_usage_error(store: Path) -> None:
    done = mdmem(store, "recall", "port", "--keyword", "--semantic")
    assert done.returncode == 2 and done.stdout == ""
    assert "--keyword and --semantic" in done.stderr and "try:" in done.stderr
    error = json.loads(mdmem(store, "recall", "port", "--semantic", "--hybrid", "--json").stdout)["error"]
    assert error["code"] == "usage" and error["hint"]


def test_a_budget_that_holds_nothing_says_what_would(store: Path) -> None:
    done = mdmem(store, "recall", "port", "--keyword", "--budget", "5")
    assert done.returncode == 0 and done.stdout == ""
    assert "none of the passages fits into 5 tokens" in done.stderr
    found = json.loads(mdmem(store, "recall", "port", "--keyword", "--budget", "5", "--json").stdout)
    assert found["context"] == "" and "5 tokens" in found["notices"][-1]
    assert "5432" in mdmem(store, "recall", "port", "--keyword", "--budget", "200").stdout
