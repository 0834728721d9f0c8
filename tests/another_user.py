"""Work done in a child process for whom permissions count: root passes over them, and a test run by root would see nothing.

Two ways to be such a one: `lay_down_rights` stays the same user and owner of the files, without root's passing over modes;
`become_nobody` is another user altogether, for whom owners count as well and who must be able to reach the files.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pickle
import signal
import traceback
from collections.abc import Callable
from typing import Any

import pytest

NOBODY = 65534
# From linux/capability.h and linux/prctl.h.
DAC_OVERRIDE, DAC_READ_SEARCH, BOUNDING_SET_DROP, VERSION_3 = 1, 2, 24, 0x20080522


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def become_nobody() -> None:
    """Give up root for good; called in a child."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def lay_down_rights() -> None:
    """Let modes count for this process and for every program that it starts; called in a child of root, on Linux.

    Raises OSError where the kernel does not allow it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for right in (DAC_OVERRIDE, DAC_READ_SEARCH):
        # A program started by uid 0 gets all rights of this set back.
        if libc.prctl(BOUNDING_SET_DROP, right, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "the bounding set of rights")
    head = (ctypes.c_uint32 * 2)(VERSION_3, 0)
    rights = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable of rights 0-31, then of 32-63
    if libc.capget(head, rights):
        raise OSError(ctypes.get_errno(), "reading the rights")
    for place in range(3):
        rights[place] &= ~(1 << DAC_OVERRIDE | 1 << DAC_READ_SEARCH)
    if libc.capset(head, rights):
        raise OSError(ctypes.get_errno(), "setting the rights")


def in_child(become: Callable[[], None], work: Callable[[], Any]) -> Any:
    """Run `become` and then `work` in a child of this process; returns what `work` returned.

    Modules that are needed should have been imported before: nobody need not be able to read this Python's files.
    Fails the test with the child's traceback where `work` raised, skips where `become` did.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child is not measured
        told: tuple[str, Any] = ("raised", "the child ended early")
        try:
            os.close(reading)
            try:
                become()
            except (OSError, AttributeError) as error:
                told = ("skip", f"root cannot give up its rights here: {error}")
            else:
                told = ("returned", work())
        except BaseException:
            told = ("raised", traceback.format_exc())
        finally:
            with os.fdopen(writing, "wb") as stream:
                stream.write(pickle.dumps(told))
            os._exit(0)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as stream:
            answer = stream.read()
    except BaseException:  # the time of the test is up
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.waitpid(child, 0)
    how, what = pickle.loads(answer) if answer else ("raised", "the child died without a word")
    if how == "skip":
        pytest.skip(what)
    if how == "raised":
        pytest.fail(what, pytrace=False)
    return what


def permissions_count(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test, whole, as one for whom modes count: directly for a plain user, in a child without root's rights for root."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        if is_root():
            in_child(lay_down_rights, lambda: test(*args, **named))
        else:
            test(*args, **named)

    return run
