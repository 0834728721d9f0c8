"""The server of the dashboard: loopback only, a token on every answer with data, Host and Origin checked on every request.

The token travels in the fragment of the first address (which no browser sends) and then in a header that only our own page
sets. No cookie: cookies are shared by all ports of a host, and a foreign page could ride on one.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import traceback
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from mdmem.errors import Ambiguous, ConflictFound, Locked, MdmemError, NotFound, Refused, RefusedState, UsageError
from mdmem.web import answers
from mdmem.web.page import FILES, static

if TYPE_CHECKING:
    from mdmem.store import Store

ADDRESS = "127.0.0.1"
MAX_BODY = 64 * 1024
MAX_FIELDS = 40
MAX_OPEN = 32  # connections served at one time; one more is closed at once
TIMEOUT = 15.0  # seconds that a connection may say nothing

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_STATUS: list[tuple[type[MdmemError], int]] = [
    (NotFound, 404),
    (Ambiguous, 409),
    (ConflictFound, 409),
    (RefusedState, 409),
    (Refused, 403),
    (UsageError, 400),
    (Locked, 503),
]


class Dashboard(ThreadingHTTPServer):
    """A server for one store. Answers with data take turns: a store is used by one thread at a time."""

    daemon_threads = True
    allow_reuse_address = False
    request_queue_size = 64

    def __init__(self, store: Store, port: int = 0, token: str | None = None) -> None:
        self.store = store
        self.token = token or secrets.token_urlsafe(32)
        self.turn = threading.Lock()
        self._open = threading.BoundedSemaphore(MAX_OPEN)
        super().__init__((ADDRESS, port), Handler)
        self.port = int(self.server_address[1])
        self.hosts = (f"{ADDRESS}:{self.port}", f"localhost:{self.port}")
        self.origins = tuple(f"http://{host}" for host in self.hosts)

    @property
    def url(self) -> str:
        """The address to open; whoever knows it may read the store."""
        return f"http://{ADDRESS}:{self.port}/#token={self.token}"

    def server_bind(self) -> None:
        """Bind without asking a name server who we are, as the base class would."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a thread of its own, unless too many are open."""
        if not self._open.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection, then make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._open.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is no news."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Dashboard
    server_version = "mdmem"
    sys_version = ""
    timeout = TIMEOUT

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: an address in a log is an address that others read."""

    def parse_request(self) -> bool:
        """Read the head; refuse a foreign Host, Origin or site before anything else is looked at."""
        if not super().parse_request():
            return False
        why = self._foreign()
        if why:
            self._error(403, "foreign", why)
        return not why

    def _foreign(self) -> str:
        hosts, origins = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
        if len(hosts) != 1 or hosts[0].strip().lower() not in self.server.hosts:
            return "this server answers to its own address only"
        if len(origins) > 1 or any(origin.strip().lower() not in self.server.origins for origin in origins):
            return "this server answers its own page only"
        if self.command not in ("GET", "HEAD") and not origins:
            return "a request that writes names its origin"
        site = self.headers.get("Sec-Fetch-Site", "none").strip().lower()
        # The empty page may be come to from anywhere: a link in a terminal, the file that opens the browser.
        if site not in ("none", "same-origin") and not (self.path == "/" and self.headers.get("Sec-Fetch-Mode") == "navigate"):
            return "this server answers its own page only"
        return ""

    def _known(self) -> bool:
        given = self.headers.get_all("X-Mdmem-Token", [])
        return len(given) == 1 and hmac.compare_digest(given[0].encode("utf-8", "replace"), self.server.token.encode())

    def do_GET(self) -> None:
        """Answer a file of the page or a question."""
        path, _, words = self.path.partition("?")
        if path in FILES:
            data, kind = static(FILES[path])
            self._send(200, data, kind)
        elif path.startswith("/api/"):
            self._read(path.removeprefix("/api/"), words)
        else:
            self._error(404, "not_found", "no such page")

    do_HEAD = do_GET

    def _read(self, name: str, words: str) -> None:
        if not self._known():
            self._error(401, "token", "open the address that mdmem dashboard printed")
            return
        answer = answers.READS.get(name)
        if answer is None:
            self._error(404, "not_found", "no such question")
            return
        try:
            given = parse_qs(words, max_num_fields=MAX_FIELDS, errors="replace")
        except ValueError:
            self._error(400, "usage", "too many parameters")
            return
        self._answer(lambda: answer(self.server.store, given))

    def do_POST(self) -> None:
        """Settle a conflict: the only thing that writes."""
        body = self._body()
        if body is None:
            return
        if not self._known():
            self._error(401, "token", "open the address that mdmem dashboard printed")
        elif self.path != "/api/resolve":
            self._error(404, "not_found", "nothing is written there")
        elif self.headers.get_content_type() != "application/json":
            self._error(415, "usage", "send JSON")
        else:
            try:
                asked = json.loads(body)
            except (ValueError, RecursionError):
                self._error(400, "usage", "this is no JSON")
                return
            self._answer(lambda: answers.resolve(self.server.store, asked))

    def _body(self) -> bytes | None:
        """Return the body, None when it was refused or did not come."""
        lengths = self.headers.get_all("Content-Length", [])
        text = lengths[0].strip() if len(lengths) == 1 else ""
        if self.headers.get("Transfer-Encoding") or not (text.isascii() and text.isdigit()):
            self._error(411, "usage", "say the length")
            return None
        if len(text) > 9 or int(text) > MAX_BODY:
            self._error(413, "usage", "too large")
            return None
        data = self.rfile.read(int(text))
        return data if len(data) == int(text) else None

    def _answer(self, work: Any) -> None:
        try:
            with self.server.turn:
                data = json.dumps(work(), default=str).encode("ascii")
        except MdmemError as error:
            status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
            self._send(status, json.dumps({"error": error.as_dict()}).encode("ascii"))
        except Exception as error:
            from mdmem.config import write_crash_log

            write_crash_log("".join(traceback.format_exception(error)))
            self._error(500, "unexpected", f"unexpected {type(error).__name__}; the log names the place")
        else:
            self._send(200, data)

    def _error(self, status: int, code: str, message: str) -> None:
        self._send(status, json.dumps({"error": {"code": code, "message": message, "hint": ""}}).encode("ascii"))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what the base class refuses, without repeating what was sent."""
        self._error(int(code), "http", HTTPStatus(code).phrase)

    def _send(self, status: int, data: bytes, kind: str = "application/json") -> None:
        self.close_connection = True
        try:
            self.send_response(status)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)
        except OSError:
            pass  # whoever asked is gone
