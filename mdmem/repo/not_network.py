"""What stops an exchange with a remote and is not the network, named from git's own words. Nobody is told to wait for a remote
that was reached."""

from __future__ import annotations

from dataclasses import dataclass

from mdmem.errors import MdmemError


@dataclass(frozen=True)
class Trouble:
    """`name`: the state; `hint`: what to type."""

    name: str
    hint: str


# A connection that breaks makes git complain of what came in part: then it is the network after all.
_BROKEN_OFF = ("early eof", "unexpected disconnect", "rpc failed", "connection reset")
_SHOW = "git config --show-origin --get-regexp "
_NO_RIGHT, _GET_RIGHT = "no permission to write to the git directory", "chmod -R u+w .git (or chown it), then mdmem sync"
# What is wrong with this side's files; a remote says the like of its own, in lines that begin with `remote:`.
_OURS = ("full disk", "read-only disk", _NO_RIGHT)
# The words of git (in locale C, lower case) -> the trouble. The first that fits counts.
_SIGNS = (
    (("dubious ownership",), "the folder of the remote belongs to another user", "{safe}"),
    (("transport '", "not allowed"), "git's settings do not allow this kind of remote", _SHOW + "^protocol"),
    (("bad object refs/",), "a branch of this clone is damaged", "git fsck"),
    (("hash algorithm",), "the remote uses another kind of object ids", "mdmem clone URL DIR, then mdmem import"),
    (("mismatched algorithms",), "the remote uses another kind of object ids", "mdmem clone URL DIR, then mdmem import"),
    (("repository", "not found"), "the remote says that it has no such repository", "{url}, or git ls-remote {remote}"),
    (("'remote-", "is not a git command"), "git does not know this kind of URL", "{url}"),
    (("unable to find remote helper",), "git does not know this kind of URL", "{url}"),
    (("bad/illegal format",), "git cannot make out the URL of the remote", "{url}"),
    (("no space left",), "full disk", "free space, then mdmem sync"),
    (("read-only file system",), "read-only disk", "mdmem sync, when it can be written"),
    # With words of files: a remote's `Permission denied (publickey)` is another matter.
    (("unable to create", "permission denied"), _NO_RIGHT, _GET_RIGHT),
    (("insufficient permission",), _NO_RIGHT, _GET_RIGHT),
    (("fsck error",), "git refuses what the remote holds", "git fsck in the remote"),
    (("repository corruption on the remote side",), "the remote is damaged", "git fsck in the remote"),
    (("unresolved deltas",), "the remote sends damaged objects", "git fsck in the remote"),
    (("not send all necessary objects",), "the remote sends damaged objects", "git fsck in the remote"),
    (("invalid refspec",), "git's settings for the remote hinder it", _SHOW + "^remote"),
    (("--mirror can't be combined",), "git's settings for the remote hinder it", "git config --unset remote.{remote}.mirror"),
    (("matches more than one",), "git cannot tell which branch is meant", "git ls-remote {remote}"),
)  # fmt: skip


def trouble(err: str, remote: str) -> Trouble | None:
    """Return what is in the way by git's messages `err`, None where it may be the network."""
    text = err.lower()
    ours = "\n".join(line for line in text.splitlines() if not line.startswith("remote:"))
    if any(sign in text for sign in _BROKEN_OFF):
        return None
    for signs, name, hint in _SIGNS:
        if all(sign in (ours if name in _OURS else text) for sign in signs):
            return Trouble(name, hint.format(remote=remote, safe=_safe(err), url=f"mdmem remote set {remote} URL"))
    return None


def _safe(err: str) -> str:
    """Return the command by which git says that its owner may be another, as git wrote it."""
    found = (line.strip() for line in err.splitlines() if "safe.directory" in line)
    return next(found, "git config --global --add safe.directory DIR")


def named(error: MdmemError) -> str:
    """Return the name of the state that a failed git call tells of."""
    text = str(error).lower()
    for sign, name in (
        ("dubious ownership", "dubious ownership"),
        ("git is not installed", "git is not installed"),
        (".lock", "index locked"),
        ("no space left", "full disk"),
        ("read-only file system", "read-only disk"),
        ("permission denied", "no permission"),
    ):
        if sign in text:
            return name
    return "unknown state"
