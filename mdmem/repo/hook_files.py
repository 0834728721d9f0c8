"""Where git looks for this repository's hooks, and whether that place is ours to write in."""

from __future__ import annotations

import os
from pathlib import Path

from mdmem.errors import RefusedState
from mdmem.repo.git import Git


def hooks_folder(git: Git) -> Path:
    """Return the folder of hooks, shared by all worktrees. Raises RefusedState when core.hooksPath points elsewhere:
    a folder that other repositories, or the people of a team, share."""
    own = git.path("hooks")
    done = git.run("config", "--null", "--show-scope", "--get-all", "core.hooksPath", check=False, read=True)
    fields = [os.fsdecode(part) for part in done.out.split(b"\0")]
    for scope, value in zip(fields[::2], fields[1::2]):
        # Our own runner sets the value on the command line.
        if scope == "command":
            continue
        named = Path(os.path.expanduser(value))
        full = named if named.is_absolute() else git.top / named
        if os.path.realpath(full) != os.path.realpath(own):
            raise RefusedState(
                f"core.hooksPath is set to {value} ({scope})",
                why="git runs the hooks there, and that folder is not this repository's own",
                hint="call `mdmem scan-secrets --staged` from the hooks there, or unset it",
            )
    return own
