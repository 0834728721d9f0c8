"""What a session says about open tasks: which it finished, which it found blocked. Proposed; applied only where wanted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mdmem.learn.compare import jaccard
from mdmem.learn.statement import read
from mdmem.locate import write_private

if TYPE_CHECKING:
    from mdmem.memory.session_record import Turn
    from mdmem.store import Store

_DONE = re.compile(
    r"\b(?:done|finished|completed?|shipped|merged|implemented|released|works now|is in place|closed)\b"
    r"|完成|搞定|做完|已上线|合并了|已实现",
    re.IGNORECASE,
)
_BLOCKED = re.compile(
    r"\b(?:blocked|stuck|waiting (?:for|on)|cannot (?:go on|continue|proceed)|depends on)\b|卡住|卡在|"
    r"阻塞|等待|在等",
    re.IGNORECASE,
)
_NOT_YET = re.compile(
    r"\b(?:not|isn't|almost|nearly|will be|once|when|if|until|to be|should be)\b|还没|尚未|快要|等.*再|如果|"
    r"没有",
    re.IGNORECASE,
)
# Share of a task's words that a sentence must hold.
NAMED = 0.7


def reflect(store: Store, turns: list[Turn], dry_run: bool, paths: list[str]) -> list[dict[str, Any]]:
    """Return {task, title, change, text, line, outcome} for each open task that the session finished or blocked."""
    wanted = str(store.config.get("extract.tasks"))
    if wanted == "off":
        return []
    from mdmem.learn.extract import sentences
    from mdmem.team.tasks import OPEN, listed, status_of

    open_tasks = [(task, read(task.title).terms) for task in listed(store) if status_of(task) in OPEN]
    found: dict[str, dict[str, Any]] = {}
    for turn in turns if open_tasks else ():
        if turn.who == "tool" or turn.agent:
            continue
        for sentence in sentences(turn.text):
            change = "block" if _BLOCKED.search(sentence) else "done" if _DONE.search(sentence) else ""
            if not change or (change == "done" and _NOT_YET.search(sentence)) or sentence.rstrip().endswith(("?", "？")):
                continue
            terms = read(sentence).terms
            for task, title in open_tasks:
                if len(title) >= 2 and len(title & terms) >= NAMED * len(title) and jaccard(title, terms) > 0.2:
                    row = {"task": task.id, "title": task.title, "change": change, "text": sentence[:200], "line": turn.line}
                    found[task.id] = {**row, "outcome": "proposed", "why": f"the session says so: task {change}"}
    rows = [row for row in found.values() if not dry_run]
    if rows and wanted == "apply":
        for row in rows:
            row["outcome"] = _applied(store, row, paths)
    if rows:
        _propose(store, [row for row in rows if row["outcome"] == "proposed"])
    return list(found.values())


def _applied(store: Store, row: dict[str, Any], paths: list[str]) -> str:
    from mdmem.errors import MdmemError
    from mdmem.team.tasks import step

    try:
        step(store, str(row["task"]), str(row["change"]), outcome=str(row["text"]))
    except MdmemError:
        return "proposed"
    return "applied"


def proposals(store: Store) -> list[dict[str, Any]]:
    """Return what was proposed for tasks that are still open."""
    from mdmem.team.tasks import listed

    try:
        data = json.loads((store.common_state_dir / "proposals.json").read_text("utf-8"))
    except (OSError, ValueError):
        return []
    still_open = {task.id: task.text("status") for task in listed(store)} if data else {}
    rows = [row for row in data if isinstance(row, dict) and row.get("task") in still_open] if isinstance(data, list) else []
    return [row for row in rows if not (row.get("change") == "block" and still_open[row["task"]] == "blocked")]


def _propose(store: Store, rows: list[dict[str, Any]]) -> None:
    kept = {row["task"]: row for row in [*proposals(store), *rows]}
    write_private(store.common_state_dir / "proposals.json", json.dumps(list(kept.values()), ensure_ascii=False).encode())
