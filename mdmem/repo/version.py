"""Which git is installed, as GitPython reads it: for questions off the hot path."""

from __future__ import annotations

import os

from mdmem.errors import MdmemError


def git_version() -> tuple[int, ...]:
    """Return git's version, such as (2, 39, 5). Raises MdmemError when there is no git."""
    # GitPython looks for git when it is imported, and would raise there.
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git

    try:
        return tuple(int(part) for part in git.Git().version_info)
    except (git.exc.GitError, OSError, ValueError) as error:
        raise MdmemError("git could not be asked for its version", why=str(error)[:200], hint="install git") from error
