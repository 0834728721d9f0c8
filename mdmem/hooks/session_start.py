"""SessionStart: starts the pull, the warm process and the worker in the background, and answers with what matters."""

from __future__ import annotations

from mdmem.hooks.failures import untold
from mdmem.hooks.place import data_folder, find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def session_start(payload: dict[str, Any]) -> dict[str, Any] | None:
    """Return the context of a session that starts, resumes, was cleared or compacted."""
    answer: dict[str, Any] = {}
    find_place(payload["cwd"])
    told = untold(data_folder())
    if told:
        answer["systemMessage"] = told
    return answer or None
