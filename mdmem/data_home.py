"""Where this user's data lies, found without an import: hooks and requests ask before anything else is loaded."""

from __future__ import annotations

import os


def data_folder() -> str:
    """Return the path of mdmem's data folder, as `config.data_home` has it."""
    named = os.environ.get("XDG_DATA_HOME", "")
    if named and os.path.isabs(named):
        return os.path.join(named, "mdmem")
    home = os.environ.get("HOME", "")
    if home:
        return os.path.join(home, ".local/share", "mdmem")
    from mdmem.config import data_home

    return str(data_home())
