"""Writes the pages of docs/ that come from the program: every command, every setting, the schema
of the frontmatter, and the completion scripts.

    python tools/make_docs.py           write them
    python tools/make_docs.py --check   exit 1 when one of them is not what the program says
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import click  # noqa: E402

from mdmem.cli.main import COMMANDS, group  # noqa: E402
from mdmem.config import DEFAULTS, SHARED  # noqa: E402
from mdmem.config_help import MEANING  # noqa: E402
from mdmem.notes.json_schema import json_schema  # noqa: E402

NOTE = "<!-- Written by tools/make_docs.py; change the program, not this page. -->\n"


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield (words, command) for each command that is listed, groups before what is in them."""
    context = click.Context(group)
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            for below in command.list_commands(context):
                found = command.get_command(context, below)
                if found is not None and not found.hidden:
                    yield f"{name} {below}", found


EXITS = """Each command that prints data takes `--json`: one document on stdout, also when it fails
(`{"error": {"code", "message", "hint"}}`); messages and progress go to stderr. No command asks anything when no terminal is
there. Exit codes:

| code | meaning |
|---|---|
| 0 | done; also when nothing was found |
| 1 | something was found that needs you (`check`, `doctor`, `conflicts` …), or it failed |
| 2 | the words of the call do not fit |
| 3 | no such note, store, revision or setting |
| 4 | a conflict: the file changed meanwhile, or two versions wait for a decision |
| 5 | locked by another process; nothing was written, try again |
| 6 | a git state that is not known to be safe; nothing was changed |
| 130 | interrupted |
"""


def command_page() -> str:
    """Return docs/commands.md."""
    parts = ["# Commands\n", NOTE, "`mdmem COMMAND --help` prints the same. `-C DIR` stands before the command.\n", EXITS]
    for words, command in commands():
        context = click.Context(command, info_name=f"mdmem {words}", max_content_width=100, terminal_width=100)
        parts.append(f"## mdmem {words}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def settings_page() -> str:
    """Return docs/settings.md."""
    lines = [
        "# Settings",
        "",
        NOTE,
        "In force is, in this order: the option of a command, the environment (`MDMEM_` and the name in capitals with `_`",
        "for `.`), your own `config.toml`, the store's `.mdmem.toml` where the last column allows it, the default.",
        "What could run a program, reach the network or read a path is taken from your own side only.",
        "",
        "| setting | default | meaning | also in the store's file |",
        "|---|---|---|---|",
    ]
    for name, default in DEFAULTS.items():
        shown = {True: "on", False: "off"}.get(default, str(default)) if isinstance(default, bool) else str(default)
        lines.append(f"| `{name}` | {f'`{shown}`' if shown else ''} | {MEANING[name]} | {'yes' if name in SHARED else ''} |")
    lines += ["", TABLES]
    return "\n".join(lines)


TABLES = """## Tables

Three tables of your own `config.toml` hold more than one value.

```toml
# Other stores of yours: recall searches them all and names the store of each hit.
[[stores]]
name = "team"
path = "~/team-notes"
shared = true                  # others read it: notes of scope user:…, agent:… and local never go there
scopes = ["project:apollo"]    # notes of these scopes go there unless you say otherwise

# Folders outside any store, indexed in place and never written to.
[[folders]]
path = "~/work/docs"
kind = "entity"
[folders.types]
"people/" = "person"

# What an agent may read; a store's own file may narrow it, never widen it.
[agents.reviewer]
scopes = ["shared", "project:*"]
```
"""


def completion_script(shell: str) -> str:
    """Return a shell's completion script."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    completion = kind(group, {}, "mdmem", "_MDMEM_COMPLETE")
    return str(completion.source_template % completion.source_vars()) + "\n"


def pages() -> dict[Path, str]:
    """Return {path: text} of every generated file."""
    out = {ROOT / "docs/commands.md": command_page(), ROOT / "docs/settings.md": settings_page()}
    out[ROOT / "docs/note.schema.json"] = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    for shell in ("bash", "zsh", "fish"):
        out[ROOT / f"docs/completion/mdmem.{shell}"] = completion_script(shell)
    return out


def main() -> int:
    """Write or check the pages; returns the exit code."""
    os.environ["COLUMNS"] = "100"
    stale = []
    for path, text in pages().items():
        if "--check" in sys.argv:
            if not path.is_file() or path.read_text("utf-8") != text:
                stale.append(path)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not what the program says: python tools/make_docs.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
