"""Remotes that answer badly: within the time limit, without a prompt, as a state."""

from __future__ import annotations

import http.server
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.patience import within

from .conftest import World
from .test_sync import note


class Denies(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.end_headers()

    def log_message(self, *args: object) -> None:
        return


@pytest.fixture
def denying() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Denies)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://bob:s3cr3t@127.0.0.1:{server.server_port}/x.git"
    server.shutdown()
    server.server_close()
    thread.join()


def test_g29_p10_a_401_is_a_status_line_without_the_token(world: World, denying: str) -> None:
    one, _ = world.pair()
    one.sh("remote", "set-url", "origin", denying)
    one.write("b.md", note("mem-b"))
    began = time.monotonic()
    result = one.sync(timeout=20.0)
    within(began, 20)
    assert (result.state, result.waiting) == ("offline", 1) and result.reason
    assert "s3cr3t" not in str(result.as_dict())


def test_a_remote_that_never_answers_is_left_after_the_time_limit(world: World) -> None:
    one, _ = world.pair()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        one.sh("remote", "set-url", "origin", f"http://127.0.0.1:{silent.getsockname()[1]}/x.git")
        began = time.monotonic()
        result = one.sync(timeout=1.0)
        assert result.state == "offline" and "1 s" in result.reason
        within(began, 15)


def test_a_remote_that_is_no_repository(world: World) -> None:
    one, _ = world.pair()
    one.sh("remote", "set-url", "origin", "/nonexistent/x.git")
    result = one.sync()
    assert result.state == "offline" and result.hint


def test_an_ssh_host_that_is_not_known_is_not_asked_about(world: World) -> None:
    one, _ = world.pair()
    one.sh("remote", "set-url", "origin", "ssh://127.0.0.1:9/x.git")
    began = time.monotonic()
    assert one.sync(timeout=20.0).state == "offline"
    within(began, 20)


def test_a_fetch_of_a_killed_sync_that_still_runs_is_waited_for(world: World) -> None:
    one, two = world.pair()
    two.save("b.md", note("mem-b"))
    two.sync()
    lock = one.top / ".git" / "refs" / "mdmem" / "remote" / "origin" / "heads" / "main.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    assert one.sync().state == "offline" and len(one.slept) == 3  # for a while, not for ever
    lock.unlink()
    assert one.sync().state == "merged"
