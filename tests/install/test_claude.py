"""Installing into Claude Code's settings: foreign keys and hooks stay, ours stand once, and go without a trace."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mdmem.errors import ConflictFound, Refused
from mdmem.hooks.entry import HANDLERS
from mdmem.install.claude import install_hooks, is_ours, settings_path, uninstall_hooks, wanted
from mdmem.install.json_text import BadJson
from mdmem.install.settings_file import read_settings

FOREIGN = """{
    "zebra": {"a": [1, 2,   3], "b": 1.50e3},
    "hooks": {
        "Stop": [ {"hooks": [{"type": "command", "command": "echo \\u00e9"}]} ],
        "PostToolUse": [
            {
                "matcher": "Write",
                "hooks": [
                    {
                        "type": "command",
                        "command": "prettier"
                    }
                ]
            }
        ],
        "PreToolUse": []
    },
    "env": {"K": "v"}
}
"""

FILES = {
    "foreign": FOREIGN,
    "minified": '{"model":"opus","hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}}',
    "object": "{}",
    "object and newline": "{}\n",
    "open object": "{\n}\n",
    "no final newline": '{\n  "a": 1\n}',
    "tabs": '{\n\t"a": 1,\n\t"hooks": {}\n}\n',
    "empty hooks": '{\n  "hooks": {}\n}\n',
    "empty event": '{\n  "hooks": {\n    "Stop": []\n  }\n}\n',
    "crlf": FOREIGN.replace("\n", "\r\n"),
    "bom": "\ufeff" + FOREIGN,
    "blank": "\n",
    "nothing": "",
    "inline": '{ "a": 1, "b": {} }\n',
}


def ours(path: Path) -> list[tuple[str, str]]:
    """Return (event, event in the command) of each entry of ours in a settings file."""
    found = []
    data = json.loads(path.read_text("utf-8-sig"))
    for event, groups in data.get("hooks", {}).items():
        for group in groups:
            found += [(event, hook["args"][-1]) for hook in group["hooks"] if is_ours(hook)]
    return found


def without_ours(text: str) -> object:
    data = json.loads(text)
    for event, groups in list(data.get("hooks", {}).items()):
        data["hooks"][event] = [g for g in groups if not any(is_ours(h) for h in g["hooks"])]
        if not data["hooks"][event]:
            del data["hooks"][event]
    return data


@pytest.mark.parametrize("name", FILES)
def test_h18_foreign_keys_and_hooks_stay_and_uninstall_leaves_the_same_bytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "settings.json"
    before = FILES[name].encode()
    path.write_bytes(before)
    assert install_hooks(path).written
    once = path.read_bytes()
    assert sorted(ours(path)) == sorted((event, event) for event in wanted())
    assert not install_hooks(path).changed
    assert path.read_bytes() == once
    if "hooks" in FILES[name]:
        original = json.loads(FILES[name].lstrip("\ufeff"))
        kept = json.loads(once.decode("utf-8-sig"))
        assert list(kept)[: len(original)] == list(original)
        for event, groups in original["hooks"].items():
            assert kept["hooks"][event][: len(groups)] == groups
    assert once.startswith(b"\xef\xbb\xbf") == before.startswith(b"\xef\xbb\xbf")
    assert (b"\r\n" in once) == (b"\r\n" in before) and once.count(b"\n") >= before.count(b"\n")
    if b"\r\n" in before:
        assert once.count(b"\r\n") == once.count(b"\n")
    assert uninstall_hooks(path).written
    assert path.read_bytes() == before
    assert not uninstall_hooks(path).changed


def test_a_file_that_was_not_there_is_gone_again(tmp_path: Path) -> None:
    path = tmp_path / "a b" / "settings.json"
    assert install_hooks(path).written
    assert path.read_bytes().endswith(b"}\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    uninstall_hooks(path)
    assert not path.exists()


def test_other_lines_are_untouched(tmp_path: Path) -> None:
    """Every line of the file is still there, in order, but for a comma at the end."""
    path = tmp_path / "settings.json"
    path.write_text(FOREIGN)
    install_hooks(path)
    lines = iter(path.read_text().splitlines())
    for line in FOREIGN.splitlines():
        assert any(found.rstrip(",") == line.rstrip(",") or found.startswith(line[:60]) for found in lines), line


def test_what_a_person_adds_afterwards_survives_uninstall(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(FOREIGN)
    install_hooks(path)
    data = json.loads(path.read_text())
    data["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "later"}]})
    # A person moved our entry into a group of their own.
    data["hooks"]["PostToolUse"][0]["hooks"].append(data["hooks"]["PostToolUse"].pop()["hooks"][0])
    data["late"] = True
    path.write_text(json.dumps(data, indent=4))
    uninstall_hooks(path)
    left = json.loads(path.read_text())
    assert ours(path) == []
    assert left["late"] is True
    assert [g["hooks"][0]["command"] for g in left["hooks"]["Stop"]] == ["echo é", "later"]
    assert left["hooks"]["PostToolUse"] == json.loads(FOREIGN)["hooks"]["PostToolUse"]


def test_an_older_entry_of_ours_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    old = {"type": "command", "command": "/old/bin/mdmem hook Stop", "timeout": 600}
    flat = {"type": "command", "command": "/old/python", "args": ["-m", "mdmem", "hook", "SessionStart"]}
    path.write_text(
        json.dumps({"hooks": {"Stop": [{"hooks": [old]}], "SessionStart": [{"hooks": [flat]}], "Setup": [{"hooks": [old]}]}})
    )
    install_hooks(path)
    assert sorted(ours(path)) == sorted((event, event) for event in wanted())
    assert "/old/" not in path.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"a": }',
        '{"a": 1,}',
        "[1]",
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        '{"a": 1} x',
        '{"hooks": {}, "hooks": {}}',
        "\x00",
        "{'a': 1}",
    ],
)
def test_h18_a_broken_file_is_refused_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises((BadJson, Refused)):
        install_hooks(path)
    assert path.read_text() == text
    assert os.listdir(tmp_path) == ["settings.json"]


def test_not_utf8_and_not_a_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(Refused):
        install_hooks(path)
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(Refused):
        install_hooks(folder)


def test_h15_a_byte_order_mark_is_read_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"\xef\xbb\xbf" + FOREIGN.encode())
    install_hooks(path)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf{")
    assert path.read_bytes().count(b"\xef\xbb\xbf") == 1


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text(FOREIGN)
    real.chmod(0o640)
    link = tmp_path / "settings.json"
    link.symlink_to(real)
    install_hooks(link)
    assert link.is_symlink() and len(ours(real)) == len(wanted())
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    uninstall_hooks(link)
    assert link.is_symlink() and real.read_text() == FOREIGN


def test_a_file_that_changes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    file = read_settings(path)
    path.write_text('{"by": "somebody else"}')
    with pytest.raises(ConflictFound):
        file.write('{"ours": 1}')
    assert path.read_text() == '{"by": "somebody else"}'


def test_dry_run_writes_nothing_and_shows_the_change(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(FOREIGN)
    done = install_hooks(path, dry_run=True)
    assert done.changed and not done.written and path.read_text() == FOREIGN
    assert "+            {" in done.diff and "SessionStart" in done.diff
    missing = tmp_path / "none" / "settings.json"
    assert install_hooks(missing, dry_run=True).changed
    assert not missing.parent.exists()


def test_h1_h2_each_entry_has_a_time_limit_of_small_whole_seconds() -> None:
    for event, groups in wanted().items():
        for group in groups:
            for hook in group["hooks"]:
                assert isinstance(hook["timeout"], int) and 1 <= hook["timeout"] <= 30, event
                assert hook.get("async", False) == (event == "SessionEnd")
                assert "shell" not in hook and "if" not in hook


def test_h14_the_command_is_an_absolute_interpreter_in_exec_form() -> None:
    events = wanted()
    assert set(events) <= set(HANDLERS)
    assert {"SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "PreCompact", "Stop"} <= set(events)
    assert {"SubagentStart", "SubagentStop", "SessionEnd", "FileChanged"} <= set(events)
    for event, groups in events.items():
        (hook,) = groups[0]["hooks"]
        assert os.path.isabs(hook["command"]) and os.path.exists(hook["command"])
        assert hook["args"][-1] == event and all(isinstance(word, str) for word in hook["args"])
    assert "matcher" not in events["SessionStart"][0], "compact and resume inject again"


@pytest.mark.parametrize("folder", ["a b", "it's $HOME", 'q"x', "记录", "back\\slash"])
def test_h13_the_hook_runs_with_any_character_in_the_path(tmp_path: Path, folder: str) -> None:
    """As the host does it: no shell, stdin with a payload, exit 0 and nothing on stdout."""
    place = tmp_path / folder
    place.mkdir()
    python = place / "python"
    python.symlink_to(sys.executable)
    path = place / "settings.json"
    install_hooks(path, python=str(python))
    hook = json.loads(path.read_text("utf-8"))["hooks"]["Stop"][0]["hooks"][0]
    payload = json.dumps({"hook_event_name": "Stop", "cwd": str(place), "session_id": "s"}).encode()
    done = subprocess.run([hook["command"], *hook["args"]], input=payload, capture_output=True, cwd=place, timeout=20)
    assert (done.returncode, done.stdout) == (0, b"")
    assert uninstall_hooks(path).events


def test_scopes_name_the_files_that_claude_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(os.environ["HOME"])
    assert settings_path("user", tmp_path) == home / ".claude" / "settings.json"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "c"))
    assert settings_path("user", tmp_path) == tmp_path / "c" / "settings.json"
    assert settings_path("project", tmp_path) == tmp_path / ".claude" / "settings.json"
    assert settings_path("local", tmp_path) == tmp_path / ".claude" / "settings.local.json"


def test_auto_memory_is_set_and_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{\n  "a": 1\n}\n')
    install_hooks(path, memory="/store/claude/shop")
    assert json.loads(path.read_text())["autoMemoryDirectory"] == "/store/claude/shop"
    install_hooks(path, memory="/elsewhere/claude/shop")
    assert json.loads(path.read_text())["autoMemoryDirectory"] == "/elsewhere/claude/shop"
    uninstall_hooks(path)
    assert path.read_text() == '{\n  "a": 1\n}\n'
    path.write_text('{"autoMemoryDirectory": "~/mine"}')
    with pytest.raises(Refused):
        install_hooks(path, memory="/store/claude/shop")
    assert path.read_text() == '{"autoMemoryDirectory": "~/mine"}'
    install_hooks(path)
    uninstall_hooks(path)
    assert path.read_text() == '{"autoMemoryDirectory": "~/mine"}'
