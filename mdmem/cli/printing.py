"""Printing for every command, and what an error becomes: text or one JSON document, and an exit code. Loads no click, so that
the quick way of recall can print as any command does."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mdmem.errors import MdmemError


def dump(data: Any) -> str:
    """Return `data` as JSON text, keys as given, non-ASCII kept; escaped where it could not be printed, as lone surrogates."""
    import json

    text = json.dumps(data, ensure_ascii=False, indent=1)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(data, indent=1)
    return text


def say(text: str) -> None:
    """Print lines to stdout without anything that a terminal would obey; a console that cannot show a character gets a
    replacement."""
    _write(sys.stdout, text.translate(_OBEYED) + "\n")


def note(text: str) -> None:
    """Print a message to stderr, as `say` does. A message that nobody can receive stops no command."""
    with suppress(OSError, Unprinted):
        _write(sys.stderr, text.translate(_OBEYED) + "\n")


def say_json(data: Any) -> None:
    """Print `data` as one JSON document, which holds every character as it is or escaped."""
    _write(sys.stdout, dump(data) + "\n")


class Unprinted(MdmemError):
    """What a command printed could not be written: a full disk behind `>`, say. What it had done before is done."""

    code = "unprinted"

    def __init__(self, error: OSError) -> None:
        hint = "make room for the output; what the command does is done: mdmem status"
        super().__init__("what was to be printed could not be written", error.strerror or str(error), hint)


def _write(stream: Any, text: str) -> None:
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = stream.encoding or "ascii"
            stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        give_up(stream)
        raise Unprinted(error) from error


def emit(data: Any, as_json: bool, human: Callable[[], None]) -> None:
    """Print `data` as JSON, or call `human` to print it for people."""
    if as_json:
        say_json(data)
    else:
        human()


def clean(text: str) -> str:
    """Return `text` as a part of one line: without terminal escapes, control and bidi characters, line ends as spaces."""
    return " ".join(text.splitlines()).translate(_OBEYED)


def place(path: object) -> str:
    """Return a path as a person reads it: `~` for the home folder, nothing that a terminal would obey."""
    text, home = str(path), os.path.expanduser("~")
    if home not in ("", "~", "/") and (text == home or text.startswith(home + os.sep)):
        text = "~" + text[len(home) :]
    return clean(text)


# Terminal escapes, control and bidi characters; tab and newline are none.
_OBEYED = dict.fromkeys(code for code in (*range(32), *range(127, 160)) if code not in (9, 10))
_OBEYED |= dict.fromkeys(map(ord, "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"))


def fail(error: MdmemError, as_json: bool) -> int:
    """Print a known error; returns its exit code."""
    if as_json:
        _last_json({"error": error.as_dict()})
    note(f"mdmem: {error}")
    if error.hint:
        note(f"  try: {error.hint}")
    return error.exit_code


def settled(work: Callable[[], int], as_json: bool) -> int:
    """Return work(); every exception becomes an exit code of the documented kind, with its line or JSON document."""
    try:
        return work()
    except MdmemError as error:
        return fail(error, as_json)
    except KeyboardInterrupt:
        return interrupted(as_json)
    except BrokenPipeError:
        give_up(sys.stdout)  # the reader (head, less) went away
        return 0
    except OSError as error:
        if error.errno == errno.ENOENT and not _folder_is_there():
            gone = MdmemError("the folder that this was called in is gone", hint="cd to one that exists, then again")
            return fail(gone, as_json)
        if error.errno not in _DISK:
            return _unexpected(error, as_json)
        what = f"{error.strerror}: {error.filename or 'a file of the store'}"
        return fail(MdmemError(what, hint="mend that, then again"), as_json)
    except Exception as error:
        return _unexpected(error, as_json)


def give_up(stream: Any) -> None:
    """Print into nothing from here on: the interpreter's own flush at exit would fail again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _folder_is_there() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _last_json(data: Any) -> None:
    """Print the document that tells of an error, unless it is the printing that fails."""
    with suppress(OSError, Unprinted):
        say_json(data)


def interrupted(as_json: bool) -> int:
    """Say that the person stopped it; returns its exit code."""
    if as_json:
        _last_json({"error": {"code": "interrupted", "message": "interrupted", "hint": ""}})
    note("interrupted")
    return 130


# What the disk says, or a file of another kind than expected, and no fault of the program: one line, no report.
_DISK = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR)
    + (errno.ELOOP, errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE, errno.EBUSY, errno.ESTALE)
)


def _unexpected(error: Exception, as_json: bool) -> int:
    import traceback

    from mdmem.config import write_crash_log

    path = write_crash_log("".join(traceback.format_exception(error)))
    message = f"unexpected {type(error).__name__}"
    if as_json:
        _last_json({"error": {"code": "unexpected", "message": message, "hint": f"report it with {path}"}})
    note(f"mdmem: {message}; a log ready for a report is at {path}")
    return 1
