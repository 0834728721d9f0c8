"""Break the code of each promise on purpose, one place at a time, and see that a test fails for every one.

    python tools/break_promises.py                 all of them, with a table; exit code 1 when a break goes unnoticed
    python tools/break_promises.py lock redaction  those whose name holds one of the words
    python tools/break_promises.py --list

Each break replaces one piece of text, which must stand exactly once in its file, in a copy of the working tree, and runs the
tests that ought to notice. The tests are run once on the unbroken copy first: a red test proves nothing then.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Seconds for one run of the tests of a break; a break may well make them hang, which counts as noticed.
LIMIT = 240


@dataclass(frozen=True)
class Break:
    """One piece of code of a promise (1 to 10 of the security and architecture pages), what to put there, who notices."""

    name: str
    promise: int
    file: str
    old: str
    new: str
    tests: str


# One break a line or two reads better than one argument a line.
# ruff: noqa: E501
BREAKS = (
    Break("lock removed", 1, "mdmem/locks.py", "            held = self.acquire()\n", "            held = self.acquire() or True\n", "tests/ground/test_locks.py"),
    Break("write lock not taken", 1, "mdmem/notes/folder.py", "                    lock.__enter__()\n", "                    pass\n",
          "tests/notes/test_folder.py tests/repo/test_commit.py"),
    Break("no fsync of a file", 1, "mdmem/notes/disk.py", "    os.fsync(fd)\n\n\ndef fsync_folder", "    pass\n\n\ndef fsync_folder",
          "tests/notes/test_folder.py"),
    Break("no fsync of a folder", 1, "mdmem/notes/folder.py", "            disk.fsync_folder(folder)\n\n    def _changed",
          "            pass\n\n    def _changed", "tests/notes/test_folder.py"),
    Break("written in place", 1, "mdmem/notes/folder.py", "                    disk.replace(temp, target)\n",
          "                    target.write_bytes(data)\n", "tests/notes/test_folder.py"),
    Break("lost update", 1, "mdmem/notes/folder.py", "if expect is not None and sha(data) != expect:", "if False:",
          "tests/notes/test_folder.py"),
    Break("twins allowed", 1, "mdmem/notes/folder.py", "                if above + name != but:\n", "                if False:\n",
          "tests/notes/test_folder.py"),
    Break("editor overwritten by sync", 1, "mdmem/repo/place.py", "            if _read(target) != step.now:  #",
          "            if False:  #", "tests/repo/test_sync.py tests/repo/test_faults.py"),
    Break("dirty note overwritten by sync", 1, "mdmem/repo/place.py", "    if step.now in (step.old, step.new) or step.now is None:\n",
          "    if True:\n", "tests/repo/test_sync.py tests/repo/test_faults.py"),
    Break("ledger not read", 1, "mdmem/repo/ledger.py", "- deleted[1 - place]\n    return missing", "- deleted[1 - place]\n    return set()",
          "tests/repo/test_ledger.py"),
    Break("valve open", 1, "mdmem/repo/ledger.py", "    return lost >= VALVE_COUNT and lost * VALVE_SHARE > total\n",
          "    return False\n", "tests/repo/test_ledger.py tests/repo/test_sync.py"),
    Break("rewritten remote taken", 1, "mdmem/repo/sync.py", "        if seen is None or seen == tip or self.options.join:\n",
          "        if True:\n", "tests/repo/test_sync_states.py"),
    Break("a bad block is written to", 2, "mdmem/memory/change.py", "    if not note.ok:\n        raise BadNote(f\"{note.path} cannot be changed\", why=\"it cannot be parsed\", hint=\"mdmem check\")\n    if note.id == new_identity:",
          "    if note.id == new_identity:", "tests/memory tests/notes tests/test_hazards.py"),
    Break("unreadable means deleted", 2, "mdmem/index/changes.py",
          "        return not any(top == \"\" or inner == top or inner.startswith(top + \"/\") for top in tops)\n",
          "        return True\n", "tests/index/test_index.py tests/index/test_damage.py tests/test_hazards.py"),
    Break("one side picked", 3, "mdmem/repo/merge_fields.py", "    return decided[0] if decided else _versions(state, name, b, o, t)\n",
          "    return decided[0] if decided else o\n", "tests/repo/test_merge_fields.py"),
    Break("removal from a set undone", 3, "mdmem/repo/merge_fields.py", "    kept = (one & two) | (one - old) | (two - old)\n",
          "    kept = one | two\n", "tests/repo/test_merge_fields.py"),
    Break("a tie of status decided", 3, "mdmem/repo/merge_fields.py", "or ours == theirs:\n        return None\n", "or ours == theirs:\n        return 0\n",
          "tests/repo/test_merge_fields.py"),
    Break("deletion beats edit", 3, "mdmem/repo/tree_merge.py", "        if left is None or (left[1].oid == base.oid and path not in work.base.unknown):\n",
          "        if True:\n", "tests/repo/test_sync.py tests/repo/test_merge_clones.py"),
    Break("driver is silently ours", 3, "mdmem/repo/driver.py", "            return _as_text(base, ours, theirs, size)\n",
          "            return 0\n", "tests/repo/test_driver.py"),
    Break("conflict reported as clean", 3, "mdmem/repo/driver.py", "        return 1 if merged.conflicts else 0\n", "        return 0\n",
          "tests/repo/test_driver.py"),
    Break("catalog without a check", 4, "mdmem/index/catalog.py", "    def _check(self, connection: sqlite3.Connection) -> None:\n",
          "    def _check(self, connection: sqlite3.Connection) -> None:\n        return\n", "tests/index/test_damage.py tests/index/test_index.py"),
    Break("uncommitted path forgotten", 5, "mdmem/repo/commit.py",
          "    except (Locked, GitFailed, OSError) as error:\n        remember(git, wanted)\n",
          "    except (Locked, GitFailed, OSError) as error:\n", "tests/repo/test_commit.py"),
    Break("hook fails", 6, "mdmem/hooks/entry.py", "        _complain(event, error)\n    return 0\n", "        raise\n    return 0\n",
          "tests/hooks/test_hook_entry.py"),
    Break("hook recurses", 6, "mdmem/hooks/entry.py", "    if os.environ.get(MARKER):\n        return 0\n", "", "tests/hooks/test_hook_entry.py tests/hooks/test_hook_matrix.py"),
    Break("library prints into the answer", 6, "mdmem/hooks/entry.py", "    os.dup2(null, 1, inheritable=False)\n", "",
          "tests/hooks/test_hook_entry.py tests/hooks/test_hook_matrix.py"),
    Break("untrusted store written", 7, "mdmem/store.py", "        if need == \"write\" and not location.trusted:\n", "        if False:\n",
          "tests/ground tests/repo/test_cli.py tests/test_hazards.py"),
    Break("untrusted store injected", 7, "mdmem/hooks/place.py", "        if store.trusted:\n", "        if True:\n", "tests/hooks"),
    Break("repository sets anything", 7, "mdmem/config.py", "        if name in SHARED:\n", "        if True:\n", "tests/ground/test_config.py"),
    Break("repository's hooks run", 7, "mdmem/repo/git.py", "    \"core.hooksPath=/dev/null\",\n", "", "tests/repo/test_git.py tests/repo/test_environment.py tests/repo/test_sync_states.py"),
    Break("repository's monitor runs", 7, "mdmem/repo/git.py", "    \"core.fsmonitor=false\",\n", "", "tests/repo/test_git.py tests/repo/test_environment.py tests/test_hazards.py"),
    Break("symlink followed", 7, "mdmem/notes/paths.py", "        if stat.S_ISLNK(mode) or _is_junction(place):\n", "        if False:\n", "tests/notes/test_folder.py"),
    Break("path leaves the store", 7, "mdmem/notes/paths.py", "        or any(part in (\"\", \".\", \"..\") or is_git(part) for part in parts)\n", "",
          "tests/notes/test_folder.py"),
    Break("note not quoted", 7, "mdmem/memory/quoting.py", "    lines += [f\"  > {line.rstrip()}\" for", "    lines += [f\"{line.rstrip()}\" for",
          "tests/hooks/test_hook_context.py tests/test_hazards.py"),
    Break("redaction skipped in remember", 8, "mdmem/memory/remember.py", "        return clean(result.text)\n", "        return clean(text)\n",
          "tests/test_hazards.py tests/notes/test_redact.py tests/memory tests/cli"),
    Break("redaction skipped in the spool", 8, "mdmem/memory/spool.py", "        clean: str = redact(window).text\n", "        clean: str = window\n",
          "tests/memory/test_spool.py tests/hooks/test_hook_capture.py"),
    Break("redaction skipped in import", 8, "mdmem/memory/importing.py", "            data = gate.text.encode(\"utf-8\")\n", "            pass\n",
          "tests/memory/test_exchange.py tests/memory/test_importing.py"),
    Break("secrets pushed", 8, "mdmem/repo/sync.py", "            if held:\n                self.result.held += held\n", "            if False:\n                self.result.held += held\n",
          "tests/repo/test_gate_whole.py tests/repo/test_sync.py"),
    Break("failed scan lets through", 8, "mdmem/repo/gate.py", "        raise GateFailed(\"the scan for secrets failed\", why=f\"{type(error).__name__} in {path}\") from error\n",
          "        return []\n", "tests/repo/test_gate.py"),
    Break("private note into a shared store", 8, "mdmem/federation.py", "    if chosen.shared and is_private(scope):\n", "    if False:\n", "tests/test_federation.py"),
    Break("scope filter dropped", 8, "mdmem/recall/select.py", "    return patterns is None or any(", "    return True or any(", "tests/scopes"),
    Break("SQL reads the catalog", 8, "mdmem/recall/sql.py", "        connection.set_authorizer(_authorizer)\n", "", "tests/recall/test_sql.py"),
    Break("dashboard without a token", 8, "mdmem/web/server.py", "        return len(given) == 1 and hmac.", "        return True or hmac.", "tests/web/test_server.py"),
    Break("dashboard answers any host", 8, "mdmem/web/server.py", "        if len(hosts) != 1 or hosts[0].strip().lower() not in self.server.hosts:\n", "        if False:\n",
          "tests/web/test_server.py"),
    Break("one odd file stops the index", 2, "mdmem/index/fold_in.py", "    found = _storable(found)\n", "", "tests/faults/test_clock_jumps.py"),
    Break("a tree leads outside", 7, "mdmem/repo/own.py", "        if part in (\"\", \".\", \"..\"):\n", "        if False:\n",
          "tests/faults/test_fuzz.py"),
    Break("a terminal obeys a commit", 7, "mdmem/cli/output.py", "    return \"\".join(c for c in text if c in", "    return text or \"\".join(c for c in text if c in",
          "tests/faults/test_pulled.py"),
    Break("a damaged name of the device", 4, "mdmem/identity.py", "    except (OSError, ValueError):\n        return \"\"\n", "    except OSError:\n        return \"\"\n",
          "tests/ground/test_identity.py"),
    Break("any duration of a lease", 1, "mdmem/repo/lease.py", "    if not seconds >= 0:", "    if False:", "tests/repo/test_lease.py"),
    Break("lease taken from its holder", 1, "mdmem/repo/lease.py",
          "        if current is not None and current.holder != holder and current.until > clock.now():\n", "        if False:\n", "tests/repo/test_lease.py"),
)


def places(breaks: tuple[Break, ...] = BREAKS) -> list[str]:
    """Return a line for every break whose text does not stand exactly once in its file, or whose tests are not there."""
    wrong = []
    for one in breaks:
        found = (ROOT / one.file).read_text("utf-8").count(one.old)
        if found != 1:
            wrong.append(f"{one.name}: its text stands {found} times in {one.file}")
        wrong += [f"{one.name}: no {test}" for test in one.tests.split() if not (ROOT / test).exists()]
    return wrong


def copy(to: Path) -> None:
    """Copy what the tests need, as it is in the working tree."""
    for name in ("mdmem", "tests", "templates", "hooks", "docs", "tools", "benchmarks", "skills", ".claude-plugin"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy2(file, to / file.name)


def run(tree: Path, tests: str) -> bool:
    """Return whether the tests pass in a tree; running out of time is a failure."""
    env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", *tests.split()]
    process = subprocess.Popen(
        command, cwd=tree, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        process.communicate(timeout=LIMIT)
        # 1 is a failed test; an interrupted or an empty run (2 to 5) tells nothing and counts as passed.
        return process.returncode != 1
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return False


def noticed(one: Break, tree: Path) -> str:
    """Apply a break in the copy, run its tests file by file, put the code back; returns the test file that failed, or ''."""
    file = tree / one.file
    whole = file.read_text("utf-8")
    file.write_text(whole.replace(one.old, one.new), "utf-8")
    try:
        return next((test for test in one.tests.split() if not run(tree, test)), "")
    finally:
        file.write_text(whole, "utf-8")


def main() -> int:
    """Break what the command line names; returns 0 when every break was noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="only the breaks whose name holds one of these")
    parser.add_argument("--list", action="store_true", help="print the table and run nothing")
    asked = parser.parse_args()
    chosen = [one for one in BREAKS if not asked.words or any(word in one.name for word in asked.words)]
    if asked.list:
        for one in chosen:
            print(f"promise {one.promise:2}  {one.name:36} {one.file}")
        return 0
    if wrong := places(tuple(chosen)):
        print("\n".join(wrong))
        return 2
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="mdmem-break-") as place:
        tree = Path(place)
        copy(tree)
        green: dict[str, bool] = {}
        for one in chosen:
            for test in one.tests.split():
                green.setdefault(test, run(tree, test))
                if not green[test]:
                    print(f"{test} is red without any break", flush=True)
                    return 2
            start = time.monotonic()
            by = noticed(one, tree)
            unnoticed += not by
            answer = f"noticed by {by}" if by else "NOT NOTICED"
            print(f"promise {one.promise:2}  {one.name:36} {answer} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{len(chosen)} breaks, {unnoticed} not noticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    raise SystemExit(main())
