"""The entry: exit 0 and at most one JSON object, whatever comes in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mdmem.install.command import hook_argv
from tests.hooks.host import SAMPLES, Done, add_note, environment, payload, run_hook, sample, spooled

EVENTS = sorted(SAMPLES)
SILENT = sorted(set(SAMPLES) - {"SessionStart", "UserPromptSubmit"})


def quiet(done: Done) -> None:
    assert done.code == 0, done.err.decode()
    assert done.out == b""


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PreToolUse"])
@pytest.mark.parametrize(
    "data",
    [b"", b"\xef\xbb\xbf", b"\x00\xff\xfe{", b"null", b"[]", b'""', b"{}", b'{"session_id": "x", "cwd": "/tm', b"[" * 100000],
    ids=["empty", "bom", "garbage", "null", "list", "string", "nothing", "truncated", "deep"],
)
def test_h21_h15_what_is_no_payload_is_ignored(event: str, data: bytes, project: Path) -> None:
    quiet(run_hook(event, data, cwd=project))


@pytest.mark.parametrize("event", SILENT)
def test_h6_events_that_say_nothing_print_nothing(event: str, project: Path) -> None:
    quiet(run_hook(event, sample(event, project), cwd=project))


@pytest.mark.parametrize("event", EVENTS)
def test_h21_missing_cwd(event: str, project: Path) -> None:
    data = sample(event, project)
    del data["cwd"]
    quiet(run_hook(event, data, cwd=project))


def test_h22_a_mistyped_hook_line_never_blocks_a_prompt(project: Path) -> None:
    argv = [*hook_argv("UserPromptSubmit"), "--no-such-option"]
    done = run_hook("", sample("PreCompact", project), cwd=project, argv=argv)
    quiet(done)
    module = [sys.executable, "-m", "mdmem", "hook", "UserPromptSubmit", "--no-such-option"]
    top = Path(__file__).resolve().parents[2]
    quiet(run_hook("", b"", cwd=project, argv=module, env={"PYTHONPATH": str(top)}))


@pytest.mark.parametrize("argv", [None, [sys.executable, "-m", "mdmem", "hook", "Stop"]])
def test_h4_inside_another_hooks_work_nothing_is_captured(project: Path, store: Path, argv: list[str] | None) -> None:
    quiet(run_hook("Stop", sample("Stop", project), cwd=project, argv=argv, env={"MDMEM_HOOK": "1"}))
    assert spooled(store) == []
    quiet(run_hook("Stop", sample("Stop", project), cwd=project, argv=argv))
    assert [r["k"] for r in spooled(store)] == ["said"]


def test_the_event_is_taken_from_the_payload(project: Path, store: Path) -> None:
    argv = hook_argv("x")[:-1]
    quiet(run_hook("", sample("Stop", project), cwd=project, argv=argv))
    # What the host says wins over what was written into the settings.
    quiet(run_hook("PostToolUse", sample("PreCompact", project), cwd=project))
    assert [r["k"] for r in spooled(store)] == ["said", "compact"]


def test_bom_and_missing_fields(project: Path, store: Path) -> None:
    quiet(run_hook("Stop", b"\xef\xbb\xbf" + json.dumps(sample("Stop", project)).encode(), cwd=project))
    assert len(spooled(store)) == 1
    for event in SILENT:
        quiet(run_hook(event, {"cwd": str(project), "hook_event_name": event}, cwd=project))


@pytest.mark.parametrize("event", ["Stop", "PostToolUse", "PreToolUse", "UserPromptSubmit"])
def test_five_megabytes(event: str, project: Path) -> None:
    data = sample(event, project)
    big = "word " * (1 << 20)
    data |= {"prompt": "/" + big, "last_assistant_message": big, "tool_response": {"content": big}}
    done = run_hook(event, data, cwd=project)
    quiet(done)
    assert done.seconds < 5


def test_beyond_the_limit_is_drained_and_dropped(project: Path, store: Path) -> None:
    quiet(run_hook("Stop", b'{"x": "' + b"a" * (9 << 20), cwd=project))
    assert spooled(store) == []


@pytest.mark.parametrize("event", ["Stop", "SessionStart", "PreToolUse"])
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "0<&- 1>&- 2>&-"])
def test_closed_descriptors(event: str, closed: str, project: Path, tmp_path: Path) -> None:
    data = tmp_path / "payload"
    data.write_text(json.dumps(sample(event, project)))
    words = " ".join(f"'{word}'" for word in hook_argv(event))
    stdin = "" if "0<" in closed else f"<'{data}'"
    done = subprocess.run(["sh", "-c", f"{words} {stdin} {closed}"], cwd=project, env=environment(), timeout=30, check=False)
    assert done.returncode == 0


def test_a_reader_that_went_away(project: Path) -> None:
    process = subprocess.Popen(hook_argv("SessionStart"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
    assert process.stdout is not None and process.stdin is not None
    process.stdout.close()
    process.stdin.write(json.dumps(sample("SessionStart", project)).encode())
    process.stdin.close()
    assert process.wait(30) == 0


def test_no_home(store: Path, tmp_path: Path) -> None:
    env = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"))
    for event in EVENTS:
        done = run_hook(event, sample(event, store), cwd=store, env=env)
        assert done.code == 0
        assert done.answer is None or done.answer["hookSpecificOutput"]["hookEventName"] == event


def test_an_ignored_event_imports_next_to_nothing(project: Path) -> None:
    argv = hook_argv("PreToolUse")
    argv[1:1] = ["-X", "importtime"]
    done = subprocess.run(argv, input=b"{}", capture_output=True, cwd=project, env=environment(), check=True)
    names = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.decode().splitlines()}
    assert {n for n in names if n.startswith("mdmem")} == {"mdmem", "mdmem.hooks", "mdmem.hooks.entry"}
    assert not names & {"json", "re", "pathlib", "click", "yaml", "typing", "subprocess"}


@pytest.mark.parametrize("event", ["Stop", "SubagentStop", "PreCompact"])
def test_a_turns_end_imports_little(event: str, project: Path) -> None:
    run_hook(event, sample(event, project), cwd=project)
    argv = hook_argv(event)
    argv[1:1] = ["-X", "importtime"]
    data = json.dumps(sample(event, project)).encode()
    done = subprocess.run(argv, input=data, capture_output=True, cwd=project, env=environment(), check=True)
    names = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.decode().splitlines()}
    heavy = {"click", "yaml", "git", "numpy", "whoosh", "onnxruntime", "sqlite3", "tomllib", "dataclasses", "pathlib", "typing"}
    assert not names & (heavy | {"subprocess", "hashlib", "mdmem.locate", "mdmem.store", "mdmem.config"})


def test_the_folder_that_the_agent_works_in_is_not_on_the_import_path(project: Path, store: Path) -> None:
    (project / "json.py").write_text("import os; open('ran', 'w').close()")
    (project / "mdmem").mkdir()
    (project / "mdmem" / "__init__.py").write_text("open('ran', 'w').close()")
    quiet(run_hook("Stop", sample("Stop", project), cwd=project))
    assert not (project / "ran").exists()
    assert spooled(store)


def test_a_failure_is_told_once_at_the_next_start(project: Path, store: Path, tmp_path: Path) -> None:
    spool = store / ".git" / "mdmem"
    spool.mkdir()
    (spool / "spool").write_text("a file where the folder should be")
    quiet(run_hook("Stop", sample("Stop", project) | {"last_assistant_message": "token=hunter2hunter2"}, cwd=project))
    log = Path(os.environ["XDG_DATA_HOME"]) / "mdmem" / "log" / "hooks.log"
    assert "Stop" in log.read_text()
    assert "hunter2" not in log.read_text()
    first = run_hook("SessionStart", sample("SessionStart", project), cwd=project)
    assert first.answer is not None and "a hook failed" in first.answer["systemMessage"]
    (spool / "spool").unlink()
    again = run_hook("SessionStart", sample("SessionStart", project), cwd=project)
    assert again.code == 0 and "systemMessage" not in (again.answer or {})


def test_p16_the_environment_is_never_logged(project: Path, store: Path) -> None:
    (store / ".git" / "mdmem").write_text("in the way")
    env: dict[str, str | None] = {"CLAUDE_CODE_MESSAGING_TOKEN": "tok-very-own-1234567890"}
    quiet(run_hook("Stop", sample("Stop", project), cwd=project, env=env))
    for file in Path(os.environ["XDG_DATA_HOME"]).rglob("*"):
        if file.is_file():
            assert b"tok-very-own" not in file.read_bytes()


def test_other_packages_are_found_when_they_are_needed(tmp_path: Path) -> None:
    """Hooks start without `site`; what an event needs of other packages comes with the first import of one."""
    main = hook_argv("x")[-2]
    code = (
        "import runpy, sys; sys.argv = ['main.py', 'PreToolUse']\n"
        f"runpy.run_path({main!r}, run_name='main')['main']()\n"
        "import yaml, numpy; print(len(yaml.safe_load('[1, 2]')), int(numpy.ones(3).sum()))\n"
        "try: import no_such_package\nexcept ModuleNotFoundError: print('none')"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], input=b"{}", capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == [b"2", b"3", b"none"]


def test_quiet_events_import_neither_json_nor_re(project: Path, store: Path) -> None:
    fields = {"tool_name": "Edit", "tool_input": {"file_path": str(store / "memories/a.md")}}
    add_note(store, "memories/a.md", "A fact.", type="fact", title="A")
    data = json.dumps({**payload("PostToolUse", project), **fields}).encode()
    run_hook("PostToolUse", data, cwd=project)
    main = hook_argv("x")[-2]
    code = (
        "import runpy, sys; sys.argv = ['main.py', 'PostToolUse']\n"
        f"runpy.run_path({main!r}, run_name='main')['main']()\n"
        "print(sorted({'json', 're', 'enum', 'socket', 'site', 'subprocess'} & set(sys.modules)), file=sys.stderr)"
    )
    argv = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(argv, input=data, capture_output=True, check=True, cwd=project)
    # runpy itself brings some of them in; what the event adds is none of the others.
    assert not {b"'json'", b"'socket'", b"'subprocess'", b"'site'"} & set(done.stderr.strip(b"[]\n").split(b", "))


LOUD = """
import sys, types
from mdmem.hooks import entry
loud = types.ModuleType("loud")
exec('''
import os, subprocess
def handler(payload):
    print("noise", flush=True)
    os.write(1, b"noise")
    subprocess.run(["echo", "noise"])
    return {"answer": 1}
''', loud.__dict__)
sys.modules["loud"] = loud
entry.HANDLERS["Stop"] = "loud:handler"
sys.exit(entry.run_hook(["Stop"]))
"""


def test_h6_what_a_library_prints_is_not_in_the_answer(project: Path) -> None:
    done = run_hook("Stop", sample("Stop", project), cwd=project, argv=[sys.executable, "-c", LOUD])
    assert done.code == 0 and json.loads(done.out) == {"answer": 1}


def test_p8_the_log_of_hooks_holds_no_secret(own_home: Path) -> None:
    from mdmem.config import data_home
    from mdmem.hooks.failures import record, untold

    secret = "".join(("Tr0ub", "4dor", "&3xQ"))
    try:
        raise ValueError(f"cannot reach https://bob:{secret}@host/ with password={secret}")
    except ValueError as error:
        record("Stop", error)
    told = (data_home() / "log" / "hooks.log").read_text() + untold(str(data_home()))
    assert "ValueError" in told and "cannot reach" in told and secret not in told.replace('"".join', "")


SLOW = """
import sys, types
from mdmem.hooks import entry
slow = types.ModuleType("slow")
exec('''
import time
def handler(payload):
    while True:
        time.sleep(0.05)
''', slow.__dict__)
sys.modules["slow"] = slow
entry.HANDLERS["Stop"] = "slow:handler"
entry.LIMIT["Stop"] = 0.5
sys.exit(entry.run_hook(["Stop"]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs an alarm")
def test_a_hook_that_takes_too_long_gives_up_and_says_nothing(project: Path) -> None:
    done = run_hook("Stop", sample("Stop", project), cwd=project, argv=[sys.executable, "-c", SLOW])
    assert done.code == 0 and done.out == b"" and done.seconds < 30


@pytest.mark.skipif(os.name == "nt", reason="needs flock")
def test_h5_the_workers_lock_is_held_once(tmp_path: Path) -> None:
    from mdmem.hooks.queue import hold_lock

    first = hold_lock(str(tmp_path))
    assert first is not None and hold_lock(str(tmp_path)) is None
    os.close(first)
    again = hold_lock(str(tmp_path))
    assert again is not None
    os.close(again)
