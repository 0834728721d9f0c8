"""UserPromptSubmit: notes the prompt, and answers with what the memory knows about it, if it knows anything.

The warm process is asked first and works while the prompt is spooled here; without it the words alone decide.
"""

from __future__ import annotations

from mdmem.hooks.place import find_place, open_store
from mdmem.hooks.turns import session_of, spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mdmem.hooks.place import Place

# Characters kept of a prompt in the spool.
PROMPT = 4000
# Tokens of what one prompt may bring, a part of the session's budget at most.
BUDGET = 900
# Seconds that the warm process may take before the words alone decide.
PATIENCE = 1.0


def user_prompt(payload: dict[str, Any]) -> dict[str, Any] | None:
    """Return context for a prompt, None for most of them."""
    prompt = payload.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return None
    from mdmem.memory.prompts import from_machine, worth_searching

    if from_machine(prompt, payload.get("source")):
        return None
    place = find_place(payload["cwd"])
    if place is None:
        return None
    wanted = place.settings["inject"] in ("on", "own") and worth_searching(prompt)
    request = _request(place, payload, prompt) if wanted else None
    asked = _ask(place, request) if request else None
    if place.settings["capture"]:
        from mdmem.memory.spool import keepable

        spool(place, payload, {"k": "prompt", "text": keepable(prompt.strip(), PROMPT)})
    if request is None:
        return None
    found = asked.answer(PATIENCE) if asked is not None else None
    if found is None or "error" in found:
        found = _alone(place, request)
    text, keys = found.get("text"), found.get("keys")
    if not isinstance(text, str) or not text or not isinstance(keys, list):
        return None
    from mdmem.hooks import seen

    seen.add(place, session_of(payload), [str(key) for key in keys])
    return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": text}}


def _request(place: Place, payload: dict[str, Any], prompt: str) -> dict[str, Any]:
    from mdmem.hooks import seen

    return {
        "op": "prompt",
        "root": place.root,
        "scope": place.scope,
        "agent": place.agent,
        "device": place.device,
        "prompt": prompt[:20_000],
        "own": place.settings["inject"] == "own",
        "budget": min(BUDGET, place.settings["token_budget"]),
        "seen": sorted(seen.seen(place, session_of(payload))),
    }


def _ask(place: Place, request: dict[str, Any]) -> Any:
    from mdmem.warm import client

    if not client.allowed(str(place.settings["serve"])):
        return None
    asked = client.begin(request)
    if asked is None:
        # It ended when the user was away, or never was: the next prompt has it.
        from mdmem.warm.starting import start

        start(place.root, place.agent, place.device)
    return asked


def _alone(place: Place, request: dict[str, Any]) -> dict[str, Any]:
    import os

    if not os.path.exists(os.path.join(place.state, "catalog.db")):
        # Nothing is built while somebody waits: the worker does it, and the next prompt has it.
        from mdmem.hooks import queue

        queue.put(place, {"do": "index"})
        return {}
    from mdmem.memory.relevant import relevant

    store = open_store(place)
    store.index.rebuilds = False
    return relevant(store, request, dense=False)
