"""What people would use instead, side by side in one run: quality, time of a question, time to index, memory, install size.

    python benchmarks/peers/run.py FILE [FILE …] [--questions 100] [--only memsearch,grep] [--envs DIR]

FILE is a dataset as `mdmem bench recall` takes it (`decisions.json:zh-en` names the direction). Each peer is installed from the
package registry (mdmem: from this checkout) into an environment of its own (kept in DIR), is given the same notes as Markdown
files in a folder of its own and a home of its own, and is asked the same questions. Peers that search by meaning get mdmem's
own model over an address on this machine, since theirs are downloaded at run time; so all but the model is compared. A peer
that cannot be installed, or does not end in time, stands in the table with the reason. The table goes into
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(HERE.parent)]

import all as table  # the page, its markers and the kept results  # noqa: E402

BEGIN, END = "<!-- benchmarks/peers: begin -->", "<!-- benchmarks/peers: end -->"
EXTENSIONS = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)"
NEWER = "import sys; sys.exit(sys.version_info < (3, 12))"


@dataclass(frozen=True)
class Peer:
    """One program: the package, what its Python must be able to do, the command line of one question, and a remark."""

    name: str
    package: str = ""
    needs: str = ""
    command: tuple[str, ...] = ()
    remark: str = ""


PEERS = (
    Peer(
        "mdmem",
        str(ROOT),
        command=("-m", "mdmem", "-C", "{notes}", "recall", "{question}", "--json"),
        remark="words and meaning",
    ),
    Peer(
        "memsearch",
        "memsearch",
        command=(
            *("-m", "memsearch", "search", "{question}", "-p", "openai", "-m", "e5-small", "--base-url", "{address}"),
            *("--api-key", "none", "--milvus-uri", "{home}/milvus.db", "-k", "10", "-j"),
        ),
        remark="words and meaning, Milvus; the model of mdmem, its own must be downloaded",
    ),
    Peer(
        "mcp-memory-service",
        "mcp-memory-service",
        EXTENSIONS,
        remark="meaning, sqlite-vec; the model of mdmem, its own must be downloaded",
    ),
    Peer(
        "basic-memory",
        "basic-memory",
        NEWER,
        ("-m", "basic_memory.cli.main", "tool", "search-notes", "{question}", "--project", "peers", "--json"),
        "words, SQLite FTS5; its model must be downloaded, so no meaning",
    ),
    Peer("grep", remark="files ranked by how many words of the question stand in them"),
)


def pythons() -> list[str]:
    """Return the interpreters of this machine, this one first."""
    found = [sys.executable, *(shutil.which(f"python3.{minor}") or "" for minor in (13, 12, 11)), "/usr/bin/python3"]
    found += [str(path) for path in sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python3"))]
    return [name for name in dict.fromkeys(found) if name and os.path.exists(name)]


def fitting(needs: str) -> str:
    """Return an interpreter in which the statement `needs` runs without an error. Raises SystemExit."""
    for name in pythons():
        if subprocess.run([name, "-c", needs or "pass"], capture_output=True, check=False).returncode == 0:
            return name
    raise SystemExit("no Python here is new enough, or its SQLite loads no extensions")


def install(peer: Peer, envs: Path, seconds: float) -> tuple[str, float]:
    """Return (the environment's interpreter, megabytes of the environment). Raises SystemExit with the reason."""
    if not peer.package:
        return sys.executable, 0.0
    folder = envs / peer.name
    interpreter = folder / "bin" / "python"
    if not (folder / "done").exists():
        subprocess.run([fitting(peer.needs), "-m", "venv", str(folder)], check=True, capture_output=True)
        words = [str(interpreter), "-m", "pip", "install", "-q", peer.package]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"was not installed within {seconds:.0f} s") from None
        if done.returncode:
            raise SystemExit("cannot be installed: " + done.stderr.strip().splitlines()[-1][:200])
        (folder / "done").touch()
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file() and not f.is_symlink()) / 1e6
    return str(interpreter), size


def write_notes(data: Any, folder: Path) -> None:
    """Write each document as a Markdown file."""
    folder.mkdir(parents=True)
    for doc in data.docs:
        head = f"# {doc.title}\n\n" if doc.title else ""
        day = f"{doc.date:%Y-%m-%d}\n\n" if doc.date else ""
        (folder / f"{name_of(doc.id)}.md").write_text(head + day + doc.text + "\n", "utf-8")


def name_of(identity: str) -> str:
    """Return the file name of a document."""
    return "".join(c if c.isalnum() else "-" for c in identity)


def ask(peer: Peer, python: str, data: Any, questions: list[Any], base: Path, address: str, seconds: float) -> dict[str, Any]:
    """Return quality, times and memory of one peer. Raises SystemExit with the reason."""
    home, notes = base / "home", base / "notes"
    home.mkdir(parents=True)
    write_notes(data, notes)
    given, out = base / "questions.json", base / "out.json"
    given.write_text(json.dumps([question.text for question in questions]))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MDMEM", "XDG_"))}
    env.update(HOME=str(home), MDMEM_SERVE="off", BASIC_MEMORY_HOME=str(home / "own"), PYTHONPATH="")
    (home / "own").mkdir()
    words = [python, str(HERE / "driver.py"), peer.name, str(notes), str(given), str(out), address]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, env=env, check=False, cwd=base)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"did not end within {seconds:.0f} s") from None
    if done.returncode or not out.exists():
        raise SystemExit("failed: " + ((done.stderr or done.stdout).strip().splitlines() or ["without a word"])[-1][:200])
    found = json.loads(out.read_text())
    ranks = []
    for question, answer in zip(questions, found["answers"], strict=True):
        right = {name_of(one) for one in question.evidence}
        ranks.append(next((place for place, name in enumerate(answer, 1) if name in right), 0))
    result = {f"recall@{depth}": 100 * sum(0 < rank <= depth for rank in ranks) / len(ranks) for depth in (1, 5, 10)}
    result["mrr"] = 100 * sum(1 / rank for rank in ranks if rank) / len(ranks)
    took = sorted(found["ms"])
    result.update(p50_ms=statistics.median(took), p95_ms=took[int(0.95 * len(took))], index_s=found["index_s"])
    result["memory_mb"] = found["memory_mb"]
    if peer.command:
        values = {"notes": notes, "question": questions[0].text, "address": address, "home": home}
        command = [python, *(word.format(**values) for word in peer.command)]
        runs = []
        for _ in range(3):
            began = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, env=env, check=False, cwd=base, timeout=120)
            runs.append((time.perf_counter() - began) * 1000)
        result["process_ms"] = statistics.median(runs) if done.returncode == 0 else None
    return result


def render(found: dict[str, Any]) -> str:
    """Return the section of docs/benchmarks.md."""
    head = ["", "R@1", "R@5", "R@10", "MRR", "p50 ms", "p95 ms", "whole process ms", "index s", "memory MB", "install MB"]
    columns = (
        "recall@1",
        "recall@5",
        "recall@10",
        "mrr",
        "p50_ms",
        "p95_ms",
        "process_ms",
        "index_s",
        "memory_mb",
        "install_mb",
    )
    lines = [BEGIN, ""]
    for name, runs in found["files"].items():
        lines += [f"### {name}: {runs['notes']} notes, {runs['questions']} questions", ""]
        rows = []
        order = [peer.name for peer in PEERS]
        for peer, result in sorted(runs["peers"].items(), key=lambda entry: order.index(entry[0])):
            if "why" in result:
                rows.append([peer, result["why"], *[""] * (len(columns) - 1)])
            else:
                row = [
                    f"{result[c]:,.0f}" if c.endswith("_mb") else f"{result[c]:,.1f}" if result.get(c) else "" for c in columns
                ]
                rows.append([peer, *row])
        lines += table.table(head, rows)
        lines += _losses(runs["peers"])
    remarks = [
        f"{peer.name} {version}: {peer.remark}" for peer in PEERS if (version := found["versions"].get(peer.name)) is not None
    ]
    m = found["machine"]
    lines += [
        ". ".join(remarks) + f". {m['processor']}, {m['cores']} cores, {m['day']}; one run, one after the other.",
        "",
        END,
    ]
    return "\n".join(lines)


def _losses(peers: dict[str, Any]) -> list[str]:
    """Return one line on where another does better than mdmem."""
    ours = peers.get("mdmem", {})
    lost = []
    for title, names, sign in (
        ("finds more", ("recall@1", "recall@5", "recall@10", "mrr"), 1),
        ("is quicker", ("p50_ms",), -1),
    ):
        for peer, result in sorted(peers.items()):
            better = [name for name in names if name in ours and name in result and sign * (result[name] - ours[name]) > 0]
            if better and peer != "mdmem":
                lost.append(f"{peer} {title} ({', '.join(name.replace('_ms', '') for name in better)})")
    return [f"Where mdmem loses: {'; '.join(lost)}.", ""] if lost else []


def version_of(peer: Peer, python: str) -> str:
    """Return the installed version, empty for what comes with the system or this checkout."""
    if not peer.package:
        return ""
    code = f"import importlib.metadata as m; print(m.version({peer.name!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()


def main() -> int:
    """Install, ask, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--questions", type=int, default=100, help="at most so many, evenly taken")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[peer.name for peer in PEERS])
    parser.add_argument("--envs", type=Path, default=Path(tempfile.gettempdir()) / "mdmem-peers")
    parser.add_argument("--seconds", type=float, default=600.0, help="for installing, and for asking, each")
    given = parser.parse_args()
    from mdmem.recall.bench_data import load_dataset

    results = json.loads(table.RESULTS.read_text("utf-8")) if table.RESULTS.exists() else {}
    before = results.get("peers", {})
    # Files measured earlier keep their tables.
    found: dict[str, Any] = {
        "machine": table.machine(),
        "files": before.get("files", {}),
        "versions": before.get("versions", {}),
    }
    ready: dict[str, Any] = {}
    for peer in PEERS:
        if peer.name in given.only:
            try:
                ready[peer.name] = install(peer, given.envs, given.seconds)
                found["versions"][peer.name] = version_of(peer, ready[peer.name][0])
            except SystemExit as error:
                ready[peer.name] = str(error)
    with tempfile.TemporaryDirectory(prefix="mdmem-peers-") as folder:
        server = subprocess.Popen(
            [sys.executable, str(HERE / "serve_model.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert server.stdout is not None and server.stdin is not None
        address = server.stdout.readline().strip()
        try:
            for number, name in enumerate(given.files):
                path, _, direction = name.partition(":")
                data = load_dataset(Path(path), direction)
                step = max(1, len(data.questions) // given.questions)
                questions = data.questions[::step][: given.questions]
                peers: dict[str, Any] = {}
                title = Path(path).stem + (f" {direction}" if direction else "")
                found["files"][title] = {"notes": len(data.docs), "questions": len(questions), "peers": peers}
                for peer in PEERS:
                    if peer.name not in ready:
                        continue
                    print(f"… {peer.name}, {title}", file=sys.stderr, flush=True)
                    try:
                        if isinstance(ready[peer.name], str):
                            raise SystemExit(ready[peer.name])
                        python, size = ready[peer.name]
                        base = Path(folder) / f"{number}-{peer.name}"
                        peers[peer.name] = ask(peer, python, data, questions, base, address, given.seconds) | {
                            "install_mb": size
                        }
                    except SystemExit as error:
                        peers[peer.name] = {"why": str(error)}
        finally:
            server.stdin.close()
            server.wait(10)
    results = json.loads(table.RESULTS.read_text("utf-8")) if table.RESULTS.exists() else {}
    results["peers"] = found
    table.RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
    text = render(found)
    table.put(table.PAGE, BEGIN, END, text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
