"""Finding the store, and whom to trust."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mdmem.config_edit import set_value
from mdmem.errors import NotFound, Refused
from mdmem.locate import find, project_name, remote_url, same_remote, trust


def make(path: Path, store_id: str = "store-1", mode: str = "dedicated") -> Path:
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    (path / ".mdmem.toml").write_text(f'format = 1\n[store]\nid = "{store_id}"\nmode = "{mode}"\n')
    return path


def test_the_order_option_environment_upwards_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, env, near, default = (make(tmp_path / n, n) for n in ("named", "env", "near", "default"))
    for store in (named, env, near, default):
        trust(store.name, "", store)
    below = near / "a" / "b"
    below.mkdir(parents=True)
    set_value("default_store", str(default))
    assert find(cwd=below).root == near
    assert find(cwd=tmp_path).root == default
    monkeypatch.setenv("MDMEM_REPO", str(env))
    assert find(cwd=below).root == env
    assert find(named, cwd=below).root == named


def test_an_untrusted_store_upwards_gives_way_to_the_default(tmp_path: Path) -> None:
    near, default = make(tmp_path / "near", "near"), make(tmp_path / "default", "default")
    found = find(cwd=near)
    assert found.root == near and not found.trusted
    trust("default", "", default)
    set_value("default_store", str(default))
    found = find(cwd=near)
    assert found.root == default and "passed over" in found.notices[0]


def test_trust_is_by_id_and_place_or_remote(tmp_path: Path) -> None:
    one, twin = make(tmp_path / "one", "same"), make(tmp_path / "twin", "same")
    trust("same", "", one)
    assert find(one).trusted and not find(twin).trusted
    subprocess.run(["git", "-C", str(twin), "remote", "add", "origin", "https://u:p@example.org/x.git"], check=True)
    assert not find(twin).trusted
    trust("same", "https://example.org/x", one)
    assert find(twin).trusted
    assert "u:p" not in (Path(os.environ["XDG_DATA_HOME"]) / "mdmem/trusted.json").read_text()


def test_p2_a_link_or_a_file_of_another_user_is_refused_by_name(tmp_path: Path) -> None:
    real = make(tmp_path / "real")
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    (other / ".mdmem.toml").symlink_to(real / ".mdmem.toml")
    with pytest.raises(Refused, match="symbolic link"):
        find(other)
    if os.getuid() == 0:
        os.chown(real / ".mdmem.toml", 12345, 12345)
        with pytest.raises(Refused, match="another user"):
            find(cwd=real)


def test_no_store_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        find(cwd=tmp_path)
    assert "mdmem" in caught.value.hint


def test_project_name_comes_from_the_remote_also_in_a_worktree(tmp_path: Path) -> None:
    repo = make(tmp_path / "code")
    assert project_name(repo) == "code"
    git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "remote", "add", "origin", "git@example.org:team/Apollo.git"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "tree")], check=True)
    assert remote_url(repo / ".git").endswith("Apollo.git")
    assert project_name(repo / "a" / "b") == "apollo"
    assert project_name(tmp_path / "tree") == "apollo"
    assert project_name(tmp_path) == ""


def test_same_remote() -> None:
    assert same_remote("https://u:t@h/x.git/", "https://h/x")
    assert not same_remote("https://h/x", "https://h/y")


def test_a_linked_work_tree_of_a_trusted_store_is_trusted(tmp_path: Path) -> None:
    repo = make(tmp_path / "store", "linked")
    trust("linked", "", repo)
    git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "tree")], check=True)
    assert find(tmp_path / "tree").trusted
