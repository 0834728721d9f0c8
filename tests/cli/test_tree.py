"""Every command: help with examples, --json, documented exit codes, no prompt, no colour, lazy start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mdmem.cli.main import COMMANDS, HIDDEN, group

ROOT = Path(__file__).resolve().parents[2]
# Commands that print no data of their own.
WITHOUT_JSON = {"completion", "dashboard", "serve", "mcp"}


def walk() -> Iterator[tuple[str, click.Command]]:
    """Yield (words, command) for the whole tree, hidden names too."""
    context = click.Context(group)
    for name in [*COMMANDS, *HIDDEN]:
        command = group.get_command(context, name)
        assert command is not None, name
        yield name, command
        if isinstance(command, click.Group):
            for below in command.list_commands(click.Context(command)):
                found = command.get_command(click.Context(command), below)
                assert found is not None
                yield f"{name} {below}", found


def run(*args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mdmem", *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


TREE = list(walk())


@pytest.mark.parametrize(("words", "command"), TREE, ids=[words for words, _ in TREE])
def test_help_opens_with_examples(words: str, command: click.Command) -> None:
    help_text = command.get_help(click.Context(command, info_name=f"mdmem {words}"))
    assert "Examples:" in help_text, "no examples"
    shown = help_text.split("Examples:")[1].split("\n\n")[0]
    lines = [line for line in shown.splitlines() if "mdmem" in line]
    assert 2 <= len(lines) <= 4, shown
    assert (command.help or "").strip()


@pytest.mark.parametrize(("words", "command"), TREE, ids=[words for words, _ in TREE])
def test_every_option_has_a_help_and_data_commands_take_json(words: str, command: click.Command) -> None:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, f"{words} {parameter.opts}"
    if not isinstance(command, click.Group) and words.split()[0] not in WITHOUT_JSON:
        assert any("--json" in parameter.opts for parameter in command.params), words


def test_the_list_of_commands_names_each_once() -> None:
    assert not set(COMMANDS) & set(HIDDEN)
    done = run("--help")
    assert done.returncode == 0
    for name, (_, text) in COMMANDS.items():
        assert name in done.stdout and len(text) < 80


def test_version_starts_without_click() -> None:
    code = (
        "import sys; sys.argv = ['mdmem', '--version']\n"
        "from mdmem.__main__ import main\nassert main() == 0\n"
        "heavy = {'click', 'numpy', 'whoosh', 'onnxruntime', 'git', 'yaml', 'rich', 'tokenizers', 'sqlite3'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_unexpected_error_is_one_line_and_a_redacted_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.cli import output

    @click.group()
    def broken() -> None: ...

    @broken.command()
    def fail() -> None:
        raise RuntimeError("token ghp_" + "a1B2" * 9)

    assert output.guarded(broken, ["fail"]) == 1
    logs = list((Path(os.environ["XDG_DATA_HOME"]) / "mdmem/log").glob("crash-*.txt"))
    assert len(logs) == 1 and "RuntimeError" in logs[0].read_text() and "a1B2a1B2" not in logs[0].read_text()


@pytest.mark.parametrize("args", [("recall", "x"), ("show", "x"), ("status",), ("list",), ("check",), ("task", "list")])
def test_an_error_is_one_json_document(args: tuple[str, ...], tmp_path: Path) -> None:
    done = run(*args, "--json", cwd=tmp_path)
    assert done.returncode == 3
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "no_store" and error["hint"] and "\x1b" not in done.stderr


def test_usage_errors_exit_with_2() -> None:
    for args in (("recall",), ("nonsense",), ("recall", "x", "--limit", "0"), ("--json",)):
        assert run(*args).returncode == 2


def test_commands_that_programs_call_explain_themselves_too() -> None:
    for name in ("hook", "merge-driver"):
        done = run(name, "--help")
        assert done.returncode == 0 and "Examples:" in done.stdout and done.stdout.count("mdmem ") >= 3


def test_a_command_that_is_misspelt_is_answered_with_the_right_name() -> None:
    done = run("remembr", "x")
    assert done.returncode == 2 and "Did you mean remember" in done.stderr
    assert "Did you mean blockers" in run("graph", "blokers").stderr
    assert "mean" not in run("zzzzzz").stderr
    assert "Did you mean recall" in json.loads(run("recal", "x", "--json").stdout)["error"]["message"]


def test_n15_a_console_that_cannot_show_a_character(tmp_path: Path) -> None:
    assert run("init", str(tmp_path / "s")).returncode == 0
    done = run("remember", "fact", "passed ✓ 数据库", cwd=tmp_path / "s", PYTHONIOENCODING="cp1252")
    assert done.returncode == 0 and "passed" in done.stdout, done.stderr


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    line = f'"{sys.executable}" -m mdmem --help | head -n 1'
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "Traceback" not in done.stderr
