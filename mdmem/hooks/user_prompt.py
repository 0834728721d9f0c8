"""UserPromptSubmit: notes the prompt, and answers with what the memory knows about it, if it knows anything.

The warm process does both judging and redacting, since it has the patterns ready; without it the words alone decide here.
"""

from __future__ import annotations

from mdmem.hooks.place import find_place, open_store
from mdmem.hooks.seen import doubled
from mdmem.hooks.turns import session_of, spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mdmem.hooks.place import Place

# Tokens of what one prompt may bring, a part of the session's budget at most.
BUDGET = 900
# Characters of a prompt that are looked at: what is kept of it, and what redaction looks at beyond.
LONGEST = 40_000
# Seconds that the warm process may take before the words alone decide.
PATIENCE = 1.0


def user_prompt(payload: dict[str, Any]) -> dict[str, Any] | None:
    """Return context for a prompt, None for most of them."""
    prompt = payload.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return None
    place = find_place(payload["cwd"])
    if place is None:
        return None
    inject = place.settings["inject"] in ("on", "own")
    if not inject and not place.settings["capture"]:
        return None
    if doubled(place, session_of(payload), "UserPromptSubmit"):
        return None
    request = _request(place, payload, prompt, inject)
    asked = _ask(place, request)
    found = asked.answer(PATIENCE) if asked is not None else None
    if found is None or "error" in found:
        found = _alone(place, request)
    kept = found.get("kept")
    if place.settings["capture"] and isinstance(kept, str) and kept:
        spool(place, payload, {"k": "prompt", "text": kept})
    if found.get("later"):
        # Nothing is built while somebody waits: the worker does it, and the next prompt has it.
        from mdmem.hooks import queue

        queue.put(place, {"do": "index"})
    text, keys = found.get("text"), found.get("keys")
    if not isinstance(text, str) or not text or not isinstance(keys, list):
        return None
    from mdmem.hooks import seen

    shown = found.get("shown")
    seen.add(place, session_of(payload), [str(one) for one in (shown if isinstance(shown, list) else keys)])
    return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": text}}


def _request(place: Place, payload: dict[str, Any], prompt: str, inject: bool) -> dict[str, Any]:
    from mdmem.hooks import seen

    source = payload.get("source")
    return {
        "op": "prompt",
        "root": place.root,
        "scope": place.scope,
        "agent": place.agent,
        "device": place.device,
        "prompt": prompt[:LONGEST],
        "source": source if isinstance(source, str) else "",
        "inject": inject,
        "own": place.settings["inject"] == "own",
        "budget": min(BUDGET, place.settings["token_budget"]),
        "others": [{"name": one["name"], "root": one["root"]} for one in place.others],
        "seen": sorted(seen.seen(place, session_of(payload))) if inject else [],
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
    """Return what the warm process would have answered, by words alone."""
    import os

    from mdmem.memory.prompts import keepable_prompt, worth_searching

    kept = keepable_prompt(request["prompt"], request["source"])
    if not kept or not request["inject"] or not worth_searching(request["prompt"]):
        return {"kept": kept}
    if not os.path.exists(os.path.join(place.state, "catalog.db")):
        return {"kept": kept, "later": True}
    from mdmem.memory.relevant import relevant

    store = open_store(place)
    store.index.rebuilds = False
    return {"kept": kept, **relevant(store, request, dense=False)}
