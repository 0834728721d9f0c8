"""The dashboard's server: who is let in, what is answered, and that nothing breaks it."""

from __future__ import annotations

import http.client
import json
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from mdmem.memory.change import read_any
from mdmem.memory.conflicts import conflicted
from mdmem.memory.remember import Memory, remember
from mdmem.store import Store
from mdmem.web import answers
from mdmem.web.page import FILES
from mdmem.web.server import MAX_BODY, MAX_OPEN

from .conftest import Site, clash, furnish


def listing(root: Path) -> dict[str, int]:
    return {str(p.relative_to(root)): p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file() and ".git" not in p.parts}


def raw(site: Site, data: bytes) -> bytes:
    """Send bytes as they are; return what comes back."""
    with socket.create_connection(("127.0.0.1", site.server.port), timeout=20) as wire:
        try:
            wire.sendall(data)
            wire.shutdown(socket.SHUT_WR)
            out = b""
            while part := wire.recv(65536):
                out += part
        except OSError:
            return b""
        return out


def test_every_answer_with_data_needs_the_token(site: Site) -> None:
    for name in answers.READS:
        assert site.ask(f"/api/{name}", token=False)[0] == 401
        for wrong in ("x", site.server.token[:-1], site.server.token + "x", "ü"):
            sent = {"X-Mdmem-Token": wrong.encode("utf-8").decode("latin-1")}
            assert site.ask(f"/api/{name}", headers=sent)[0] == 401
        assert site.ask(f"/api/{name}?token={site.server.token}", token=False)[0] == 401
    assert site.ask("/api/resolve", "POST", {"note": "x", "keep": "1"}, token=False)[0] == 401
    assert site.ask("/api/overview")[0] == 200


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/overview", "/api/none"])
def test_p3_foreign_host_is_403(site: Site, path: str) -> None:
    port = site.server.port
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.1.evil.example:{port}",
        "",
    ):
        assert site.ask(path, headers={"Host": host})[0] == 403, host
    two = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\nX-Mdmem-Token: {site.server.token}\r\n\r\n"
    assert b" 403 " in raw(site, two.encode()).split(b"\r\n")[0]


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/overview"])
def test_p3_foreign_origin_or_site_is_403(site: Site, path: str) -> None:
    port = site.server.port
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"):
        assert site.ask(path, headers={"Origin": origin})[0] == 403, origin
        assert site.ask("/api/resolve", "POST", {}, headers={"Origin": origin})[0] == 403
        assert site.ask(path, "OPTIONS", headers={"Origin": origin})[0] == 403
    for place in ("cross-site", "same-site"):
        assert site.ask(path, headers={"Sec-Fetch-Site": place})[0] == 403
    assert site.ask(path, headers={"Origin": f"http://localhost:{port}", "Sec-Fetch-Site": "same-origin"})[0] == 200


def test_p3_a_write_without_an_origin_is_403(site: Site) -> None:
    assert site.ask("/api/resolve", "POST", {"note": "x", "keep": "1"}, headers={"Origin": ""})[0] == 403


def test_p3_bound_to_loopback_only(site: Site) -> None:
    assert site.server.socket.getsockname()[0] == "127.0.0.1"
    assert site.server.url.startswith("http://127.0.0.1:") and "#token=" in site.server.url


def test_headers_of_every_answer(site: Site) -> None:
    for path in ("/", "/app.js", "/api/overview", "/nowhere"):
        headers = site.ask(path)[2]
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
        assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer" and headers["x-frame-options"] == "DENY"
        assert "set-cookie" not in headers and "access-control-allow-origin" not in headers
        assert "Python" not in headers["server"]


def test_every_file_of_the_page_and_no_other(site: Site) -> None:
    for path in FILES:
        status, data, _ = site.ask(path, token=False)
        assert status == 200 and data
    for path in (
        "/../../pyproject.toml",
        "/..%2f..%2fpyproject.toml",
        "/static/app.js",
        "//etc/passwd",
        "/app.js/../../page.py",
        "/page.py",
        "/%00",
        "/.git/config",
        "/api/../../x",
        "http://evil.example/",
    ):
        assert site.ask(path)[0] in (403, 404), path


def test_references_do_not_lead_outside(store: Store, site: Site, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("outside words")
    for reference in ("../secret.md", str(tmp_path / "secret.md"), ".git/config", "memories/../../secret.md", "\x00", "%"):
        for name in ("note", "timeline", "diff"):
            status, data, _ = site.ask(f"/api/{name}?note={quote(reference)}&rev=HEAD")
            assert status == 404 and "outside words" not in json.dumps(data)
    for rev in ("--output=x", "HEAD:../x", "HEAD", "-p"):
        remember(store, Memory("fact", "One two three.", title="Numbers"))
        assert site.ask(f"/api/diff?note=Numbers&rev={quote(rev)}")[0] == 404


def test_answers_hold_what_the_commands_say(store: Store, site: Site) -> None:
    furnish(store)
    assert site.ask("/api/overview")[1]["figures"]["growth"]
    assert site.ask("/api/sessions")[1]["sessions"][0]["title"] == "Payment work"
    found = site.ask("/api/search?q=which%20database&mode=keyword")[1]
    assert found["results"][0]["title"] == "Database" and found["results"][0]["explain"]
    assert site.ask("/api/search?q=" + quote("深色主题") + "&mode=keyword")[1]["results"][0]["title"] == "深色主题"
    picture = site.ask("/api/graph")[1]
    assert len(picture["edges"]) >= 11 and not picture["cut"]
    assert {edge["rel"] for edge in site.ask("/api/graph?rel=blocked_by")[1]["edges"]} == {"blocked_by"}
    cut = site.ask("/api/graph?limit=4")[1]
    assert len(cut["nodes"]) == 4 and cut["total"] > 4 and cut["cut"]
    assert site.ask("/api/blockers")[1]["blockers"][0]["by"]
    one = site.ask("/api/note?note=Database")[1]
    assert "PostgreSQL 16" in one["body"] and one["fields"]["type"] == "decision"
    assert site.ask("/api/devices")[1]["agents"][0]["agent"] == "tester"
    event = site.ask("/api/timeline?note=Database")[1]["events"][0]
    lines = site.ask(f"/api/diff?note=Database&rev={event['rev']}")[1]["lines"]
    assert "+We stay with PostgreSQL 16 for the ledger." in lines


def test_a_hidden_scope_is_hidden_here_too(make_store: Callable[..., Store], serve: Callable[[Store], Site]) -> None:
    store = make_store()
    remember(store, Memory("fact", "The moon base opens in May.", title="Moon", scope="project:moon"))
    store.config.user["agents"] = {"tester": {"scopes": ["shared"]}}
    site = serve(store)
    assert site.ask("/api/note?note=Moon")[0] == 404
    for path in ("overview", "recent", "search?q=moon&mode=keyword", "graph", "devices"):
        assert "Moon" not in json.dumps(site.ask(f"/api/{path}")[1]), path


def test_resolve_settles_and_commits(store: Store, site: Site) -> None:
    path = clash(store)
    (note,) = site.ask("/api/conflicts")[1]["notes"]
    assert note["path"] == path and {"priority", "agent"} < {c["field"] for c in note["conflicts"]}
    assert len(note["conflicts"]) == 3
    assert site.ask("/api/resolve", "POST", {"note": path, "field": "priority", "keep": "1"})[1]["left"] == 2
    assert site.ask("/api/resolve", "POST", {"note": path, "field": "agent", "keep": "2"})[1]["left"] == 1
    status, done, _ = site.ask("/api/resolve", "POST", {"note": path, "field": "body", "keep": "both"})
    assert status == 200 and done["left"] == 0 and done["committed"]
    assert conflicted(store) == [] and "Fridays" in read_any(store, path).body
    assert site.ask("/api/resolve", "POST", {"note": path, "keep": "1"})[0] == 404


def test_resolve_refuses_what_it_does_not_know(store: Store, site: Site) -> None:
    path = clash(store)
    before = store.folder.read(path).data
    for asked in (
        {},
        [],
        3,
        "x",
        {"note": path},
        {"note": path, "keep": "any text"},
        {"note": 1, "keep": "1"},
        {"note": path, "keep": "1", "more": "x"},
        {"note": path, "keep": ["1"]},
    ):
        assert site.ask("/api/resolve", "POST", asked)[0] == 400, asked
    assert site.ask("/api/resolve", "POST", {"note": "../x.md", "keep": "1"})[0] == 404
    assert site.ask("/api/resolve", "POST", {"note": path, "keep": "1"}, headers={"Content-Type": "text/plain"})[0] == 415
    assert site.ask("/api/overview", "POST", {})[0] == 404
    assert store.folder.read(path).data == before


def test_a_store_that_is_not_trusted_is_not_written(store: Store, serve: Callable[[Store], Site]) -> None:
    path = clash(store)
    before = store.folder.read(path).data
    store.trusted = False
    site = serve(store)
    assert site.ask("/api/conflicts")[1]["writable"] is False
    status, data, _ = site.ask("/api/resolve", "POST", {"note": path, "keep": "1"})
    assert (status, data["error"]["code"]) == (403, "untrusted")
    assert store.folder.read(path).data == before


def test_malformed_and_huge_requests_break_nothing(store: Store, site: Site, tmp_path: Path) -> None:
    furnish(store, 3)
    site.ask("/api/overview")
    before = listing(tmp_path)
    head = f"Host: 127.0.0.1:{site.server.port}\r\nX-Mdmem-Token: {site.server.token}\r\n"
    own = f"{head}Origin: http://127.0.0.1:{site.server.port}\r\nContent-Type: application/json\r\n"
    words = random.Random(7)
    sent = [
        b"",
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        f"GET / HTTP/1.1\r\n{head}X: {'y' * 70_000}\r\n\r\n".encode(),
        f"GET / HTTP/1.1\r\n{head}{''.join(f'X{n}: y' + chr(13) + chr(10) for n in range(300))}\r\n".encode(),
        f"POST /api/resolve HTTP/1.1\r\n{own}Content-Length: -5\r\n\r\n".encode(),
        f"POST /api/resolve HTTP/1.1\r\n{own}Content-Length: {MAX_BODY + 1}\r\n\r\n".encode(),
        f"POST /api/resolve HTTP/1.1\r\n{own}Content-Length: {'9' * 5000}\r\n\r\n".encode(),
        f"POST /api/resolve HTTP/1.1\r\n{own}Content-Length: 50\r\n\r\nshort".encode(),
        f"POST /api/resolve HTTP/1.1\r\n{own}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".encode(),
        f"POST /api/resolve HTTP/1.1\r\n{own}Content-Length: 60000\r\n\r\n{'[' * 60000}".encode(),
        f"DELETE /api/note HTTP/1.1\r\n{own}\r\n".encode(),
        *(words.randbytes(words.randrange(1, 400)) for _ in range(30)),
    ]
    for data in sent:
        answer = raw(site, data)
        assert b" 200 " not in answer.split(b"\r\n")[0] and b"Traceback" not in answer, data[:80]
    for query in (
        "q=" + "a" * 50_000,
        "&".join(f"q={n}" for n in range(500)),
        "limit=x&q=a",
        "limit=-1&q=a",
        "limit=99999999999&q=a",
        "q=%ff%fe%00",
        "mode=x&q=a",
        "q=",
        "q=a%20OR%20(((&mode=keyword",
        "limit=%C2%B2&q=a",
        "kind=%27%3B--&q=a&mode=keyword",
    ):
        assert site.ask(f"/api/search?{query}")[0] in (200, 400), query[:60]
    for name in answers.READS:
        assert site.ask(f"/api/{name}?limit=%00&depth=x&note=%F0%9F%92%A9&kind=x&type=%22&rel=%27&around=%2e%2e")[0] in (
            200,
            400,
            404,
        )
    assert site.ask("/api/overview")[0] == 200
    assert listing(tmp_path) == before


def test_many_at_once(store: Store, site: Site) -> None:
    furnish(store, 6)
    path = clash(store)
    seen: list[int] = []

    def work(number: int) -> None:
        names = ("overview", "graph", "search?q=database&mode=keyword", f"timeline?note={path}", "conflicts")
        for turn in range(4):
            try:
                seen.append(site.ask(f"/api/{names[(number + turn) % 5]}")[0])
            except (OSError, http.client.HTTPException):
                seen.append(0)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(seen) == 32 and set(seen) == {200}


def test_idle_connections_do_not_shut_others_out_for_ever(site: Site) -> None:
    idle = [socket.create_connection(("127.0.0.1", site.server.port), timeout=5) for _ in range(MAX_OPEN + 8)]
    assert idle[-1].recv(10) == b""  # one too many is closed at once
    for wire in idle:
        wire.close()
    for _ in range(200):
        try:
            status = site.ask("/api/overview")[0]
            break
        except (OSError, http.client.HTTPException):
            continue
    assert status == 200


def test_the_command_prints_its_address_and_serves(store: Store) -> None:
    line = [sys.executable, "-m", "mdmem", "-C", str(store.root), "dashboard", "--no-open", "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            assert process.stdout is not None
            text = ""
            while not text.rstrip().endswith("}"):
                text += process.stdout.readline()
            found = json.loads(text)
            connection = http.client.HTTPConnection("127.0.0.1", found["port"], timeout=20)
            connection.request("GET", "/api/overview", headers={"X-Mdmem-Token": found["url"].partition("#token=")[2]})
            assert connection.getresponse().status == 200
            connection.close()
        finally:
            process.terminate()
            process.wait(10)
