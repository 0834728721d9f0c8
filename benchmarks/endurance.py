"""Hours of work of several agents on two clones, simulated: is memory flat, are descriptors and processes given back, does
local state stay inside its bounds, do both clones end up alike?

    python benchmarks/endurance.py                 2,000 notes, 200 commits, 200 hook calls, 4 agents: some minutes
    python benchmarks/endurance.py --long          50,000 notes, 5,000 commits, 1,000 hook calls, 10 agents: hours
    python benchmarks/endurance.py --minutes 60    the agents stop after so long, whatever is left to do
    python benchmarks/endurance.py --json

Every agent is one process that stays and answers calls of the MCP tools again and again, by the code of `mdmem mcp`; hooks
run as processes of their own, beside a warm process that answers them. Exit code 1 when a bound is broken; the bounds are in
`verdict`.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

WORDS = ("harbor", "lantern", "maple", "quartz", "signal", "ledger", "turbine", "walnut", "beacon", "copper", "meadow")
# Descriptors of one process: a command gives back what it opened when it ends.
MOST_OPEN = 32
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUse", "Stop", "SessionEnd")


@dataclass
class Size:
    """How much is done in all."""

    notes: int = 2000
    commits: int = 200
    hooks: int = 200
    agents: int = 4
    minutes: int = 600


def text_of(rng: random.Random, number: int) -> str:
    """Return a sentence that no other note has."""
    return f"The {rng.choice(WORDS)} {rng.choice(WORDS)} number {number} listens on port {rng.randint(1024, 65000)}."


def usage(process: int) -> dict[str, int]:
    """Return {rss, fds} of a process: bytes of memory of its own, open descriptors."""
    status = Path(f"/proc/{process}/status").read_text()
    anonymous = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
    return {"rss": anonymous << 10, "fds": len(os.listdir(f"/proc/{process}/fd"))}


# --- one agent -----------------------------------------------------------------------------------


def agent(number: int, top: Path, commits: int, hooks: int, seconds: float) -> int:
    """Work as one agent: save, change, find, sync, and let hooks run; prints a line of {step, rss, fds} every tenth step.

    Ends after `commits` steps, or with the step that passes `seconds`."""
    from mdmem.mcp.server import Memory

    rng = random.Random(number)
    session = f"session-{number}-0"
    codes: dict[str, int] = {}
    saved: list[str] = []
    spent: dict[str, list[float]] = {}
    host = Memory(str(top))

    def tool(name: str, **given: Any) -> str:
        began = time.monotonic()
        answer = host.call(f"memory_{name}", given)
        spent.setdefault(name, []).append(time.monotonic() - began)
        text = str(answer["content"][0]["text"])
        if not answer["isError"]:
            # A sync that found the remote away or moved is a state and no fault.
            state = text.partition(":")[0] if name == "sync" else "done"
            return noted(f"{name} {text[:100] if state == 'refused' else state}", text)
        # Somebody else holds a lock for longer than is waited for: said to the caller, who may come again.
        noted(f"{name} busy" if "another mdmem process" in text else f"{name} error")
        print(json.dumps({"odd": name, "given": given, "error": text}), flush=True)
        return ""

    def noted(what: str, text: str = "") -> str:
        codes[what] = codes.get(what, 0) + 1
        return text

    done = 0
    end = time.monotonic() + seconds
    for step in range(commits):
        if saved and step % 4 == 3:
            tool("update", note=rng.choice(saved), set={"importance": f"0.{rng.randint(1, 9)}"})
        else:
            answer = tool("add", text=text_of(rng, number * 1_000_000 + step))
            if answer:
                saved.append(answer.split("`")[2].split()[0])
        tool("search", query=f"{rng.choice(WORDS)} {rng.choice(WORDS)}", mode="keyword")
        if step % 10 == 9:
            tool("sync")
        while done * commits < hooks * (step + 1):
            event = EVENTS[done % len(EVENTS)]
            if event == "SessionStart":
                session = f"session-{number}-{done}"
            began = time.monotonic()
            try:
                hook(event, top, session, done)
            except subprocess.SubprocessError as error:
                noted(f"hook {event} error")
                print(json.dumps({"odd": event, "error": str(error)}), flush=True)
            spent.setdefault("hook", []).append(time.monotonic() - began)
            done += 1
        late = time.monotonic() > end
        if step % 10 == 9 or step == commits - 1 or late:
            print(json.dumps({"step": step, "at": time.monotonic(), **usage(os.getpid())}), flush=True)
        if late:
            break
    print(json.dumps({"codes": codes, "saved": saved, "hooks": done, "steps": step + 1, "took": spent}), flush=True)
    return 0


def hook(event: str, top: Path, session: str, number: int) -> None:
    """Run one hook as the host does; raises when it does not end with 0."""
    payload = {
        "session_id": session, "cwd": str(top), "hook_event_name": event, "source": "startup", "reason": "other",
        "prompt": f"where does the {WORDS[number % len(WORDS)]} listen, and on which port?",
        "tool_name": "Bash", "tool_input": {"command": "make", "description": f"step {number}"}, "tool_response": "ok",
        "last_assistant_message": f"Done with part {number}.",
    }  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "mdmem", "hook", event], input=json.dumps(payload).encode(), cwd=top, check=True, timeout=60,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


# --- the whole -----------------------------------------------------------------------------------


def git(top: Path, *args: str) -> str:
    """Run git as a person would; returns its output."""
    return subprocess.run(["git", "-C", str(top), *args], check=True, capture_output=True, text=True).stdout


def prepare(folder: Path, notes: int) -> tuple[Path, Path]:
    """Make a remote and two clones that hold `notes` notes; returns the clones."""
    from mdmem.cli.main import run

    for name, value in {
        "HOME": folder, "XDG_CONFIG_HOME": folder / "c", "XDG_DATA_HOME": folder / "d", "XDG_CACHE_HOME": folder / "k",
        "XDG_RUNTIME_DIR": folder / "r", "GIT_CONFIG_GLOBAL": folder / "gitconfig",
    }.items():  # fmt: skip
        os.environ[name] = str(value)
    os.environ["MDMEM_EMBEDDING_BACKEND"] = "off"
    os.environ["MDMEM_WORKER_SETTLE"] = "0.05"
    (folder / "r").mkdir(mode=0o700)
    (folder / "gitconfig").write_text("[user]\n\tname = E\n\temail = e@example.org\n[init]\n\tdefaultBranch = main\n")
    remote, one, two = folder / "remote.git", folder / "one", folder / "two"
    git(folder, "init", "-q", "--bare", str(remote))
    # It stands for a server, which keeps its own house and on its own machine.
    git(remote, "config", "receive.autoGc", "false")
    assert run(["clone", str(remote), str(one)]) == 0
    (one / "memories").mkdir(exist_ok=True)
    rng = random.Random(0)
    for number in range(notes):
        head = f"---\nid: mem-e{number:09d}\ntype: fact\ntitle: Note {number}\n---\n"
        (one / "memories" / f"note-{number}-mem-e{number:09d}.md").write_text(head + text_of(rng, number) + "\n")
    assert run(["-C", str(one), "sync"]) == 0
    assert run(["clone", str(remote), str(two)]) == 0
    for top in (one, two):
        # The index is built before the agents begin: what is measured is work, not the first look at a large store.
        assert run(["-C", str(top), "recall", "harbor", "--keyword", "--json"]) == 0
    return one, two


def told_to(file: Path, words: Sequence[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a process whose output goes to a file: a pipe that nobody reads before the end holds up who fills it."""
    with open(file, "wb") as stream:
        return subprocess.Popen(words, env=env, stdout=stream)


def state_sizes(top: Path) -> dict[str, int]:
    """Return the bytes of local state below a clone: `index` (what is rebuilt) and `other`."""
    sizes = {"index": 0, "other": 0, "files": 0}
    base = top / ".git" / "mdmem"
    for path in base.rglob("*"):
        if path.is_file():
            part = path.relative_to(base).parts[0]
            kind = "index" if part in ("text", "vectors", "last-look") or part.startswith("catalog") else "other"
            sizes[kind] += path.stat().st_size
            sizes["files"] += 1
    return sizes


def objects(top: Path) -> int:
    """Return the bytes that a repository's objects take on the disk, loose and packed."""
    counted = dict(line.split(": ") for line in git(top, "count-objects", "-v").splitlines())
    return int(counted["size"]) + int(counted["size-pack"]) << 10


def left_over(folder: Path) -> list[str]:
    """Return the command lines of processes that were started for a path below the folder and still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if str(folder) in line:
                found.append(line.strip())
    return found


def measure(size: Size) -> dict[str, Any]:
    """Do it all in a temporary folder; returns what was seen."""
    with tempfile.TemporaryDirectory(prefix="mdmem-endurance-") as name:
        folder = Path(name)
        with redirect_stdout(io.StringIO()):
            clones = prepare(folder, size.notes)
        began = time.monotonic()
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        null = subprocess.DEVNULL
        serve = [sys.executable, "-m", "mdmem", "serve"]
        warm = subprocess.Popen(serve, env=env, cwd=folder, stdin=null, stdout=null, stderr=null)
        started = {top.name: {**state_sizes(top), "objects": objects(top)} for top in clones}
        before = int(git(clones[0], "rev-list", "--count", "HEAD"))
        workers = []
        for number in range(size.agents):
            top = clones[number % 2]
            words = [sys.executable, __file__, "--agent", str(number), str(top)]
            words += [str(size.commits // size.agents), str(size.hooks // size.agents), str(size.minutes * 60)]
            mine = {**env, "MDMEM_AGENT": f"agent-{number}", "MDMEM_DEVICE": top.name}
            workers.append(told_to(folder / f"agent-{number}.jsonl", words, mine))
        warm_seen = []
        while any(worker.poll() is None for worker in workers):
            if warm.poll() is None:
                warm_seen.append(usage(warm.pid))
            time.sleep(1)
        seconds = time.monotonic() - began
        lines = [
            [json.loads(line) for line in (folder / f"agent-{number}.jsonl").read_text().splitlines()]
            for number in range(size.agents)
        ]
        warm.terminate()
        warm.wait(30)
        return {
            "size": vars(size), "seconds": round(seconds), "agents": lines, "warm": warm_seen,
            "codes": [worker.returncode for worker in workers], "state_before": started, "commits_before": before,
            **settle(folder, clones, lines),
        }  # fmt: skip


def settle(folder: Path, clones: tuple[Path, Path], lines: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Let what runs in the background end, sync both clones, and look at what is left."""
    from mdmem.cli.main import run

    end = time.monotonic() + 60
    while left_over(folder) and time.monotonic() < end:
        time.sleep(0.2)
    orphans = left_over(folder)
    codes = []
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for top in (*clones, *clones, clones[0]):
            codes.append(run(["-C", str(top), "sync"]))
    end = time.monotonic() + 1800  # packing goes on by itself, and git fsck would miss what it puts elsewhere
    while left_over(folder) and time.monotonic() < end:
        time.sleep(0.2)
    fsck = checked((*clones, folder / "remote.git"))
    trees = {git(top, "rev-parse", "HEAD^{tree}").strip() for top in clones}
    dirty = "".join(git(top, "status", "--porcelain") for top in clones)
    saved = [path for rows in lines for path in rows[-1].get("saved", [])]
    missing = [path for path in saved for top in clones if not (top / path).is_file()]
    data = folder / "d" / "mdmem"
    return {
        "orphans": orphans, "sync": codes, "same": len(trees) == 1, "dirty": dirty, "saved": len(saved), "missing": missing,
        "commits": int(git(clones[0], "rev-list", "--count", "HEAD")), "fsck": fsck,
        "state": {top.name: {**state_sizes(top), "objects": objects(top)} for top in clones},
        "data": sum(path.stat().st_size for path in data.rglob("*") if path.is_file()),
        "loose": int(git(clones[0], "count-objects").split()[0]),
    }  # fmt: skip


def checked(tops: Sequence[Path]) -> dict[str, list[str]]:
    """Return what `git fsck --strict` says of each repository, side by side; nothing where all is well.

    An object that no branch names any more is no damage: a merge that was made again leaves one."""
    words = ("fsck", "--strict", "--no-progress", "--no-dangling")
    pipe: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    running = {top.name: subprocess.Popen(["git", "-C", str(top), *words], **pipe) for top in tops}
    said = {name: process.communicate()[0].splitlines() for name, process in running.items()}
    codes = {name: [f"ended with {process.returncode}"] for name, process in running.items() if process.returncode}
    return {name: [*lines, *codes.get(name, ())] for name, lines in said.items()}


def verdict(found: dict[str, Any]) -> list[str]:
    """Return the bounds that were broken, one line each."""
    wrong = []
    for number, rows in enumerate(found["agents"]):
        seen = [row for row in rows if "rss" in row]
        if len(seen) < 2:
            wrong.append(f"agent {number} left no figures")
            continue
        # After the first third caches are full; from there on memory may not follow the number of steps.
        first, last = seen[len(seen) // 3], seen[-1]
        if last["rss"] > first["rss"] * 1.25 + (8 << 20):
            wrong.append(f"agent {number}: memory grew from {first['rss'] >> 20} to {last['rss'] >> 20} MB")
        if max(row["fds"] for row in seen) > MOST_OPEN:
            wrong.append(f"agent {number}: {max(row['fds'] for row in seen)} descriptors")
        told = [row["error"] for row in rows if "odd" in row and "another mdmem process" not in row["error"]]
        if told:
            wrong.append(f"agent {number}: {len(told)} faults, the first: {told[0]}")
    warm = found["warm"]
    if len(warm) > 3 and warm[-1]["rss"] > warm[len(warm) // 3]["rss"] * 1.25 + (16 << 20):
        wrong.append(f"the warm process grew from {warm[len(warm) // 3]['rss'] >> 20} to {warm[-1]['rss'] >> 20} MB")
    if warm and max(row["fds"] for row in warm) > 4 * MOST_OPEN:
        wrong.append(f"the warm process: {max(row['fds'] for row in warm)} descriptors")
    notes = found["size"]["notes"] + found["saved"]
    for name, sizes in found["state"].items():
        if sizes["index"] > (4 << 20) + 8192 * notes:
            wrong.append(f"{name}: the index holds {sizes['index'] >> 10} KB for {notes} notes")
        # Sessions that are not noted yet, what they saw, journals: at most 512 KB for each agent that is at work.
        if sizes["other"] > (512 << 10) * (1 + found["size"]["agents"]):
            wrong.append(f"{name}: {sizes['other'] >> 10} KB of local state beside the index")
    if found["data"] > 4 << 20:
        wrong.append(f"the data folder holds {found['data'] >> 10} KB")
    wrong += [f"git fsck of {name}: {lines[:3]}" for name, lines in found["fsck"].items() if lines]
    wrong += [f"still running: {line}" for line in found["orphans"]]
    wrong += [f"lost: {path}" for path in found["missing"]]
    if not found["same"] or found["dirty"]:
        wrong.append(f"the clones differ or are dirty: {found['dirty']}")
    if any(found["codes"]):
        wrong.append(f"agents ended with {found['codes']}")
    return wrong


def report(found: dict[str, Any]) -> None:
    """Print what was done, how fast, and memory, descriptors and state on the way."""
    size, minutes = found["size"], found["seconds"] / 60
    ends = [rows[-1] for rows in found["agents"]]
    made = found["commits"] - found["commits_before"]
    steps = sum(row["steps"] for row in ends)
    hooks = sum(row["hooks"] for row in ends)
    print(f"{size['notes']} notes, {size['agents']} agents on two clones, {minutes:.1f} minutes")
    print(f"{made} commits ({made / minutes:.0f} a minute), {steps} steps, {hooks} hook calls, {found['saved']} notes saved")
    for name in sorted({name for row in ends for name in row["took"]}):
        times = sorted(seconds for row in ends for seconds in row["took"].get(name, ()))
        late = times[len(times) * 95 // 100]
        print(f"{name}: {len(times)} calls, median {statistics.median(times):.2f} s, 95 % {late:.2f} s, most {times[-1]:.1f} s")
    answers: dict[str, int] = {}
    for row in ends:
        for what, count in row["codes"].items():
            answers[what] = answers.get(what, 0) + count
    print(f"answers: {answers}")
    for number, rows in enumerate(found["agents"]):
        print(f"agent {number}: {quarters([row for row in rows if 'rss' in row])}")
    if found["warm"]:
        print(f"warm process: {quarters(found['warm'])}")
    for name, after in found["state"].items():
        before = found["state_before"][name]
        grown = ", ".join(f"{part} {before[part] >> 10} to {after[part] >> 10} KB" for part in ("index", "other", "objects"))
        print(f"{name}: {grown}, {before['files']} to {after['files']} files of local state")
    print(f"data folder {found['data'] >> 10} KB, loose objects {found['loose']}, orphans {len(found['orphans'])}")


def quarters(seen: list[dict[str, int]]) -> str:
    """Return memory and descriptors of a process at the start, each quarter and the end, and the most descriptors."""
    points = [seen[(len(seen) - 1) * quarter // 4] for quarter in range(5)]
    text = ", ".join(f"{row['rss'] >> 20} MB/{row['fds']} fds" for row in points)
    return f"{text}; at most {max(row['fds'] for row in seen)} fds"


def main() -> int:
    """Run what the command line asks for; returns 1 when a bound was broken."""
    if sys.argv[1:2] == ["--agent"]:
        number, top, commits, hooks, seconds = sys.argv[2:]
        return agent(int(number), Path(top), int(commits), int(hooks), float(seconds))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--long", action="store_true", help="50,000 notes, 5,000 commits, 1,000 hook calls, ten agents")
    for name, default in vars(Size()).items():
        parser.add_argument(f"--{name}", type=int, default=None, help=f"{default:,} where not given")
    parser.add_argument("--json", action="store_true", help="print everything that was seen")
    parser.add_argument("--save", type=Path, help="write everything that was seen into this file too")
    asked = parser.parse_args()
    size = Size(50_000, 5_000, 1_000, 10) if asked.long else Size()
    for name in vars(size):
        if getattr(asked, name) is not None:
            setattr(size, name, getattr(asked, name))
    wrong = verdict(found := measure(size))
    if asked.save:
        asked.save.write_text(json.dumps({**found, "wrong": wrong}) + "\n", "utf-8")
    if asked.json:
        print(json.dumps({**found, "wrong": wrong}, indent=1))
    else:
        report(found)
        print("\n".join(wrong) if wrong else "all bounds held; fsck clean, both clones alike, nothing lost, no process left")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
