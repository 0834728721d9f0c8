"""The doctor names what is wrong, mends what is safe, and stays silent about what is well."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from mdmem.doctor.examine import examine, failed
from mdmem.doctor.finding import ERROR, OK, WARNING, Finding, Look
from mdmem.memory.remember import Memory, remember
from mdmem.store import Store


def codes(found: Iterable[Finding], *severities: str) -> set[str]:
    return {finding.code for finding in found if not severities or finding.severity in severities}


def look(store: Store, **more: bool) -> list[Finding]:
    return examine(Look(Store.open(store.root, cwd=store.cwd, clock=store.clock), **more))


def test_a_healthy_store_has_neither_error_nor_warning(store: Store) -> None:
    remember(store, Memory("fact", "Ports are open."))
    found = look(store, deep=True)
    assert codes(found, ERROR, WARNING) == set() and not failed(found)
    assert {"git-version", "git-state", "merge-driver", "index", "model"} <= codes(found, OK)


def test_g23_a_driver_that_is_not_configured_is_mended(store: Store) -> None:
    subprocess.run(["git", "-C", str(store.root), "config", "--remove-section", "merge.mdmem"], check=True)
    found = look(store)
    assert "merge-driver" in codes(found, WARNING)
    mended = examine(Look(store), fix=True)
    assert next(f for f in mended if f.code == "merge-driver").fixed
    assert "merge-driver" in codes(look(store), OK)


def test_a_driver_that_does_not_work_is_an_error(store: Store) -> None:
    subprocess.run(["git", "-C", str(store.root), "config", "merge.mdmem.driver", "false"], check=True)
    assert "merge-driver" in codes(look(store), ERROR)


def test_files_that_are_wrong(store: Store, tmp_path: Path) -> None:
    folder = store.root / "memories"
    folder.mkdir()
    (folder / "bad.md").write_text("---\ntitle: 'don't'\n---\n")
    (folder / "link.md").symlink_to(tmp_path)
    (folder / "date.md").write_text("---\ntitle: x\ncreated: someday\n---\n")
    (folder / ".mdmem-x.tmp").write_text("half")
    os.utime(folder / ".mdmem-x.tmp", (1, 1))
    found = look(store)
    assert {"note-bad", "note-bad-date"} <= codes(found, ERROR) and "note-symlink" in codes(found)
    assert all(finding.command for finding in found if finding.severity in (ERROR, WARNING))


def test_g35_a_note_that_git_ignores(store: Store) -> None:
    kept = remember(store, Memory("fact", "Ports are open."))
    subprocess.run(["git", "-C", str(store.root), "rm", "-q", "--cached", kept.path], check=True)
    (store.root / ".gitignore").write_text("memories/\n")
    found = look(store)
    assert "ignored-notes" in codes(found, ERROR)
    assert kept.path in next(f for f in found if f.code == "ignored-notes").message


def test_g47_a_repository_inside_the_tree(store: Store) -> None:
    folder = store.root / "sub"
    (folder / "objects").mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text('[core]\nbare = false\nworktree = .\nfsmonitor = "touch PWNED; false"\n')
    (folder / "objects" / "keep").write_text("")
    git = ["git", "-C", str(store.root)]
    subprocess.run([*git, "add", "-f", "sub/HEAD", "sub/config", "sub/objects/keep"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    assert "embedded-repository" in codes(look(store), ERROR)
    assert not list(store.root.rglob("PWNED"))


def test_a_lock_that_was_left_is_named_and_not_removed(store: Store) -> None:
    lock = store.root / ".git" / "index.lock"
    lock.write_text("")
    os.utime(lock, (1, 1))
    found = look(store)
    assert "git-lock" in codes(found, WARNING) and lock.exists()


def test_dates_in_the_future(store: Store) -> None:
    (store.root / "memories").mkdir()
    (store.root / "memories" / "late.md").write_text("---\ntitle: x\nupdated: 2199-01-01T00:00:00Z\n---\n")
    assert "clock" in codes(look(store), WARNING)


def test_a_damaged_index_is_built_again(store: Store) -> None:
    remember(store, Memory("fact", "Ports are open."))
    store.index.refresh()
    with open(store.state_dir / "catalog.db", "r+b") as stream:
        stream.write(b"garbage" * 100)
    found = examine(Look(Store.open(store.root, cwd=store.cwd, clock=store.clock)), fix=True)
    assert not failed(found)
    assert "index" in codes(look(store), OK)


def test_h2_settings_of_claude_code(store: Store) -> None:
    folder = Path(os.environ["HOME"]) / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text("{ not json")
    assert "claude-settings" in codes(look(store), ERROR)


def test_an_untrusted_store_is_said_and_nothing_is_mended(store: Store) -> None:
    (store.data_dir / "trusted.json").unlink()
    other = Store.open(store.root, cwd=store.cwd, clock=store.clock)
    found = examine(Look(other))
    assert "trust" in codes(found, WARNING)
    assert json.dumps([finding.as_dict() for finding in found])


def test_g35_an_old_git_and_a_full_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mdmem.repo.version.git_version", lambda: (2, 30, 1))
    monkeypatch.setattr("mdmem.doctor.place.shutil.disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 1000))
    assert {"git-version", "disk"} <= codes(look(store), ERROR)


def test_a_remote_that_does_not_answer(store: Store, tmp_path: Path) -> None:
    subprocess.run(["git", "-C", str(store.root), "remote", "add", "origin", str(tmp_path / "gone.git")], check=True)
    assert "remote" in codes(look(store), WARNING)
    assert "remote" not in codes(look(store, network=False), WARNING)


def test_a_secret_in_history_is_found_by_the_deep_look(store: Store, tmp_path: Path) -> None:
    hub = tmp_path / "hub.git"
    subprocess.run(["git", "init", "-q", "--bare", str(hub)], check=True)
    git = ["git", "-C", str(store.root)]
    (store.root / "old.md").write_text("The key is ghp_" + "a1B2" * 9 + "\n")
    subprocess.run([*git, "add", "old.md"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    assert "secrets" in codes(look(store), ERROR)
    subprocess.run([*git, "rm", "-q", "old.md"], check=True)
    subprocess.run([*git, "commit", "-qm", "y"], check=True)
    subprocess.run([*git, "remote", "add", "origin", str(hub)], check=True)
    subprocess.run([*git, "push", "-q", "-u", "origin", "HEAD"], check=True)
    assert "secrets" not in codes(look(store))
    found = look(store, deep=True)
    assert "secrets" in codes(found, ERROR) and "a1B2a1B2" not in json.dumps([finding.as_dict() for finding in found])


def test_names_links_orphans_and_twins(store: Store, tmp_path: Path) -> None:
    folder = store.root / "memories"
    folder.mkdir()
    (folder / "con.md").write_text("Not a name on Windows.\n")
    (folder / "a.md").write_text("---\nid: mem-one\nblocked_by: nothing-like-it\n---\n")
    (folder / "A.md").write_text("---\nid: mem-one\n---\n")
    (store.root / "passwd").symlink_to("/etc/passwd")
    git = ["git", "-C", str(store.root)]
    subprocess.run([*git, "add", "passwd"], check=True)
    subprocess.run([*git, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module"], check=True)
    found = look(store)
    assert {"note-unsafe-name", "note-duplicate-id", "note-name-twin"} <= codes(found, ERROR)
    assert {"note-dangling", "tracked-link", "submodule"} <= codes(found)


def test_a_model_whose_files_changed(store: Store, tmp_path: Path) -> None:
    from mdmem.index.embed import BUNDLED

    model = tmp_path / "model"
    shutil.copytree(BUNDLED, model)
    options = {"embedding.backend": "onnx", "embedding.path": str(model), "agent": "tester", "device": "laptop"}
    other = Store.open(store.root, cwd=store.cwd, clock=store.clock, options=options)
    assert "model" in codes(examine(Look(other)), OK)
    was = (model / "model.onnx").stat()
    weights = bytearray((model / "model.onnx").read_bytes())
    weights[len(weights) // 2] ^= 1
    (model / "model.onnx").write_bytes(weights)
    os.utime(model / "model.onnx", ns=(was.st_atime_ns, was.st_mtime_ns))  # as a bad disk would leave it
    assert "model" in codes(examine(Look(other)), ERROR)


def test_an_mcp_server_whose_program_is_gone(store: Store) -> None:
    from mdmem.install.mcp import install_mcp

    install_mcp("cursor", "user", store.cwd)
    assert "mcp" in codes(look(store), OK)
    path = Path(os.environ["HOME"]) / ".cursor/mcp.json"
    data = json.loads(path.read_text())
    data["mcpServers"]["mdmem"]["command"] = "/gone/python"
    path.write_text(json.dumps(data))
    assert "mcp-program" in codes(look(store), ERROR)


def test_mending_touches_only_what_is_safe(store: Store) -> None:
    """Notes, settings, git's locks and history are left as they are; what was mended says so."""
    kept = remember(store, Memory("fact", "Ports are open."))
    (store.root / "memories/bad.md").write_text("---\ntitle: 'don't'\n---\n")
    (store.root / ".git/index.lock").write_text("")
    os.utime(store.root / ".git/index.lock", (1, 1))
    (store.root / "memories/.mdmem-x.tmp").write_text("half")
    os.utime(store.root / "memories/.mdmem-x.tmp", (1, 1))
    notes = {path: path.read_bytes() for path in store.root.rglob("*.md")}
    head = subprocess.check_output(["git", "-C", str(store.root), "rev-parse", "HEAD"])
    found = examine(Look(Store.open(store.root, cwd=store.cwd, clock=store.clock)), fix=True)
    assert {path: path.read_bytes() for path in store.root.rglob("*.md")} == notes
    assert (store.root / ".git/index.lock").exists() and failed(found) and kept.path
    assert subprocess.check_output(["git", "-C", str(store.root), "rev-parse", "HEAD"]) == head
    mended = [finding for finding in found if finding.fixed]
    assert {finding.code for finding in mended} == {"leftovers"} and "removed" in mended[0].fixed
    for finding in found:
        assert finding.code and finding.severity in ("ok", "note", "warning", "error")
        assert finding.command or finding.severity in ("ok", "note"), finding


def test_plugin_and_settings_hooks_at_once_are_told(store: Store) -> None:
    from mdmem.install.claude import install_hooks, settings_path

    path = settings_path("user", store.cwd)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"enabledPlugins": {"mdmem@mdmem": true, "other@x": true}}')
    assert "hooks-twice" not in codes(look(store)) and "hooks" in codes(look(store), OK)
    install_hooks(path)
    found = [finding for finding in look(store) if finding.code == "hooks-twice"]
    assert [finding.severity for finding in found] == [WARNING] and "uninstall" in found[0].command
    path.write_text(path.read_text().replace('"mdmem@mdmem": true', '"mdmem@mdmem": false'))
    assert "hooks-twice" not in codes(look(store))
