"""Every error that a user can meet: a stable code, what, why, and what to type next."""

from __future__ import annotations


def typed(*words: object) -> str:
    """Return a command as a person can paste it into a shell: words with spaces or quotes are quoted."""
    import shlex

    return shlex.join(str(word) for word in words)


class MdmemError(Exception):
    """A known failure. `code` is stable, `exit_code` is the process's, `hint` the next command."""

    code = "error"
    exit_code = 1

    def __init__(self, message: str, why: str = "", hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.why = why
        self.hint = hint
        if code is not None:
            self.code = code

    def as_dict(self) -> dict[str, str]:
        """Return {code, message, hint} (and why, when known) for JSON output."""
        out = {"code": self.code, "message": self.message, "hint": self.hint}
        if self.why:
            out["why"] = self.why
        return out

    def __str__(self) -> str:
        return self.message + (f": {self.why}" if self.why else "")


class UsageError(MdmemError):
    """The words of the call do not fit."""

    code, exit_code = "usage", 2


class NotFound(MdmemError):
    """No such note, store, revision or setting."""

    code, exit_code = "not_found", 3


class Ambiguous(MdmemError):
    """A reference fits more than one note."""

    code, exit_code = "ambiguous", 3


class ConflictFound(MdmemError):
    """The file changed meanwhile, or a conflict waits to be settled."""

    code, exit_code = "conflict", 4


class Locked(MdmemError):
    """Nothing was written because another process holds the lock; try again."""

    code, exit_code = "locked", 5


class RefusedState(MdmemError):
    """The git state is not known to be safe; nothing was changed."""

    code, exit_code = "refused", 6


class Refused(MdmemError):
    """Not allowed: an untrusted store, a scope, a path outside the store."""

    code, exit_code = "not_allowed", 1


class BadNote(MdmemError):
    """The note cannot be parsed or does not validate; it was left as it is."""

    code, exit_code = "bad_note", 1


class WriteFailed(MdmemError):
    """The disk refused the write; the note is as it was."""

    code, exit_code = "write_failed", 1
