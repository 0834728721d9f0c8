"""Hazards that cross rooms: whole commands and several of them in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from mdmem.clock import FixedClock
from mdmem.doctor.examine import examine
from mdmem.doctor.finding import WARNING, Look
from mdmem.install.claude import install_hooks, settings_path
from mdmem.memory.change import set_fields
from mdmem.memory.forget import forget
from mdmem.memory.remember import Memory, remember
from mdmem.notes.frontmatter import edit
from mdmem.recall.query import Filters, Query
from mdmem.recall.recall import recall
from mdmem.store import Store
from tests.repo.conftest import World

ROOT = Path(__file__).resolve().parent.parent


def mdmem(store: Store, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "mdmem", *args]
    quiet = subprocess.DEVNULL
    return subprocess.run(command, cwd=store.root, env=env, capture_output=True, text=True, stdin=quiet, timeout=120)


def data(store: Store, *args: str) -> dict[str, object]:
    done = mdmem(store, *args, "--json")
    assert done.returncode in (0, 1), done.stderr
    return dict(json.loads(done.stdout))


def test_f19_every_command_reads_a_bom_file_alike(store: Store) -> None:
    folder = store.root / "memories"
    folder.mkdir()
    raw = b"\xef\xbb\xbf---\nid: mem-bom\ntype: decision\ntitle: Bom title\ntags:\n  - quokka\n---\nBody text.\n"
    (folder / "bom.md").write_bytes(raw.replace(b"\n", b"\r\n"))
    shown = data(store, "show", "mem-bom")
    assert (shown["type"], shown["title"], shown["tags"]) == ("decision", "Bom title", ["quokka"])
    assert data(store, "list", "--type", "decision", "--tag", "quokka")["count"] == 1
    found = data(store, "recall", "body", "--keyword", "--tag", "quokka")["results"]
    assert [hit["title"] for hit in found] == ["Bom title"]  # type: ignore[attr-defined]
    rows = data(store, "query", "SELECT id, title FROM notes")["rows"]
    assert rows == [{"id": "mem-bom", "title": "Bom title"}]
    assert data(store, "check")["findings"] == [] and data(store, "fmt", "--check")["changed"] == []
    mdmem(store, "set", "Bom title", "priority=high")
    after = (folder / "bom.md").read_bytes()
    assert after.startswith(b"\xef\xbb\xbf---\r\n") and b"priority: high\r\n" in after and after.endswith(b"Body text.\r\n")


def test_g15_many_notes_cost_no_git_process_each(make_store: Callable[..., Store]) -> None:
    """The time is in the benchmarks; here it is counted how often git is started."""
    store = make_store()
    folder = store.root / "memories"
    folder.mkdir()
    for number in range(1500):
        (folder / f"n{number}.md").write_text(f"---\ntitle: Note {number}\n---\ntext {number}\n")
    assert mdmem(store, "sync").returncode == 0
    (folder / "n7.md").write_text("---\ntitle: Note 7\n---\nchanged\n")
    log = store.root.parent / "git.log"
    os.environ["GIT_TRACE2_EVENT"] = str(log)
    try:
        assert mdmem(store, "sync").returncode == 0
    finally:
        del os.environ["GIT_TRACE2_EVENT"]
    starts = [line for line in log.read_text().splitlines() if '"event":"start"' in line] if log.exists() else []
    assert len(starts) < 25, len(starts)


def test_g16_a_save_keeps_what_changed_since_it_was_read(store: Store, monkeypatch: object) -> None:
    kept = remember(store, Memory("fact", "Ports are open."))
    read = store.folder.read
    raced: list[str] = []

    def meanwhile(path: str) -> object:
        note = read(path)
        if not raced:
            raced.append(path)
            store.folder.write(path, edit(note.data, {"priority": "low"}, body="Ports are closed.\n"), note.sha)
        return note

    store.folder.read = meanwhile  # type: ignore[method-assign,assignment]
    set_fields(store, kept.id, {"category": "net"})
    note = read(kept.path)
    assert raced and (note.category, note.priority, note.body.strip()) == ("net", "low", "Ports are closed.")


def test_g25_markers_and_a_stash_entry_are_both_reported(store: Store) -> None:
    kept = remember(store, Memory("fact", "Ports are open."))
    git = ["git", "-C", str(store.root)]
    note = store.folder.read(kept.path)
    (store.root / kept.path).write_bytes(note.data + b"mine\n")
    subprocess.run([*git, "stash", "-q"], check=True)
    marked = note.data + b"<<<<<<< Updated upstream\ntheirs\n=======\nmine\n>>>>>>> Stashed changes\n"
    (store.root / kept.path).write_bytes(marked)
    found = examine(Look(Store.open(store.root, cwd=store.cwd, clock=store.clock)))
    stash = next(finding for finding in found if finding.code == "stash")
    assert stash.severity == WARNING and kept.path in stash.message
    assert kept.path in json.dumps(data(store, "conflicts"))


def test_h7_h16_hooks_do_not_go_through_a_shell_and_the_doctor_says_so(store: Store) -> None:
    path = settings_path("user", store.cwd)
    install_hooks(path)
    settings = json.loads(path.read_text())
    hooks = [hook for groups in settings["hooks"].values() for group in groups for hook in group["hooks"]]
    assert hooks and all(isinstance(hook["args"], list) and os.path.isabs(hook["command"]) for hook in hooks)
    found = {finding.code: finding for finding in examine(Look(store))}
    assert "hook-shell" not in found and "2.0.76" in found["claude-version"].message


def test_h12_the_model_sees_clean_text(store: Store) -> None:
    remember(store, Memory("decision", "We deploy on Thursdays.", extra={"pinned": "true"}))
    payload = {"session_id": "s", "cwd": str(store.root), "hook_event_name": "SessionStart", "source": "startup"}
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "mdmem", "hook", "SessionStart"]
    text = json.dumps(payload)
    done = subprocess.run(command, cwd=store.root, env=env, input=text, capture_output=True, text=True, timeout=60)
    text = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    assert "We deploy on Thursdays." in text and '{"' not in text and "\\n" not in text


def test_i26_a_bulk_forget_in_one_scope_leaves_the_others(store: Store) -> None:
    for scope in ("project:a", "project:b", "shared"):
        for number in range(3):
            remember(store, Memory("fact", f"{scope} fact {number}", scope=scope))
    done = mdmem(store, "forget", "--where", "--scope", "project:a")
    assert done.returncode == 0, done.stderr
    left = data(store, "list")["notes"]
    assert sorted({row["scope"] for row in left}) == ["project:b", "shared"] and len(left) == 6  # type: ignore[attr-defined,arg-type]
    assert len(list((store.root / "memories").glob("*.md"))) == 9


def test_i30_the_command_ends(store: Store) -> None:
    remember(store, Memory("fact", "Ports are open."))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MDMEM_SERVE": "auto"}
    line = f'"{sys.executable}" -m mdmem recall ports --keyword && echo done'
    done = subprocess.run(["sh", "-c", line], cwd=store.root, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.endswith("done\n")


def test_i31_identity_is_by_id_and_content_not_by_score(store: Store) -> None:
    first = remember(store, Memory("fact", "The authentication service runs on port 8443."))
    second = remember(store, Memory("fact", "The auth server listens on 8443."))
    again = remember(store, Memory("fact", "The  authentication service\nruns on port 8443."))
    assert second.action == "created" and second.id != first.id
    assert (again.action, again.id) == ("unchanged", first.id)


def test_i33_many_superseded_versions_do_not_fill_the_answer(store: Store) -> None:
    for number in range(50):
        remember(store, Memory("fact", f"The deploy port is {9000 + number}.", title=f"Deploy port {number}"))
    forget(store, [row["path"] for row in store.index.catalog.rows("SELECT path FROM notes")])
    current = remember(store, Memory("fact", "The deploy port is 8443."))
    for name in ("gateway", "proxy", "metrics", "admin"):
        remember(store, Memory("fact", f"The {name} port is open for deploy checks."))
    found = recall(store, Query("deploy port", limit=5, mode="keyword"))
    assert len(found.results) == 5 and found.results[0].id == current.id


def test_i36_ten_hits_of_one_session_fill_the_answer(store: Store) -> None:
    body = "\n\n".join(f"## Part {number}\n\nThe deploy gate number {number} opened late.\n" for number in range(10))
    folder = store.root / "sessions" / "2026" / "11"
    folder.mkdir(parents=True)
    for number in range(10):
        (folder / f"s{number}.md").write_text(f"---\nkind: session\nsession: one\ntitle: Session {number}\n---\n\n{body}")
    found = recall(store, Query("deploy gate opened late", limit=5, mode="keyword"))
    assert len(found.results) == 5 and len({hit.path for hit in found.results}) == 5


def test_i37_opposites_and_different_values_are_never_one_note(store: Store) -> None:
    texts = ("Always use tabs.", "Never use tabs.", "a b", "c d", "The Acme X1 costs 5.", "The Acme X2 costs 5.")
    ids = {remember(store, Memory("preference", text)).id for text in texts}
    assert len(ids) == len(texts)
    assert len(recall(store, Query("use tabs", mode="keyword")).results) == 2


def test_i39_recalls_leave_no_tracked_file_dirty(store: Store) -> None:
    remember(store, Memory("fact", "Ports are open."))
    for _ in range(200):
        recall(store, Query("ports", mode="keyword"))
    done = subprocess.run(["git", "-C", str(store.root), "status", "--porcelain"], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_i43_a_window_without_data_is_a_valid_answer(store: Store) -> None:
    assert isinstance(store.clock, FixedClock)
    for args in (("handoff", "--no-save"), ("diff", "2020-01-01", "2020-01-02"), ("graph", "diff", "2020-01-01", "2020-01-02")):
        done = mdmem(store, *args, "--json")
        assert done.returncode == 0, (args, done.stderr)
        assert isinstance(json.loads(done.stdout), dict)
    assert recall(store, Query("nothing", filters=Filters(types=()))).results == []


def test_n2_a_deleted_name_with_umlauts_is_committed_and_merged(tmp_path: Path) -> None:
    gone, kept = "memories/hyvää yötä.md", "memories/b.md"
    one, two = World(tmp_path / "world").pair({gone: "---\nid: mem-a\n---\na\n", kept: "---\nid: mem-b\n---\nb\n"})
    (one.top / gone).unlink()
    two.write(kept, "---\nid: mem-b\n---\nchanged\n")
    for clone in (one, two, one):
        assert clone.sync().state in ("pushed", "merged", "clean")
    assert one.files() == two.files() and gone not in one.files()
    assert "changed" in one.read(kept)
    for clone in (one, two):
        clone.healthy()
