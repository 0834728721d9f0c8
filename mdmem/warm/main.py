"""What a detached start of the warm process runs: `python -I mdmem/warm/main.py serve LOCK`."""

import os
import sys


def main() -> int:
    """Serve until idle, with the lock in the descriptor named on the command line. Returns 0."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    top = os.path.dirname(os.path.dirname(here))
    if top not in sys.path:
        sys.path.insert(0, top)
    from mdmem.warm.server import serve

    serve(int(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
