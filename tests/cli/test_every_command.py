"""Every command of the tree, run: outside a store, in one, with words that do not fit. One JSON document, a documented exit
code, no question, no colour, no traceback."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from mdmem.cli.main import group
from mdmem.cli.output import guarded
from mdmem.memory.remember import Memory, remember
from mdmem.store import Store
from tests.cli.test_tree import ROOT, TREE

# They serve until they are stopped; their own tests run them.
SERVING = {"serve", "mcp", "dashboard"}
RUN = [(words, command) for words, command in TREE if not isinstance(command, click.Group) and words not in SERVING]
WITH_JSON = [(words, command) for words, command in RUN if any("--json" in one.opts for one in command.params)]
DOCUMENTED = {
    int(code) for code in re.findall(r"(?m)^\| (\d+) \| ", (ROOT / "docs/commands.md").read_text("utf-8"))
}


def words_for(command: click.Command, text: str) -> list[str]:
    """Return a word for each argument that a command must have."""
    out = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.required:
            choice = parameter.type.choices[0] if isinstance(parameter.type, click.Choice) else text
            out += [str(choice)] * max(1, parameter.nargs)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.required:
            choice = parameter.type.choices[0] if isinstance(parameter.type, click.Choice) else text
            out += [parameter.opts[0], str(choice)]
    return out


def outcome(args: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capfd.readouterr()
    code = guarded(group, args)
    out, err = capfd.readouterr()
    assert "\x1b" not in out + err and "Traceback" not in err, err
    assert code in DOCUMENTED, (args, code)
    logs = Path(os.environ["XDG_DATA_HOME"]) / "mdmem/log"
    assert not list(logs.glob("crash-*")), [path.read_text() for path in logs.glob("crash-*")]
    return code, out, err


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question would read this, and fail the test."""
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "off")
    monkeypatch.setattr(click, "prompt", lambda *_, **__: pytest.fail("asked a question"))
    monkeypatch.setattr(click, "confirm", lambda *_, **__: pytest.fail("asked a question"))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked a question"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8"))


def test_the_exit_codes_are_documented() -> None:
    assert {0, 1, 2, 3, 4, 5, 6, 130} == DOCUMENTED


@pytest.mark.parametrize(("words", "command"), WITH_JSON, ids=[words for words, _ in WITH_JSON])
def test_one_json_document_whatever_happens(
    words: str,
    command: click.Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.chdir(outside)
    for args in (words_for(command, "x"), words_for(command, "/no/such \udcff \x1b[31m"), ["--no-such-option"]):
        code, out, _ = outcome([*words.split(), *args, "--json"], capfd)
        document = json.loads(out)
        if args == ["--no-such-option"]:
            assert code == 2
        if code in (2, 3, 4, 5, 6, 130):
            assert document["error"]["code"] and "message" in document["error"]


@pytest.mark.parametrize(("words", "command"), WITH_JSON, ids=[words for words, _ in WITH_JSON])
def test_one_json_document_in_a_store(
    words: str, command: click.Command, store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    remember(store, Memory("decision", "We deploy on Thursdays.", title="Deploy day"))
    monkeypatch.chdir(store.root)
    for text in ("Deploy day", "no such thing"):
        _, out, _ = outcome([*words.split(), *words_for(command, text), "--json"], capfd)
        assert isinstance(json.loads(out), (dict, list)), words


@pytest.mark.parametrize(("words", "command"), RUN, ids=[words for words, _ in RUN])
def test_for_people_too(
    words: str, command: click.Command, store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store.root)
    outcome([*words.split(), *words_for(command, "x")], capfd)


def test_no_colour_in_a_terminal(store: Store) -> None:
    """In a real terminal, with NO_COLOR, also while a bar moves."""
    remember(store, Memory("decision", "We deploy on Thursdays.", title="Deploy day"))
    code = (
        "import sys, time\nfrom mdmem.cli import progress\nprogress.AFTER_SECONDS = 0.0\n"
        "with progress.progress('Working') as tell:\n    [tell(n, 5, '') for n in range(5)]\n"
        "from mdmem.cli.main import run\n"
        "[run(line.split()) for line in ('status', 'recall deploy --keyword', 'list', 'doctor --offline', 'show nothing')]\n"
    )
    above, below = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "TERM": "xterm-256color"}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=store.root, env=env, stdin=below, stdout=below, stderr=below)
    os.close(below)
    out = b""
    while True:
        try:
            piece = os.read(above, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.close(above)
    assert process.wait() == 0 and b"Deploy day" in out and b"Working" in out
    styles = re.findall(rb"\x1b\[([0-9;]*)m", out)
    colours = [style for style in styles if re.search(rb"(?:^|;)(?:3[0-8]|4[0-8]|9\d|10\d)", style)]
    assert colours == []
