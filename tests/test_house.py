"""The house keeps its order: imports point down, never up, never sideways between faces."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "mdmem"
GROUND = {"__init__", "clock", "config", "config_edit", "config_help", "data_home", "detach", "errors"}
GROUND |= {"identity", "locate", "locks", "notes", "quickjson", "tokens"}
LEVEL = dict.fromkeys(GROUND, 0)
LEVEL.update(dict.fromkeys(("repo", "index", "llm"), 1))
LEVEL["store"] = 2
LEVEL["setup"] = 3
LEVEL["doctor"] = 3
LEVEL["federation"] = 3
LEVEL.update(dict.fromkeys(("memory", "learn", "team", "graph", "recall", "warm", "install"), 3))
LEVEL.update(dict.fromkeys(("cli", "hooks", "mcp", "web"), 4))
LEVEL["__main__"] = 5
# A command that does nothing but start another face.
STARTS = {("cli/cmd_mcp.py", "mcp"), ("cli/cmd_dashboard.py", "web")}


def imports() -> list[tuple[str, str, str]]:
    """Return (file, room of the file, room it imports) for each import of our own."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        room = relative.parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "mdmem" else [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                if name.startswith("mdmem."):
                    found.append((str(relative), room, name.split(".")[1]))
    return found


def test_imports_point_down() -> None:
    wrong = []
    for file, room, target in imports():
        if target in ("__version__", room) or (file, target) in STARTS:
            continue
        if target not in LEVEL:
            wrong.append(f"{file}: unknown room {target}")
        elif file == f"cli/cmd_{target}.py":
            continue  # the command that starts this face: `mdmem mcp`
        elif LEVEL[room] < LEVEL[target] or (LEVEL[room] == LEVEL[target] == 4):
            wrong.append(f"{file} ({room}) must not import {target}")
    assert not wrong, "\n".join(wrong)


def test_only_repo_runs_git() -> None:
    """No other room starts a git process or imports GitPython."""
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).parts[0] == "repo":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import) and any(alias.name == "git" for alias in node.names):
                wrong.append(str(path))
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "git":
                wrong.append(str(path))
            first = node.elts[0] if isinstance(node, ast.List) and node.elts else None
            if isinstance(first, ast.Constant) and first.value == "git":
                wrong.append(f"{path}:{node.lineno}")
    assert not wrong, "\n".join(wrong)
