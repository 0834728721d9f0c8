"""What a detached start of the warm process runs: `python -I mdmem/warm/main.py serve LOCK`."""

import os
import sys


def main() -> int:
    """Serve until idle. The words: serve, descriptor of the held lock, and a store to load (root, agent, device). Returns 0."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    top = os.path.dirname(os.path.dirname(here))
    if top not in sys.path:
        sys.path.insert(0, top)
    from mdmem.warm.server import serve

    words = sys.argv[2:]
    first = {"op": "warm", **dict(zip(("root", "agent", "device"), words[1:]))} if len(words) > 1 else None
    serve(int(words[0]), first=first)
    return 0


if __name__ == "__main__":
    sys.exit(main())
