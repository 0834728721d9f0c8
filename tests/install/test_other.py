"""Installing into programs that speak MCP, and into AGENTS.md: only our own part is written, and it goes again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mdmem.errors import MdmemError, Refused
from mdmem.install.agents_md import install_agents_md, uninstall_agents_md
from mdmem.install.json_text import BadJson
from mdmem.install.mcp import install_mcp, uninstall_mcp

PLACES = {
    ("claude", "user"): (".claude.json", "mcpServers"),
    ("claude", "project"): ("work/.mcp.json", "mcpServers"),
    ("cursor", "user"): (".cursor/mcp.json", "mcpServers"),
    ("cursor", "project"): ("work/.cursor/mcp.json", "mcpServers"),
    ("vscode", "user"): (".config/Code/User/mcp.json", "servers"),
    ("vscode", "project"): ("work/.vscode/mcp.json", "servers"),
}


@pytest.fixture
def work() -> Path:
    folder = Path(os.environ["HOME"]) / "work"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("client, scope", PLACES)
def test_the_server_is_named_once_and_goes_again(work: Path, client: str, scope: str) -> None:
    name, key = PLACES[client, scope]
    path = Path(os.environ["HOME"]) / name
    done = install_mcp(client, scope, work)
    assert done.file == str(path) and done.written
    server = json.loads(path.read_text())[key]["mdmem"]
    assert os.path.isabs(server["command"]) and server["args"][-1] == "mcp"
    assert not install_mcp(client, scope, work).changed
    uninstall_mcp(client, scope, work)
    assert not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    for text in ('{\n  "x": 1\n}\n', '{\n    "%s": {\n        "other": {"command": "o"}\n    }\n}' % key, '{"%s": {}}\n' % key):  # noqa: UP031
        path.write_text(text)
        install_mcp(client, scope, work)
        assert "mdmem" in json.loads(path.read_text())[key]
        uninstall_mcp(client, scope, work)
        assert path.read_text() == text


def test_comments_in_vs_codes_file_stay(work: Path) -> None:
    path = work / ".vscode" / "mcp.json"
    path.parent.mkdir()
    text = '{\n\t// mine\n\t"servers": {\n\t\t"a": { "command": "a" }, // b\n\t},\n}\n'
    path.write_text(text)
    install_mcp("vscode", "project", work)
    assert "// mine" in path.read_text() and '\t\t"mdmem": {' in path.read_text()
    uninstall_mcp("vscode", "project", work)
    assert path.read_text() == text


def test_what_a_person_added_to_our_entry_stays(work: Path) -> None:
    path = work / ".mcp.json"
    install_mcp("claude", "project", work)
    data = json.loads(path.read_text())
    data["mcpServers"]["mdmem"]["env"] = {"MDMEM_AGENT": "reviewer"}
    data["mcpServers"]["mdmem"]["command"] = "/old/python"
    path.write_text(json.dumps(data))
    install_mcp("claude", "project", work)
    server = json.loads(path.read_text())["mcpServers"]["mdmem"]
    assert server["env"] == {"MDMEM_AGENT": "reviewer"} and server["command"] == sys.executable


def test_another_server_of_that_name_is_refused(work: Path) -> None:
    path = work / ".mcp.json"
    text = '{"mcpServers": {"mdmem": {"command": "something-else"}}}'
    path.write_text(text)
    with pytest.raises(Refused):
        install_mcp("claude", "project", work)
    assert not uninstall_mcp("claude", "project", work).changed
    assert path.read_text() == text
    path.write_text("{")
    with pytest.raises(BadJson):
        install_mcp("claude", "project", work)


CODEX = 'model = "o3"  # mine\n\n[mcp_servers.other]\ncommand = "o"\n\n[profiles.x]\nmodel = "y"\n'


@pytest.mark.parametrize("text", [CODEX, CODEX.rstrip("\n"), "", CODEX.replace("\n", "\r\n"), "a = 1\n\n\n"])
def test_codex(text: str) -> None:
    path = Path(os.environ["HOME"]) / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(text.encode())
    assert install_mcp("codex", "user", Path.cwd()).written
    server = tomllib.loads(path.read_bytes().decode())["mcp_servers"]["mdmem"]
    assert server["command"] == sys.executable and server["args"][-1] == "mcp"
    assert not install_mcp("codex", "user", Path.cwd()).changed
    data = path.read_bytes().replace(sys.executable.encode(), b"/old/python")
    path.write_bytes(data + b'\n[mcp_servers.mdmem.env]\nA = "b"\n\n[late]\nx = 1\n')
    install_mcp("codex", "user", Path.cwd())
    assert tomllib.loads(path.read_text())["late"] == {"x": 1}
    path.write_bytes(text.encode())
    install_mcp("codex", "user", Path.cwd())
    uninstall_mcp("codex", "user", Path.cwd())
    assert path.read_bytes().rstrip(b"\r\n") == text.encode().rstrip(b"\r\n")
    if text.endswith("\n") or not text:
        assert path.read_bytes() == text.encode()
    path.write_text("= broken")
    with pytest.raises(MdmemError):
        install_mcp("codex", "user", Path.cwd())
    assert path.read_text() == "= broken"


@pytest.mark.parametrize("text", ["# Rules\n\nBe kind.\n", "# Rules\r\nBe kind.\r\n", "no newline", None])
def test_agents_md(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "AGENTS.md"
    if text is not None:
        path.write_bytes(text.encode())
    install_agents_md(path)
    once = path.read_bytes()
    assert once.startswith((text or "").encode()) and b"mdmem recall" in once
    assert not install_agents_md(path).changed
    path.write_bytes(once.replace(b"Before you decide", b"An older text") + b"\nMine, below.\n")
    install_agents_md(path)
    assert path.read_bytes() == once + b"\nMine, below.\n"
    path.write_bytes(once)
    uninstall_agents_md(path)
    if text is None:
        assert not path.exists()
    else:
        assert path.read_bytes().rstrip(b"\r\n") == text.encode().rstrip(b"\r\n")
    path.write_text("<!-- mdmem:end -->\n")
    with pytest.raises(Refused):
        install_agents_md(path)


def run(*args: str, cwd: Path, code: int = 0) -> str:
    command = [sys.executable, "-m", "mdmem", *args]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_the_commands(work: Path) -> None:
    home = Path(os.environ["HOME"])
    diff = run("install", "claude-code", "--dry-run", cwd=work)
    assert diff.startswith("--- ") and '"SessionStart"' in diff and not (home / ".claude").exists()
    data = json.loads(run("install", "claude-code", "--json", cwd=work))
    assert data["written"] and data["file"] == str(home / ".claude" / "settings.json")
    assert "Nothing to change" in run("install", "claude-code", cwd=work)
    run("install", "claude-code", "--local", cwd=work)
    assert (work / ".claude" / "settings.local.json").exists()
    data = json.loads(run("uninstall", "claude-code", "--json", cwd=work))
    assert [file["changed"] for file in data["files"]] == [True, False, True]
    assert not (home / ".claude" / "settings.json").exists()
    assert "MCP server" in run("install", "mcp", "cursor", cwd=work)
    assert json.loads(run("uninstall", "mcp", "cursor", "--json", cwd=work))["written"]
    run("install", "mcp", "codex", "--project", cwd=work, code=2)
    run("install", "agents-md", cwd=work)
    assert (work / "AGENTS.md").read_text().count("mdmem:begin") == 1
    broken = home / ".claude" / "settings.json"
    broken.write_text("{nope")
    error = json.loads(run("install", "claude-code", "--json", cwd=work, code=1))["error"]
    assert error["code"] == "bad_json" and broken.read_text() == "{nope"


def test_auto_memory(work: Path) -> None:
    home = Path(os.environ["HOME"])
    run("init", str(home / "memory"), cwd=work)
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    own = home / ".claude" / "projects" / str(work).replace("/", "-").replace(".", "-").replace("_", "-") / "memory"
    own.mkdir(parents=True)
    (own / "tabs.md").write_text("---\nname: tabs\ndescription: we use tabs\nmetadata:\n  type: feedback\n---\n\nTabs.\n")
    run("-C", str(home / "memory"), "install", "claude-code", "--auto-memory", cwd=work)
    local = json.loads((work / ".claude" / "settings.local.json").read_text())
    folder = Path(local["autoMemoryDirectory"])
    assert folder == home / "memory" / "claude" / "work" and (folder / "tabs.md").is_file()
    run("uninstall", "claude-code", cwd=work)
    assert not (work / ".claude" / "settings.local.json").exists()
    assert (folder / "tabs.md").is_file()


def test_h13_launch_runs_a_command_from_anywhere(tmp_path: Path) -> None:
    """With no PYTHONPATH, in a folder with a package of our name, the command is ours."""
    from mdmem.install.command import program_argv

    trap = tmp_path / "mdmem"
    trap.mkdir()
    (trap / "__init__.py").write_text("raise SystemExit('hijacked')")
    (tmp_path / "runpy.py").write_text("raise SystemExit('hijacked')")
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([*program_argv(), "--version"], cwd=tmp_path, capture_output=True, text=True, env=env, timeout=60)
    assert (done.returncode, done.stdout[:6]) == (0, "mdmem ")
