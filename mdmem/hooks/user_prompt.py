"""UserPromptSubmit: notes the prompt, and answers with what the memory knows about it, if it knows anything."""

from __future__ import annotations

from mdmem.hooks.place import find_place
from mdmem.hooks.turns import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Characters kept of a prompt in the spool.
PROMPT = 4000


def user_prompt(payload: dict[str, Any]) -> dict[str, Any] | None:
    """Return context for a prompt, None for most of them."""
    prompt = payload.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return None
    from mdmem.memory.prompts import from_machine

    if from_machine(prompt, payload.get("source")):
        return None
    place = find_place(payload["cwd"])
    if place is None:
        return None
    if place.settings["capture"]:
        from mdmem.memory.spool import keepable

        spool(place, payload, {"k": "prompt", "text": keepable(prompt.strip(), PROMPT)})
    return None
