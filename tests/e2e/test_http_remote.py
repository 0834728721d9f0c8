"""A real smart-HTTP remote: clone, sync, races and leases, with authentication that works and that fails."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mdmem.repo.git import GitFailed
from mdmem.repo.init import clone
from mdmem.repo.lease import LeaseHeld, acquire
from tests.repo.conftest import Clone, World

from .http_remote import serving

pytestmark = pytest.mark.e2e
PASSWORD = "synthetic-Pa55"


def has_backend() -> bool:
    if not shutil.which("git"):
        return False
    folder = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
    return (Path(folder) / "git-http-backend").exists()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[World, str]]:
    if not has_backend():
        pytest.skip("git http-backend is not installed")
    world = World(tmp_path / "world")
    world_git = Clone(world.remote, "remote", world.clock)
    world_git.sh("config", "http.receivepack", "true")
    with serving(world.folder, PASSWORD) as address:
        yield world, address


def cloned(world: World, address: str, name: str) -> Clone:
    top = world.folder / name
    clone(f"http://user:{PASSWORD}@{address}/remote.git", top, timeout=60)
    return Clone(top, name, world.clock)


def test_two_machines_over_http(site: tuple[World, str]) -> None:
    world, address = site
    one = cloned(world, address, "one")
    one.write(".gitattributes", "*.md -text merge=mdmem\n")
    for number in range(150):
        one.write(f"n{number}.md", f"---\nid: mem-{number}\n---\n" + f"text {number}\n" * 200)
    assert one.sync().state == "pushed"
    two = cloned(world, address, "two")
    two.save("n1.md", two.read("n1.md") + "\nfrom two\n")
    one.save("n1.md", one.read("n1.md").replace("mem-1\n", "mem-1\nimportance: 0.9\n"))
    assert one.sync().state == "pushed"
    assert two.sync().state == "merged"
    assert one.sync().state == "merged"
    assert one.files() == two.files() and "from two" in one.read("n1.md") and "0.9" in two.read("n1.md")
    acquire(one.git, "mem-1", "one", 60, one.clock)
    with pytest.raises(LeaseHeld):
        acquire(two.git, "mem-1", "two", 60, two.clock)
    for machine in (one, two):
        machine.healthy()


def test_a_wrong_password_is_a_state_and_shown_nowhere(site: tuple[World, str], own_home: Path) -> None:
    world, address = site
    one = cloned(world, address, "one")
    one.write("a.md", "x\n")
    for user in ("user:wrong-Pa55@", "", "user@"):
        one.sh("remote", "set-url", "origin", f"http://{user}{address}/remote.git")
        result = one.sync(timeout=20.0)
        assert result.state == "offline" and result.waiting == 1
        assert "wrong-Pa55" not in str(result.as_dict())
    with pytest.raises(GitFailed) as caught:
        clone(f"http://user:wrong-Pa55@{address}/remote.git", world.folder / "never", timeout=20)
    assert "wrong-Pa55" not in str(caught.value) and not (world.folder / "never").exists()
    # A credential helper of the user's own works without a word.
    (own_home / ".git-credentials").write_text(f"http://user:{PASSWORD}@{address.replace(':', '%3a')}\n")
    one.sh("config", "credential.helper", "store")
    one.sh("remote", "set-url", "origin", f"http://{address}/remote.git")
    assert one.sync(timeout=20.0).state == "pushed"
