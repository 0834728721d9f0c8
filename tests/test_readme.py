"""README: each command is run as written, each claim has a test, the Chinese page has the same commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"en": ROOT / "README.md", "zh": ROOT / "README.zh-CN.md"}
REMOTE = "git@example.org:me/memory.git"


def blocks(page: str, kind: str) -> list[str]:
    """Return the fenced blocks of a kind."""
    return re.findall(rf"(?ms)^```{kind}\n(.*?)^```$", PAGES[page].read_text("utf-8"))


def commands(page: str) -> list[str]:
    """Return the lines of the `sh` blocks without their comments."""
    lines = [re.sub(r"\s+# .*", "", line) for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line.strip()]


class Shell:
    """A HOME with mdmem on its PATH."""

    def __init__(self, home: Path, tmp_path: Path) -> None:
        self.home, self.cwd = home, home
        tools = tmp_path / "bin"
        tools.mkdir()
        (tools / "mdmem").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mdmem "$@"\n')
        (tools / "mdmem").chmod(0o755)
        self.env = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "MDMEM_DEVICE": "laptop",
            "MDMEM_NOW": "2026-11-30T09:00:00Z",
        }

    def run(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.cwd, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def shell(own_home: Path, tmp_path: Path) -> Shell:
    made = Shell(own_home, tmp_path)
    made.run("mdmem init memory")
    made.cwd = own_home / "memory"
    return made


def test_both_languages_have_the_same_commands() -> None:
    def shapes(page: str) -> list[str]:
        quoted = re.compile(r'"[^"]*[^\x00-\x7f][^"]*"|"We stay[^"]*"|[^\x00-\x7f ]+|"which[^"]*"')
        return sorted(quoted.sub("TEXT", line) for line in commands(page))

    assert shapes("en") == shapes("zh")
    assert blocks("en", "markdown") == blocks("zh", "markdown")
    links = {page: set(re.findall(r"\]\((docs/[^)]+)\)", path.read_text("utf-8"))) for page, path in PAGES.items()}
    assert links["en"] == links["zh"]
    assert all((ROOT / target).exists() for target in links["en"])


@pytest.mark.parametrize("page", PAGES)
def test_each_command_runs_as_written(shell: Shell, page: str, tmp_path: Path) -> None:
    hub = tmp_path / "hub.git"
    shell.run(f"git init -q --bare '{hub}'")
    with (shell.home / ".gitconfig").open("a") as config:
        config.write(f'[url "{hub}"]\n\tinsteadOf = {REMOTE}\n')
    done = []
    for line in commands(page):
        if "venv" in line:
            continue  # the two lines that install: the test below and the continuous integration run them
        if line.startswith("mdmem dashboard"):
            shell.run("mdmem dashboard --export page.html")  # it serves until it is stopped; tests/web does that
        elif line.startswith("mdmem clone"):
            shell.run(f"mkdir -p ../other && cd ../other && {line}")
        else:
            out = shell.run(line)
            if line.startswith("mdmem recall"):
                assert "PostgreSQL 16" in out, line
        done.append(line.split()[1])
    assert {"remember", "recall", "remote", "sync", "clone", "conflicts", "install", "query", "export", "doctor"} <= set(done)
    assert (shell.home / "other/memory/memories").is_dir()
    said = " ".join(PAGES[page].read_text("utf-8").split())
    for name in set(re.findall(r"`mdmem ([a-z-]+)", said)):
        shell.run(f"mdmem {name} --help")


def test_the_first_command_after_the_installation(shell: Shell) -> None:
    (line,) = [line for line in commands("en") if "quickstart" in line]
    assert line.endswith("mdmem quickstart")
    shell.cwd = shell.home
    assert "PostgreSQL" in shell.run("mdmem quickstart") or "mdmem" in shell.run("mdmem quickstart")


@pytest.mark.e2e
def test_the_installing_line_in_an_empty_environment(own_home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    ignore = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis")
    shutil.copytree(ROOT, copy, ignore=ignore)
    for line in commands("en"):
        if "quickstart" in line:
            env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
            done = subprocess.run(["bash", "-c", line], cwd=copy, env=env, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_is_what_the_command_writes(shell: Shell) -> None:
    shell.run(next(line for line in commands("en") if line.startswith("mdmem remember")))
    (path,) = (shell.cwd / "memories").glob("*.md")
    assert [path.read_text("utf-8")] == blocks("en", "markdown")


# What the page promises, in its own words, and the check of each.


def no_network(shell: Shell) -> None:
    wall = shell.home / "wall"
    wall.mkdir()
    (wall / "sitecustomize.py").write_text(
        "import sys\n\ndef wall(event, args):\n"
        "    if event in ('socket.getaddrinfo', 'socket.gethostbyname') or (\n"
        "        event == 'socket.connect' and isinstance(args[1], tuple)\n"
        "    ):\n        raise RuntimeError(f'the network was used: {event} {args}')\n\nsys.addaudithook(wall)\n"
    )
    shell.env["PYTHONPATH"] = f"{wall}{os.pathsep}{ROOT}"
    shell.run('mdmem remember decision "We stay with PostgreSQL 16 until the next LTS"')
    assert "PostgreSQL" in shell.run('mdmem recall "which database do we use" --semantic')
    assert "PostgreSQL" in shell.run("mdmem recall 我们用哪个数据库")


def index_is_made_again(shell: Shell) -> None:
    shell.run('mdmem remember fact "The proxy listens on port 8443."')
    state = shell.cwd / ".git" / "mdmem"
    assert any(state.glob("*.sqlite*")) or any(state.iterdir())
    shutil.rmtree(state)
    assert "8443" in shell.run("mdmem recall 'which port has the proxy'")


def nothing_is_picked(shell: Shell) -> None:
    shell.run('mdmem remember decision "We deploy on Thursdays." --title "Deploy day"')
    shell.run(f"git init -q --bare '{shell.home}/hub.git' && mdmem remote add origin '{shell.home}/hub.git' && mdmem sync")
    shell.run(f"mdmem clone '{shell.home}/hub.git' '{shell.home}/two'")
    shell.run('mdmem set "Deploy day" priority=high && mdmem sync')
    shell.run(f'cd "{shell.home}/two" && mdmem set "Deploy day" priority=low && (mdmem sync || true)')
    listed = shell.run(f'cd "{shell.home}/two" && (mdmem conflicts || true)')
    assert "Deploy day" in listed or "deploy-day" in listed
    text = next((shell.home / "two/memories").glob("*.md")).read_text()
    assert "high" in text and "low" in text
    shell.run(f'cd "{shell.home}/two" && mdmem resolve "Deploy day" --keep 1')
    assert "No conflicts" in shell.run(f'cd "{shell.home}/two" && mdmem conflicts')


def merged_by_part(shell: Shell) -> None:
    (shell.cwd / "memories").mkdir(exist_ok=True)
    note = "memories/deploy.md"
    (shell.cwd / note).write_text("---\ntype: decision\ntitle: Deploy day\n---\nOn Thursdays.\n\nBefore noon.\n")
    hub, two = shell.home / "hub.git", shell.home / "two"
    shell.run(f"git init -q --bare '{hub}' && mdmem remote add origin '{hub}' && mdmem sync && mdmem clone '{hub}' '{two}'")
    for place, old, new, field in ((shell.cwd, "Thursdays", "Fridays", "priority=high"), (two, "noon", "ten", "tier=core")):
        path = place / note
        path.write_text(path.read_text().replace(old, new))
        shell.run(f"cd '{place}' && mdmem set 'Deploy day' {field}")
    shell.run(f"mdmem sync && cd '{two}' && mdmem sync && cd '{shell.cwd}' && mdmem sync")
    one, other = (shell.cwd / note).read_text(), (two / note).read_text()
    assert one == other and all(word in one for word in ("Fridays", "ten", "priority: high", "tier: core"))


def secrets_are_taken_out(shell: Shell) -> None:
    shell.run('mdmem remember fact "The login is password=hunter2-and-more"')
    for path in shell.home.rglob("*"):
        if path.is_file():
            assert b"hunter2-and-more" not in path.read_bytes(), path
    assert "hunter2" not in shell.run("git log -p --all")


def an_editor_is_enough(shell: Shell) -> None:
    (shell.cwd / "ports.md").write_text("The metrics are on 9100.\n")
    assert "9100" in shell.run("mdmem recall 'port of the metrics' --keyword")


def uninstall_takes_them_out(shell: Shell) -> None:
    shell.run("mdmem install claude-code && mdmem uninstall claude-code")
    assert not (shell.home / ".claude/settings.json").exists()


def status_says_what_waits(shell: Shell) -> None:
    shell.run(f"mdmem remote add origin '{shell.home}/nowhere.git'")
    shell.run('mdmem remember fact "Offline is normal."')
    assert re.search(r"[1-9]\d* unpushed", shell.run("mdmem status"))


def an_export_comes_back(shell: Shell) -> None:
    shell.run('mdmem remember fact "The proxy listens on port 8443." && mdmem export ../notes.zip')
    shell.run("mdmem init ../copy && cd ../copy && mdmem import ../notes.zip")
    one, two = (sorted(p.read_bytes() for p in (shell.home / name / "memories").glob("*.md")) for name in ("memory", "copy"))
    assert one == two and one


CLAIMS: dict[str, Callable[[Shell], None]] = {
    "No account, no server, no network: the embedding model is in the package": no_network,
    "The index can be deleted at any time; the next command makes it again": index_is_made_again,
    "Notes edited on both sides are merged field by field and paragraph by paragraph": merged_by_part,
    "is kept in both versions, listed, and settled with one command": nothing_is_picked,
    "**Secrets are taken out** before anything reaches the disk": secrets_are_taken_out,
    "change it in any editor, mdmem sees it at the next command": an_editor_is_enough,
    "`mdmem uninstall claude-code` takes them out": uninstall_takes_them_out,
    "`mdmem status` says what waits": status_says_what_waits,
    "`mdmem import` takes them back": an_export_comes_back,
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_the_page_promises(shell: Shell, claim: str) -> None:
    assert claim in " ".join(PAGES["en"].read_text("utf-8").split()), "the page does not say so any more"
    CLAIMS[claim](shell)


def test_the_recorded_session_is_what_the_program_prints() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools/make_demo.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_continuous_integration_runs_each_file_of_outside_programs() -> None:
    """What a mere `pytest` leaves out is started by .ci/run: a new file that nobody names there would never run."""
    named = re.findall(r"tests/[\w/*]+\.py", (ROOT / ".ci" / "run").read_text("utf-8"))
    run = {path for pattern in named for path in ROOT.glob(pattern)}
    marked = {path for path in (ROOT / "tests").rglob("test_*.py") if "pytest.mark.e2e" in path.read_text("utf-8")}
    assert len(marked) > 10 and marked <= run, sorted(str(path.relative_to(ROOT)) for path in marked - run)
