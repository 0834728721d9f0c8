"""A served dashboard, and a store that holds something of everything."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mdmem.memory.remember import Memory, remember
from mdmem.notes.frontmatter import edit
from mdmem.repo.merge import merge
from mdmem.store import Store
from mdmem.web.server import Dashboard

EVIL = "</script><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u202egnp.exe\x1b[31m"


class Site:
    """A running dashboard and its client."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.server = Dashboard(store)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    def ask(
        self, path: str, method: str = "GET", body: Any = None, headers: dict[str, str] | None = None, token: bool = True
    ) -> tuple[int, Any, dict[str, str]]:
        """Return (status, JSON or bytes, headers); a header given as '' is left out."""
        own = {"Host": f"127.0.0.1:{self.server.port}", "X-Mdmem-Token": self.server.token if token else ""}
        if method == "POST":
            own |= {"Origin": f"http://127.0.0.1:{self.server.port}", "Content-Type": "application/json"}
        sent = {name: value for name, value in {**own, **(headers or {})}.items() if value}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            if data is not None and "Content-Length" not in sent:
                sent["Content-Length"] = str(len(data))
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders(data)
            answer = connection.getresponse()
            raw = answer.read()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, json.loads(raw) if found["content-type"].startswith("application/json") else raw, found
        finally:
            connection.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Store], Site]]:
    """Return start(store); every site is closed at the end."""
    sites: list[Site] = []

    def start(store: Store) -> Site:
        sites.append(Site(store))
        return sites[-1]

    yield start
    for site in sites:
        site.close()


@pytest.fixture
def site(store: Store, serve: Callable[[Store], Site]) -> Site:
    """A dashboard of an empty store."""
    return serve(store)


def clash(store: Store) -> str:
    """Keep a memory and merge two edits of it; returns its path."""
    kept = remember(store, Memory("decision", "We deploy on Thursdays.\n\nAlways before noon.", title="Deploy day"))
    base = store.folder.read(kept.path)
    ours = edit(base.data, {"priority": "high", "agent": "a"}).replace(b"Thursdays", b"Fridays")
    theirs = edit(base.data, {"priority": "low", "agent": "b"}).replace(b"Thursdays", b"Mondays")
    store.folder.write(kept.path, merge(base.data, ours, theirs, kept.path).text, base.sha)
    return kept.path


def furnish(store: Store, entities: int = 12) -> None:
    """Put something of everything into a store."""
    for number in range(entities):
        links = [f"[[Part {number // 3}]]"] if number else []
        waits = {"status": "blocked", "blocked_by": [f"Part {number + 1}"]} if number % 5 == 1 else {}
        lines = ["---", "kind: entity", "type: " + ("project", "initiative", "person")[number % 3], f"title: Part {number}"]
        lines += [f"created: 2026-{1 + number % 11:02}-03T08:00:00Z", "updated: 2026-11-20T08:00:00Z"]
        lines += [f'part_of: "{links[0]}"'] if links else []
        lines += [f"{key}: {value}" for key, value in waits.items()]
        store.folder.create(
            f"entities/part-{number}.md", "\n".join([*lines, "---", f"Part {number} of the whole.", ""]).encode()
        )
    remember(store, Memory("decision", "We stay with PostgreSQL 16 for the ledger.", title="Database", tags=["database"]))
    remember(store, Memory("preference", "结账页面使用深色主题。", title="深色主题"))
    remember(store, Memory("fact", f"A note from elsewhere {EVIL}", title=f"Evil {EVIL}"))
    session = b"---\nkind: session\ntitle: Payment work\nagent: claude\ndevice: laptop\nsession: s1\n---\nFixed the ledger.\n"
    store.folder.create("sessions/2026/11/s1.md", session)
