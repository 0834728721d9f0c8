"""The process entry: the quick paths are taken before anything heavy is imported."""

import sys

_CALLED_BY_PROGRAMS = {
    "hook": """Usage: mdmem hook EVENT < PAYLOAD

  Called by Claude Code at its events; `mdmem install claude-code` sets it up. Reads one JSON object on stdin, prints one or
  nothing, and exits 0 whatever happens.

  Examples:
    mdmem install claude-code
    echo '{"session_id": "demo", "cwd": "'$PWD'", "source": "startup"}' | mdmem hook SessionStart""",
    "merge-driver": """Usage: mdmem merge-driver BASE OURS THEIRS MARKER-SIZE PATH

  Called by git when both sides changed a note; `mdmem init` and `mdmem clone` set it up. Writes the merged note to OURS.

  Examples:
    git config merge.mdmem.driver
    mdmem merge-driver base.md ours.md theirs.md 7 memories/note.md""",
}


def _in_utf8() -> None:
    """Start again in Python's UTF-8 mode where the locale has another coding: names of files and words of the command line
    would not be what they are, and letters would be lost. What is printed keeps the terminal's coding."""
    if sys.platform == "win32" or sys.getfilesystemencoding().lower() in ("utf-8", "utf8"):
        return
    import os

    os.environ.setdefault("PYTHONIOENCODING", sys.stdout.encoding if sys.stdout else "utf-8")
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _all_streams_open() -> None:
    """Let what the caller closed lead to nothing. A file that is opened later, the catalog say, would get the number of a
    standard stream, and whatever prints there would write into it."""
    import os

    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="replace", closefd=False))


def _printed(text: str) -> int:
    from mdmem.cli.printing import say, settled

    def work() -> int:
        say(text)
        return 0

    return settled(work, as_json=False)


def main() -> int:
    """Run the command in sys.argv; returns the process exit code."""
    _all_streams_open()
    _in_utf8()
    args = sys.argv[1:]
    first = args[0] if args else ""
    if first in ("--version", "-V"):
        from mdmem import __version__

        return _printed(f"mdmem {__version__}")
    if first in _CALLED_BY_PROGRAMS and args[1:2] in (["--help"], ["-h"]):
        return _printed(_CALLED_BY_PROGRAMS[first])
    if first == "hook":
        from mdmem.hooks.entry import run_hook

        return run_hook(args[1:])
    if first == "merge-driver":
        from mdmem.repo.driver import run_driver

        return run_driver(args[1:])
    if first == "mcp" and not args[1:]:
        from mdmem.mcp.server import serve

        return serve()
    if "recall" in args[:3:2]:
        from mdmem.cli.quick import recall

        code = recall(args)
        if code is not None:
            return code
    from mdmem.cli.main import run

    return run(args)


if __name__ == "__main__":
    sys.exit(main())
