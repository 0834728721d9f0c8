"""A process that runs many commands, as an agent's does: each gives back what it opened when it ends, uncollected."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mdmem.cli.main import run

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors by /proc")

LINES = (
    ("recall", "harbor", "--keyword"),
    ("remember", "fact", "The walnut lies on shelf {}."),
    ("list",),
    ("show", "harbor"),
    ("query", "harbor"),
    ("status",),
    ("sync",),
    ("graph", "related", "harbor"),
    ("history", "harbor"),
    ("doctor",),
)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def opened() -> list[str]:
    names = []
    for name in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue  # the listing's own
    return sorted(names)


@pytest.mark.parametrize("words", LINES, ids=lambda words: words[0])
def test_a_command_leaves_no_descriptor_open(
    words: tuple[str, ...], tmp_path: Path, no_collector: None, capsys: pytest.CaptureFixture[str]
) -> None:
    top = str(tmp_path / "store")
    assert run(["init", top]) == 0
    assert run(["-C", top, "remember", "fact", "The harbor opens at nine.", "--title", "harbor"]) == 0
    assert run(["-C", top, *(word.format(0) for word in words)]) in (0, 1, 2, 3)
    before = opened()
    for number in range(1, 4):
        run(["-C", top, *(word.format(number) for word in words)])
    assert opened() == before
