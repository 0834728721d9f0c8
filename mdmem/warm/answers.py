"""What the warm process answers: context for a prompt, a recall, vectors. Holds the stores in use and one model.

A request is answered with the index as it is; bringing it up to the files happens afterwards, in the background.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mdmem.config import DEFAULTS

if TYPE_CHECKING:
    from mdmem.index.embed import Embedder
    from mdmem.store import Store

# Seconds after which a store that was used is looked over again, after the answer.
LOOK_AGAIN = 3.0
# Seconds without use after which a store is dropped.
UNUSED = 900.0
# A question that finds nothing in particular and loads what the next one needs.
PLAIN = "which decisions were made about this project"
# Seconds that one background look may spend on vectors.
EMBED = 20.0
# Files that changed which are asked for one by one; more of them are found by a look at all.
SINGLE = 200


class Held:
    """A store in use: its lock, and what tells whether it is still the same folder."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lock = threading.Lock()
        self.inode = inode_of(str(store.root))
        self.settings = settings_stamp(store)
        # Stores for which all of this is the same have the same index. Who asks does not matter to it, nor how is searched:
        # every further index would hold words and vectors once more.
        chosen = {name: store.config.get(name) for name in DEFAULTS if name.startswith(("index.", "embedding."))}
        self.settled = (str(store.root), self.inode, self.settings, json.dumps(chosen, sort_keys=True, default=str))
        self.used = time.monotonic()
        self.looked = 0.0
        self.looking = False


def inode_of(root: str) -> tuple[int, int, int] | None:
    """Return what identifies a store's folder and its git directory, None when they are gone."""
    try:
        found = os.stat(root)
        marker = os.stat(os.path.join(root, ".mdmem.toml"))
    except OSError:
        return None
    return found.st_dev, found.st_ino, marker.st_dev


def settings_stamp(store: Store) -> tuple[Any, ...]:
    """Return what changes when the settings of a store may have changed."""
    from mdmem.config import user_file
    from mdmem.locate import trusted_file

    found: list[Any] = []
    for path in (user_file(), trusted_file(), store.root / ".mdmem.toml"):
        try:
            status = os.stat(path)
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError:
            found.append(None)
    return tuple(found)


class Answers:
    """The stores in use, one model for each setting of it, and the operations."""

    def __init__(self) -> None:
        self.held: dict[str, Held] = {}
        self.models: dict[str, Embedder] = {}
        self.lock = threading.Lock()
        self.operations: dict[str, Callable[[Held, dict[str, Any]], dict[str, Any]]] = {
            "recall": self._recall,
            "near": self._near,
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request; raises what the operation raises."""
        # These look into several stores and hold one at a time.
        if request.get("op") == "prompt":
            return self._prompt(request)
        if request.get("op") == "warm":
            return self._warm(request)
        work = self.operations.get(str(request.get("op")))
        if work is None:
            return {"error": f"no operation {request.get('op')!r}"}
        held = self._get(request)
        with held.lock:
            answer = work(held, request)
            self._share(held)
        self._look_later(held)
        return answer

    def _get(self, request: dict[str, Any]) -> Held:
        from pathlib import Path

        from mdmem.config import user_file
        from mdmem.errors import Refused
        from mdmem.store import Store

        root, cwd = str(request["root"]), str(request.get("cwd") or request["root"])
        if request.get("user_file", str(user_file())) != str(user_file()):
            raise Refused("another configuration is in force there")
        options = request.get("options") or {name: request[name] for name in ("agent", "device") if request.get(name)}
        key = json.dumps([root, cwd, options], sort_keys=True)
        with self.lock:
            held = self.held.get(key)
            if held is not None and (held.inode != inode_of(root) or held.settings != settings_stamp(held.store)):
                self._drop(key)
                held = None
            if held is None:
                store = Store.open(root, need="write", cwd=Path(cwd), options=options)
                if os.path.realpath(store.root) != os.path.realpath(root):
                    raise Refused(f"no store at {root}")
                # A request never rebuilds, nor looks at every file once it is told of changes; the look afterwards does.
                held = Held(store)
                same = next((other for other in self.held.values() if other.settled == held.settled), None)
                if same is not None:
                    # Agents of one store use one index: ten of them would hold its words and vectors ten times.
                    store.use_index(same.store)
                    held.lock = same.lock
                store.index.rebuilds = False
                store.index.lookout.behind = True
                self.held[key] = held
                model = self.models.get(_model_key(store))
                if model is not None:
                    store.index.dense.use(model)
            held.used = time.monotonic()
            return held

    def _drop(self, key: str) -> None:
        """Let go of a store; its index is closed when no other agent uses it."""
        gone = self.held.pop(key)
        if all(held.store.index is not gone.store.index for held in self.held.values()):
            gone.store.close()

    def _share(self, held: Held) -> None:
        key = _model_key(held.store)
        if key not in self.models:
            model = held.store.index.dense.loaded
            if model is not None:
                self.models[key] = model
                spare = getattr(model, "spare", None)
                if spare is not None:
                    spare()

    def _prompt(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return {kept, text, keys} for a prompt: what the spool keeps of it, and what the session's store and the user's
        `others` ({name, root} each) have to say."""
        from mdmem.errors import MdmemError
        from mdmem.memory.prompts import keepable_prompt, worth_searching
        from mdmem.memory.relevant import found_in, packed

        prompt = str(request["prompt"])
        kept = keepable_prompt(prompt, request.get("source"))
        if not kept or not request.get("inject", True) or not worth_searching(prompt):
            return {"kept": kept}
        found = []
        for name, root in [("", request["root"]), *((str(one["name"]), str(one["root"])) for one in request.get("others", ()))]:
            try:
                held = self._get({**request, "root": root, "cwd": root})
            except MdmemError:
                if not name:
                    raise
                continue
            with held.lock:
                found += found_in(held.store, request, dense=True, name=name)
                self._share(held)
            self._look_later(held)
        return {"kept": kept, **packed(str(request["root"]), request, found)}

    def _recall(self, held: Held, request: dict[str, Any]) -> dict[str, Any]:
        from mdmem.warm.recalling import answer_recall

        return answer_recall(held.store, request)

    def _near(self, held: Held, request: dict[str, Any]) -> dict[str, Any]:
        from mdmem.learn.nearness import measured

        found = measured(held.store, str(request["title"]), str(request["text"]))
        return {} if found is None else {"near": list(found[0].items()), "limit": found[1]}

    def _warm(self, request: dict[str, Any]) -> dict[str, Any]:
        """Load what the first prompt of a session will need."""
        from mdmem.federation import searched
        from mdmem.memory.relevant import weigh

        stores = searched(self._get(request).store)
        for root in dict.fromkeys(str(store.root) for _, store in stores):
            held = self._get({**request, "root": root, "cwd": root})
            with held.lock:
                weigh(held.store, PLAIN, dense=True, make=True)
                self._share(held)
            self._look_later(held)
        return {"ok": True}

    def _look_later(self, held: Held) -> None:
        if held.looking or time.monotonic() - held.looked < LOOK_AGAIN:
            return
        held.looking = True
        threading.Thread(target=self._look, args=(held,), daemon=True).start()

    def _look(self, held: Held) -> None:
        """Bring the index of a store up to its files, in an index object of its own: requests are not held up."""
        from mdmem.index.index import Index
        from mdmem.index.refresh import unsettled
        from mdmem.warm import memory

        try:
            paths = unsettled(held.store.index)
            if paths is None:
                return
            index = Index(held.store)
            model = self.models.get(_model_key(held.store))
            if model is not None:
                index.dense.use(model)
            # What changed is known: the other files, of which there may be very many, are not looked at once more.
            index.refresh(embed_budget_s=EMBED, wait_s=0.0, paths=paths if len(paths) <= SINGLE else None)
            index.close()
            memory.trim()
        except Exception:
            # The next command says what is wrong; this is only ahead of it.
            pass
        finally:
            held.looked = time.monotonic()
            held.looking = False

    def rest(self) -> None:
        """Nobody asks for the moment: give back the memory that is had again from the system at the next question."""
        with self.lock:
            for held in self.held.values():
                held.store.index.rest()

    def tidy(self) -> None:
        """Drop stores that are gone or unused."""
        now = time.monotonic()
        with self.lock:
            for key, held in list(self.held.items()):
                if now - held.used > UNUSED or held.inode != inode_of(str(held.store.root)):
                    self._drop(key)


def _model_key(store: Store) -> str:
    return json.dumps([store.config.get(name) for name in sorted(DEFAULTS) if name.startswith("embedding.")])
