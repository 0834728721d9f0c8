"""The quick way of `mdmem recall` prints what the command prints, and leaves to it whatever is not plain."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mdmem.cli import quick
from mdmem.warm import client, starting
from tests.hooks.host import add_note, index, make_store, wait_until

ROOT = Path(__file__).resolve().parents[2]
# As `python -m mdmem`, without the quick way; says on stderr whether the other one would have loaded click.
BY_CLICK = "import sys; from mdmem.cli.main import run; sys.exit(run(sys.argv[1:]))"
LOADED = "print('click' in sys.modules, file=sys.stderr)"
QUICK = f"import sys; from mdmem.__main__ import main; code = main(); {LOADED}; sys.exit(code)"

PLAIN = (
    ["recall", "billing", "PostgreSQL"],
    ["recall", "--keyword", "billing", "--budget", "200"],
    ["recall", "billing", "-n", "1", "--json", "--explain"],
    ["recall", "数据库"],
    ["recall", "billing", "--budget", "5", "--json"],
    ["recall", "nothing-of-the-kind"],
)
OTHERS = (
    ["recall"],
    ["recall", ""],
    ["recall", "--help"],
    ["recall", "billing", "--keyword", "--semantic"],
    ["recall", "billing", "--json", "--json"],
    ["recall", "billing", "--limit", "0"],
    ["recall", "billing", "--limit", "many", "--json"],
    ["recall", "billing", "--limit=2"],
    ["recall", "billing", "-n2"],
    ["recall", "billing", "--limit"],
    ["recall", "billing", "--type", "decision"],
    ["recall", "--", "--keyword"],
    ["recall", "billing", "--wrong"],
    ["recall", "billing", "--json", "--semantic"],
    ["-C", "", "recall", "billing"],
    ["list", "recall"],
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MDMEM_SERVE", "auto")
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "off")
    monkeypatch.setattr(client, "GREETING", 2.0)
    root = make_store(tmp_path / "store")
    for number, text in enumerate(("Billing runs on PostgreSQL 16.", "Billing is sent on Mondays.", "数据库在周一备份")):
        add_note(root, f"memories/n{number}.md", text, type="decision", title=f"Fact {number}", pinned="true")
    index(root)
    starting.start()
    wait_until(lambda: client.ask({"op": "status"}) is not None)
    yield root
    client.ask({"op": "stop"})


def run(store: Path, code: str, arguments: list[str]) -> tuple[int, str, str]:
    patient = f"from mdmem.warm import client; client.GREETING = 2.0; {code}"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", patient, *arguments], cwd=store, capture_output=True, text=True, env=env)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="the warm process needs sockets with a path")
def test_it_prints_what_the_command_prints_and_loads_no_click(store: Path) -> None:
    for arguments in PLAIN:
        code, out, said = run(store, QUICK, arguments)
        *lines, loaded = said.splitlines(keepends=True)
        assert loaded == "False\n", arguments
        assert (code, out, "".join(lines)) == run(store, BY_CLICK, arguments), arguments
    # A word that the quick way does not know: all is as without it.
    code, out, said = run(store, QUICK, ["recall", "billing", "--type", "decision"])
    *lines, loaded = said.splitlines(keepends=True)
    assert loaded == "True\n"
    assert (code, out, "".join(lines)) == run(store, BY_CLICK, ["recall", "billing", "--type", "decision"])
    away = ["-C", str(store), "recall", "billing"]
    assert run(store.parent, QUICK, away)[1] == run(store.parent, BY_CLICK, away)[1] != ""
    # The notices of the settings come first, once.
    (store / ".mdmem.toml").write_text((store / ".mdmem.toml").read_text() + '\n[llm]\ncommand = "x"\n')
    code, out, said = run(store, QUICK, PLAIN[0])
    assert "llm.command" in said and said.endswith("False\n")
    assert (code, out, said.removesuffix("False\n")) == run(store, BY_CLICK, PLAIN[0])


@pytest.mark.skipif(os.name == "nt", reason="the warm process needs sockets with a path")
def test_without_the_warm_process_or_with_several_stores_the_command_does_it(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_store(tmp_path / "other")
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "mdmem" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"[[stores]]\nname = 'other'\npath = '{other}'\n")
    assert quick.recall(["-C", str(store), "recall", "billing"]) == 0
    monkeypatch.chdir(store)
    assert quick.recall(["recall", "billing"]) is None
    config.unlink()
    assert quick.recall(["recall", "billing"]) == 0
    client.ask({"op": "stop"})
    wait_until(lambda: not client.there())
    assert quick.recall(["recall", "billing"]) is None


@pytest.mark.skipif(os.name == "nt", reason="the warm process needs sockets with a path")
def test_whatever_is_not_plain_is_left_to_the_command(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store)
    for arguments in OTHERS:
        assert quick.recall(arguments) is None, arguments
        assert capsys.readouterr() == ("", "")


def test_words_are_told_from_options() -> None:
    assert quick.plain(["recall", "a", "b", "-n", "7", "--json"]) == quick.Plain(["a", "b"], limit=7, as_json=True)
    assert quick.plain(["-C", "x", "recall", "mode"]) == quick.Plain(["mode"], "x")
    assert quick.plain(["recall", "json", "limit", "--budget", "50"]) == quick.Plain(["json", "limit"], budget=50)
    assert quick.plain(["recall", "a", "--all"]) is None
    assert quick.plain(["recall", "a", "--limit", "²"]) is None
