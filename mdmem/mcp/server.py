"""`mdmem mcp`: tools, resources and prompts over the store, one process a client.

The store is opened at the first call, the model at the first search, and the warm process answers when it runs.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from mdmem import __version__
from mdmem.errors import MdmemError
from mdmem.mcp.check import problem
from mdmem.mcp.protocol import BadParams, Service, run
from mdmem.mcp.tools import BY_NAME, INSTRUCTIONS, PROMPTS, TOOLS

if TYPE_CHECKING:
    from mdmem.store import Store

PAGE = 200
SCHEME = "mdmem:///"
MARKDOWN = "text/markdown"


class Memory:
    """The answers to a client; `directory` is the store's place, None to find it from the launch directory."""

    def __init__(self, directory: str | None) -> None:
        self.directory = directory
        self._store: Store | None = None

    def store(self) -> Store:
        """Return the store, opened again when another was trusted, cloned or made meanwhile. Raises MdmemError."""
        from mdmem.store import Store

        if self._store is None or not self._store.trusted:
            if self._store is not None:
                self._store.close()
            self._store = Store.open(self.directory)
            self._store.alone = self.directory is not None
        return self._store

    def call(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return a tool's result; what went wrong comes as a result with isError and what to do next."""
        if name not in BY_NAME:
            raise BadParams(f"no tool is named {name}")
        wrong = problem(given, BY_NAME[name]["inputSchema"])
        if wrong:
            return _content(wrong, error=True)
        from mdmem.mcp.actions import ACTIONS

        try:
            store = self.store()
            before = len(store.notices)
            text = ACTIONS[name](store, given)
            return _content("\n".join([text, *(f"note: {line}" for line in store.notices[before:])]))
        except MdmemError as error:
            return _content(f"{error}" + (f"\ntry: {error.hint}" if error.hint else ""), error=True)
        except Exception as error:
            import traceback

            from mdmem.config import write_crash_log

            path = write_crash_log("".join(traceback.format_exception(error)))
            return _content(f"unexpected {type(error).__name__}; a log for a report is at {path}", error=True)

    def resources(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return a page of notes as resources."""
        from mdmem.recall.listing import select
        from mdmem.recall.query import Filters

        cursor = params.get("cursor") or "0"
        if not isinstance(cursor, str) or not _is_count(cursor):
            raise BadParams("no such cursor")
        try:
            rows = select(self.store(), Filters(), limit=int(cursor) + PAGE + 1)[int(cursor) :]
        except MdmemError:
            rows = []
        items = [
            {"uri": _uri(row["path"]), "name": row["id"] or row["path"], "title": row["title"] or "", "mimeType": MARKDOWN}
            for row in rows[:PAGE]
        ]
        more = {"nextCursor": str(int(cursor) + PAGE)} if len(rows) > PAGE else {}
        return {"items": items, **more}

    def read(self, uri: str) -> dict[str, Any]:
        """Return a note's text. Raises BadParams."""
        from urllib.parse import unquote

        from mdmem.recall.shared_note import read_anywhere

        if not uri.startswith(SCHEME):
            raise BadParams(f"a note's address starts with {SCHEME}")
        try:
            note, _ = read_anywhere(self.store(), unquote(uri.removeprefix(SCHEME)))
        except MdmemError as error:
            raise BadParams(str(error)) from error
        text = note.data.decode("utf-8", "replace")
        return {"contents": [{"uri": uri, "mimeType": MARKDOWN, "text": text}]}

    def prompt(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return a prompt with the store's data in it. Raises BadParams."""
        try:
            if name == "handoff":
                hours = str(given.get("hours", "8"))
                if not _is_count(hours):
                    raise BadParams("hours is a whole number")
                text = self.call("memory_handoff", {"hours": max(1, min(720, int(hours)))})["content"][0]["text"]
                ask = "Write a handoff for the next agent from this: what changed, what was decided, what blocks, what is next."
            elif name == "review":
                text = _review(self.store())
                ask = "Go through these notes one by one and propose for each conflict which version is right, and why."
            else:
                raise BadParams(f"no prompt is named {name}")
        except MdmemError as error:
            raise BadParams(str(error)) from error
        return {"messages": [{"role": "user", "content": {"type": "text", "text": f"{ask}\n\n{text}"}}]}


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _review(store: Store) -> str:
    from mdmem.memory.conflicts import as_data, conflicted
    from mdmem.recall.pack import neutral

    lines = []
    for note, conflicts in conflicted(store):
        lines.append(f"- {note.path}")
        for conflict in as_data(note, conflicts)["conflicts"]:
            texts = [f"  - {conflict['field']} {v['number']}: {neutral(v['text'])[:500]}" for v in conflict["versions"]]
            lines += texts
    return "\n".join(lines) or "There are no conflicts."


def _uri(path: str) -> str:
    from urllib.parse import quote

    return SCHEME + quote(path)


def _content(text: str, error: bool = False) -> dict[str, Any]:
    """Return a result of text alone: a client that sees structured content drops the text."""
    return {"content": [{"type": "text", "text": text}], "isError": error}


def service_of(memory: Memory) -> Service:
    """Return what the protocol's loop serves."""
    template = {"uriTemplate": SCHEME + "{path}", "name": "note", "title": "A note", "mimeType": MARKDOWN}
    return Service(
        "mdmem",
        __version__,
        INSTRUCTIONS,
        lambda: TOOLS,
        memory.call,
        memory.resources,
        lambda: [template],
        memory.read,
        lambda: PROMPTS,
        memory.prompt,
        lambda text: print(f"mdmem mcp: {text}", file=sys.stderr),
    )


def serve(directory: str | None = None) -> int:
    """Answer on stdin and stdout until the client goes away; returns the exit code."""
    service = service_of(Memory(directory))
    sink = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not land between the messages.
    os.dup2(2, 1)
    return run(service, sys.stdin.buffer, sink)
