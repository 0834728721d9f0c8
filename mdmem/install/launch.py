"""Runs any mdmem command by this file's absolute path: `python -I mdmem/install/launch.py COMMAND …`.

For programs that start mdmem with a short PATH and an environment of their own (git hooks, MCP hosts). The package is
found by its place on disk; nothing is taken from the current folder.
"""

import os
import runpy
import sys


def main() -> None:
    """Run `mdmem` with the words of this command line."""
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]
    if here not in sys.path:
        sys.path.insert(0, here)
    runpy.run_module("mdmem", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
