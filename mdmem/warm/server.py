"""The warm process: greets at once, answers one request a connection, ends when idle or outdated.

It holds its lock for life, so there is never a second one; the kernel gives the lock back however it ends. What it knows
how to answer is in `mdmem.warm.answers`.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from mdmem import __version__
from mdmem.warm import address, memory
from mdmem.warm.client import LARGEST, same_user

# Seconds without a request after which it ends.
IDLE = 900.0
# Seconds between two looks at whether the stores in use are still there.
ROUND = 15.0
# Requests worked on at once; more wait in the socket's queue.
AT_ONCE = 8

Answer = Callable[[dict[str, Any]], dict[str, Any]]


class Server:
    """The listening socket and its life."""

    def __init__(
        self, answer: Answer, tidy: Callable[[], None], idle: float = IDLE, rest: Callable[[], None] | None = None
    ) -> None:
        self.answer = answer
        self.tidy = tidy
        self.rest = rest
        self.idle = idle
        self.last = time.monotonic()
        self.started = time.time()
        self.served = 0
        self.settled = 0
        self.rested = 0
        self.ending = threading.Event()
        self.slots = threading.BoundedSemaphore(AT_ONCE)
        self.busy = 0
        self.path = address.socket_path()
        self.inode = 0

    def run(self) -> None:
        """Serve until idle, told to stop, outdated, or the socket is no longer ours. The caller holds the lock."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        address.clear(self.path)
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        before = os.umask(0o177)
        try:
            listener.bind(self.path)
        finally:
            os.umask(before)
        self.inode = os.stat(self.path).st_ino
        listener.listen(64)
        listener.settimeout(min(ROUND, self.idle))
        looked = time.monotonic()
        try:
            while not self.ending.is_set():
                try:
                    line, _ = listener.accept()
                except TimeoutError:
                    line = None
                except OSError:
                    break
                if line is not None:
                    self._greet(line)
                now = time.monotonic()
                if now - looked > ROUND or line is None:
                    looked = now
                    self.tidy()
                    self._settle(line is None)
                    if not self._ours():
                        break
                if now - self.last > self.idle and not self.busy:
                    break
        finally:
            listener.close()
            if self._ours():
                os.unlink(self.path)

    def _settle(self, quiet: bool) -> None:
        """Free what is in circles (an index that was replaced holds its files open), then spare the collector the rest: it
        would go through all of it in the middle of a search. `quiet`: nobody has asked for a while."""
        if quiet and self.rest is not None and self.served != self.rested:
            self.rested = self.served
            self.rest()
        if self.served != self.settled:
            self.settled = self.served
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            memory.trim()

    def _ours(self) -> bool:
        try:
            return os.stat(self.path).st_ino == self.inode
        except OSError:
            return False

    def _greet(self, line: socket.socket) -> None:
        """Say hello from the accepting thread, so that work under way delays nobody's decision to go on alone."""
        try:
            if not same_user(line):
                line.close()
                return
            line.settimeout(5.0)
            line.sendall(json.dumps({"version": __version__, "pid": os.getpid()}).encode() + b"\n")
        except OSError:
            line.close()
            return
        threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line, self.slots:
            self.busy += 1
            try:
                data = line.makefile("rb").readline(LARGEST)
                if not data.strip():
                    return
                line.sendall(json.dumps(self._reply(data), default=float).encode("ascii") + b"\n")
            except OSError:
                # The asker has gone on without us.
                return
            finally:
                self.busy -= 1

    def _reply(self, data: bytes) -> dict[str, Any]:
        try:
            request = json.loads(data)
            operation = request["op"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"error": "not a request"}
        if operation in ("stop", "outdated"):
            self.ending.set()
            self.wake()
            return {"ok": True}
        if operation == "status":
            return {"pid": os.getpid(), "version": __version__, "served": self.served, "uptime_s": time.time() - self.started}
        self.last = time.monotonic()
        self.served += 1
        try:
            return self.answer(request)
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:500]}

    def beforehand(self, request: dict[str, Any]) -> None:
        """Work on a request that nobody waits for."""
        try:
            self.answer(request)
        except Exception:
            # Whoever asks first will be told.
            return

    def wake(self) -> None:
        """Let the accepting thread see that the end has come."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(0.2)
            try:
                line.connect(self.path)
            except OSError:
                return


def serve(lock: int | None = None, idle: float | None = None, first: dict[str, Any] | None = None) -> bool:
    """Be the warm process; `lock` is a descriptor that holds its lock already. Returns False when another one is.

    `first`: a request to work on at once, before anybody asks."""
    if lock is None:
        lock = address.hold()
        if lock is None:
            return False
    from mdmem.warm.answers import Answers

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    memory.sparing()
    answers = Answers()
    seconds = idle if idle is not None else float(os.environ.get("MDMEM_SERVE_IDLE", IDLE))
    server = Server(answers.answer, answers.tidy, seconds, answers.rest)
    if threading.current_thread() is threading.main_thread():

        def stop(number: int, frame: object) -> None:
            server.ending.set()
            server.wake()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if first is not None:
        threading.Thread(target=server.beforehand, args=(first,), daemon=True).start()
    try:
        server.run()
    finally:
        os.close(lock)
    return True
