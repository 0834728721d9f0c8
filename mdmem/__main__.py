"""The process entry: the quick paths are taken before anything heavy is imported."""

import sys


def main() -> int:
    """Run the command in sys.argv; returns the process exit code."""
    args = sys.argv[1:]
    first = args[0] if args else ""
    if first in ("--version", "-V"):
        from mdmem import __version__

        print(f"mdmem {__version__}")
        return 0
    if first == "hook":
        from mdmem.hooks.entry import run_hook

        return run_hook(args[1:])
    if first == "merge-driver":
        from mdmem.repo.driver import run_driver

        return run_driver(args[1:])
    if first == "mcp" and not args[1:]:
        from mdmem.mcp.server import serve

        return serve()
    from mdmem.cli.main import run

    return run(args)


if __name__ == "__main__":
    sys.exit(main())
