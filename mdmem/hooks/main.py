"""What an installed hook runs: `python -I mdmem/hooks/main.py EVENT`.

Running the file costs half a bare start less than `python -m`, and `-I` keeps the folder that the agent works in,
which may be anybody's, out of the import path. The package's own folder is put in by its place on disk.
"""

import gc
import os
import sys


def main() -> int:
    """Run the event named on the command line; returns 0."""
    if os.environ.get("MDMEM_HOOK"):
        return 0
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # Without -I the first entry is this file's own folder, whose names must not hide others.
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]
    if here not in sys.path:
        sys.path.insert(0, here)
    # A process of some milliseconds: neither collecting its garbage nor taking itself apart at the end is worth the time.
    gc.disable()
    from mdmem.hooks.entry import run_hook

    return run_hook(sys.argv[1:])


if __name__ == "__main__":
    os._exit(main())
