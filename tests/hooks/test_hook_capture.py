"""What tool and turn events leave behind."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from mdmem.hooks.tools import program
from tests.hooks.host import SESSION, git, payload, run_hook, sample, spooled, wait_until, workers_of


def used(project: Path, tool: str, given: dict[str, object], event: str = "PostToolUse", **fields: object) -> None:
    data = payload(event, project, tool_name=tool, tool_input=given, tool_use_id="t1", **fields)
    done = run_hook(event, data, cwd=project)
    assert (done.code, done.out) == (0, b"")


def test_an_observation_names_tool_files_and_outcome(project: Path, store: Path) -> None:
    used(project, "Read", {"file_path": str(project / "src" / "a.py")})
    used(project, "mcp__tracker__search", {"query": "x"}, "PostToolUseFailure", error="no such ticket\nmore")
    one, two = spooled(store)
    assert (one["tool"], one["files"], one["ok"]) == ("Read", ["src/a.py"], True)
    assert (two["tool"], two["ok"]) == ("mcp__tracker__search", False)


def test_p7_commands_are_not_captured_word_for_word(project: Path, store: Path) -> None:
    command = "PGPASSWORD=hunter2xyz psql -h db.internal -c 'select 1' && rm -rf build"
    used(project, "Bash", {"command": command, "description": "Ask the database"})
    error = f"Exit code 2\n/bin/sh: {command}: not found"
    used(project, "Bash", {"command": command, "description": "Ask again"}, "PostToolUseFailure", error=error)
    text = json.dumps(spooled(store))
    assert "hunter2" not in text and "db.internal" not in text and "rm -rf" not in text
    one, two = spooled(store)
    assert (one["program"], one["ok"]) == ("psql", True)
    assert (two["program"], two["ok"], two["error"]) == ("psql", False, "exit code 2")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("git status", "git"),
        ("cd /x && make test", "make"),
        ("A=1 B=2 sudo /usr/bin/python3.11 x.py", "python3.11"),
        ("export X=1; npm run build", "npm"),
        ("$(cat secret) x", ""),
        ("'quoted name' x", ""),
        ("", ""),
        (None, ""),
        ("cd x", ""),
    ],
)
def test_the_programs_name(command: object, name: str) -> None:
    assert program(command) == name


def test_the_batch_repeats_what_single_events_told(project: Path, store: Path) -> None:
    used(project, "Bash", {"command": "false", "description": "fail"}, "PostToolUseFailure", error="Exit code 1")
    run_hook("PostToolBatch", sample("PostToolBatch", project), cwd=project)
    assert len(spooled(store)) == 1


def test_ten_at_once_leave_one_observation_each(project: Path, store: Path) -> None:
    import subprocess

    from mdmem.install.command import hook_argv
    from tests.hooks.host import environment

    run_hook("Stop", sample("Stop", project), cwd=project)
    argv = hook_argv("PostToolUse")
    running = []
    for number in range(10):
        data = payload("PostToolUse", project, tool_name="Read", tool_input={"file_path": f"f{number}.py"})
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), cwd=project)
        assert process.stdin is not None
        process.stdin.write(json.dumps(data).encode())
        process.stdin.close()
        running.append(process)
    for process in running:
        assert process.wait(30) == 0
        assert process.stdout is not None and process.stdout.read() == b""
    assert len([r for r in spooled(store) if r["k"] == "tool"]) == 10


def test_a_turn_and_a_compaction_leave_their_text(project: Path, store: Path) -> None:
    for event in ("Stop", "PreCompact", "PostCompact", "SubagentStart", "SubagentStop"):
        done = run_hook(event, sample(event, project), cwd=project)
        assert (done.code, done.out) == (0, b"")
    records = spooled(store)
    assert [r["k"] for r in records] == ["said", "compact", "summary", "sub", "said"]
    assert records[4]["a"] == "Explore" and "a" not in records[0]


def test_h27_a_machines_prompt_is_not_the_users_word(project: Path, store: Path) -> None:
    for source in ("loop_wakeup", "schedule_wakeup", "system"):
        data = payload("UserPromptSubmit", project, prompt="what do we know about billing here?", source=source)
        done = run_hook("UserPromptSubmit", data, cwd=project)
        assert (done.code, done.out) == (0, b"")
    assert spooled(store) == []
    run_hook("UserPromptSubmit", payload("UserPromptSubmit", project, prompt="hello", source="user"), cwd=project)
    assert [r["text"] for r in spooled(store)] == ["hello"]


def test_capture_can_be_turned_off(project: Path, store: Path) -> None:
    for event in ("Stop", "PostToolUse", "UserPromptSubmit", "SessionEnd"):
        run_hook(event, sample(event, project), cwd=project, env={"MDMEM_HOOKS_CAPTURE": "off"})
    assert spooled(store) == []


def test_an_untrusted_store_is_never_written(tmp_path: Path) -> None:
    from tests.hooks.host import make_store

    root = make_store(tmp_path / "cloned", trusted=False)
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "PostToolUse", "SessionEnd"):
        done = run_hook(event, sample(event, root), cwd=root)
        assert (done.code, done.out) == (0, b"")
    assert not (root / ".git" / "mdmem").exists()


def test_trust_that_ends_is_noticed(project: Path, store: Path) -> None:
    from mdmem.locate import trusted_file

    run_hook("Stop", sample("Stop", project), cwd=project)
    assert len(spooled(store)) == 1
    trusted_file().unlink()
    run_hook("SubagentStop", sample("SubagentStop", project), cwd=project)
    assert len(spooled(store)) == 1


def test_h28_subfolder_and_worktree_are_the_same_project(project: Path, store: Path, tmp_path: Path) -> None:
    from mdmem.hooks.place import find_place

    (project / "src" / "deep").mkdir(parents=True)
    git(project, "commit", "-q", "--allow-empty", "-m", "x")
    git(project, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other place"))
    found = [find_place(str(p)) for p in (project, project / "src" / "deep", tmp_path / "other place")]
    assert {(p.root, p.scope) for p in found if p} == {(str(store), "project:shop")}
    assert None not in found


def test_h28_a_worktree_of_the_store_shares_the_spool(store: Path, tmp_path: Path) -> None:
    from mdmem.hooks.place import find_place
    from mdmem.locate import trust

    git(store, "worktree", "add", "-q", str(tmp_path / "second"))
    trust("st-test", "", tmp_path / "second")
    one, two = find_place(str(store)), find_place(str(tmp_path / "second"))
    assert one is not None and two is not None
    assert one.common == two.common and one.state != two.state


@pytest.mark.parametrize("name", ["with space", "项目 一", "quo'te\"d"])
def test_odd_paths(name: str, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setenv("MDMEM_REPO", str(store))
    run_hook("Stop", sample("Stop", folder), cwd=folder)
    assert len(spooled(store)) == 1


def test_a_store_made_later_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.hooks.host import make_store

    root = tmp_path / "late"
    root.mkdir()
    run_hook("Stop", sample("Stop", root), cwd=root)
    make_store(root)
    run_hook("Stop", sample("Stop", root), cwd=root)
    assert len(spooled(root)) == 1
    shutil.rmtree(root)
    done = run_hook("Stop", sample("Stop", root))
    assert (done.code, done.out) == (0, b"")
    assert not root.exists()


def test_the_session_id_names_the_file(project: Path, store: Path) -> None:
    data = sample("Stop", project) | {"session_id": "../../../escape"}
    run_hook("Stop", data, cwd=project)
    assert len(list((store / ".git" / "mdmem" / "spool").iterdir())) == 1
    assert spooled(store, SESSION) == []


def test_no_child_stays_in_our_group_or_on_our_pipes(project: Path, store: Path, tmp_path: Path) -> None:
    """The process that an edited note starts has its own session, and stdio on the null device."""
    import subprocess

    from mdmem.install.command import hook_argv
    from tests.hooks.host import environment

    note = store / "memories" / "a.md"
    note.write_text("---\ntitle: A\n---\nbody\n")
    data = payload("PostToolUse", store, tool_name="Write", tool_input={"file_path": str(note)})
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    process = subprocess.Popen(
        hook_argv("PostToolUse"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment({"MDMEM_WORKER_SETTLE": "2"}),
        start_new_session=True,
        pass_fds=[writer],
    )
    os.close(writer)
    out, _ = process.communicate(json.dumps(data).encode(), timeout=30)
    assert out == b""
    wait_until(lambda: workers_of(tmp_path))
    (worker,) = workers_of(tmp_path)
    assert os.getsid(worker) == worker
    links = {n: os.readlink(f"/proc/{worker}/fd/{n}") for n in (0, 1, 2)}
    assert set(links.values()) == {"/dev/null"}
    # Nobody holds the host's pipe any more: reading it ends at once.
    assert os.read(reader, 1) == b""
