"""How fast the relation graph answers.

    python benchmarks/graph.py [--entities 10000] [--edges 50000] [--skip-figures | --only-figures] [--model] [--keep FOLDER]

Prints a depth-2 walk over many entities (warm), the update of one file's edges, and, on a store with the figures of one in
use (533 memories, 2,000 session notes, 207 entities, 1,364 edges), the time of each command from a cold start. The first
index with the model takes minutes; with --keep the store and its vectors are made once and used again.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mdmem.index.catalog import Catalog  # noqa: E402
from mdmem.index.edges import neighbours, resolve_again, store_edges, target_key  # noqa: E402
from mdmem.index.links import Edge  # noqa: E402

LOG_ROWS = 50_802  # lines that the session notes hold together
RELATIONS = ("initiative", "part_of", "blocked_by", "depends_on", "relates_to", "links_to")


def catalog_of(folder: Path, entities: int, edges: int, rng: random.Random) -> Catalog:
    """Return a catalog of entities with random edges between them, written straight into its tables."""
    catalog = Catalog.create(folder / "catalog.db", {})
    wanted: dict[int, list[Edge]] = {}
    for _ in range(edges):
        src, dst = rng.randint(1, entities), rng.randint(1, entities)
        wanted.setdefault(src, []).append(Edge(rng.choice(RELATIONS), f"project-{dst}", "field", None))
    with catalog.writing() as connection:
        connection.executemany(
            "INSERT INTO notes (rowid, path, id, kind, type, title) VALUES (?, ?, ?, 'entity', 'project', ?)",
            [(n, f"entities/project/{n}.md", f"project-{n}", f"Project {n}") for n in range(1, entities + 1)],
        )
        connection.executemany(
            "INSERT INTO names (key, note, how) VALUES (?, ?, 0)", [(f"project-{n}", n) for n in range(1, entities + 1)]
        )
        for src, found in wanted.items():
            store_edges(connection, src, found)
        resolve_again(connection, {target_key(edge.target) for found in wanted.values() for edge in found})
    return catalog


def walk(catalog: Catalog, entities: int, rng: random.Random) -> None:
    """Print the times of depth-2 walks and of one file's new edges."""
    neighbours(catalog, [1], 2)
    times, sizes = [], []
    for _ in range(200):
        start = rng.randint(1, entities)
        begin = time.perf_counter()
        sizes.append(len(neighbours(catalog, [start], 2)))
        times.append((time.perf_counter() - begin) * 1000)
    times.sort()
    median, p95 = times[100], times[190]
    print(f"depth-2 walk, warm: median {median:.2f} ms, p95 {p95:.2f} ms, most {times[-1]:.2f} ms; target 20 ms")
    print(f"  notes reached: {statistics.mean(sizes):.0f} each")
    times = []
    for _ in range(100):
        src = rng.randint(1, entities)
        edges = [Edge(rng.choice(RELATIONS), f"project-{rng.randint(1, entities)}", "field", None) for _ in range(5)]
        begin = time.perf_counter()
        with catalog.writing() as connection:
            store_edges(connection, src, edges)
            resolve_again(connection, {target_key(edge.target) for edge in edges})
        times.append((time.perf_counter() - begin) * 1000)
    times.sort()
    print(f"edges of one file: median {times[50]:.2f} ms, p95 {times[95]:.2f} ms, most {times[-1]:.2f} ms; target 5 ms")


def write_figures(root: Path, rng: random.Random) -> None:
    """Write 207 entities, 533 memories and 2,000 session notes with 1,364 edges, in ten commits over three months."""
    types = ("project", "initiative", "person", "decision", "system")
    entities = [(rng.choice(types), f"Entity {n}") for n in range(207)]
    files: list[tuple[Path, list[str], str]] = []
    for number, (kind, title) in enumerate(entities):
        status = rng.choice(("active", "active", "blocked", "waiting", "done", "open"))
        lines = [f"id: {kind}-entity-{number}", f"type: {kind}", f"title: {title}", f"status: {status}", "agent: claude-code"]
        files.append((root / "entities" / kind / f"entity-{number}.md", lines, f"Text of {title}.\n"))
    for number in range(533):
        lines = [f"id: mem-{number:012d}", "type: fact", f"title: Fact {number}", "tags: [ops]"]
        files.append(
            (root / "memories" / f"fact-{number}.md", lines, f"Fact number {number} about port {rng.randint(1, 9999)}.\n")
        )
    rows = [LOG_ROWS // 2000 + (number < LOG_ROWS % 2000) for number in range(2000)]
    for number in range(2000):
        month = 9 + number % 3
        lines = [
            f"id: ses-{number:05d}",
            "kind: session",
            f"title: Session {number}",
            f"session: run-{number}",
            "agent: claude-code",
            "device: laptop",
        ]
        body = "".join(f"- 2026-{month:02d}-10 10:{n:02d} **edit**: changed file {n}\n" for n in range(rows[number]))
        files.append((root / "sessions" / "2026" / f"{month:02d}" / f"ses-{number}.md", lines, body))
    targets = [f"{kind}-entity-{number}" for number, (kind, _) in enumerate(entities)]
    pairs: set[tuple[int, str, str]] = set()
    while len(pairs) < 1364:
        pairs.add((rng.randrange(207 + 533), rng.choice(RELATIONS[:5]), rng.choice(targets)))
    by_file: dict[int, dict[str, list[str]]] = {}
    for place, rel, target in sorted(pairs):
        by_file.setdefault(place, {}).setdefault(rel, []).append(target)
    for place, found in by_file.items():
        for rel, names in found.items():
            files[place][1].append(f"{rel}: [{', '.join(names)}]")
    rng.shuffle(files)
    step = len(files) // 10 + 1
    for part in range(10):
        when = f"2026-{9 + part // 4:02d}-{1 + 7 * (part % 4):02d}T10:00:00Z"
        for path, lines, body in files[part * step : (part + 1) * step]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("---\n" + "\n".join([*lines, f"created: {when}", f"updated: {when}"]) + f"\n---\n{body}", "utf-8")
        env = {**os.environ, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
        message = f"part {part}\n\nMdmem-Agent: claude-code\nMdmem-Device: laptop\nMdmem-Session: run-{part}"
        subprocess.run(["git", "-C", str(root), "commit", "-qm", message], check=True, env=env)


COMMANDS = (
    ("graph", "search", "text of an entity", "--all-time"),
    ("graph", "search", "which system is blocked", "--all-time"),
    ("graph", "related", "Entity 7", "--depth", "2"),
    ("graph", "path", "Entity 7", "Entity 8"),
    ("graph", "blockers"),
    ("graph", "diff", "2026-10-01", "2026-10-31"),
    ("graph", "diff", "2026-09-02"),
    ("graph", "timeline", "Entity 7"),
    ("graph", "reconcile"),
    ("graph", "health"),
    ("graph", "export", "--format", "json"),
    ("handoff", "--no-save", "--hours", "8"),
    ("handoff", "--no-save", "--since", "2026-11-01"),
    ("task", "list"),
    ("task", "next"),
    ("inbox",),
    ("sessions", "--last", "all"),
    ("session", "show", "run-3"),
    ("agents",),
    ("recall", "which port does the proxy use", "--keyword"),
    ("log", "fixed", "The proxy"),
    ("heartbeat",),
)


def figures(folder: Path, rng: random.Random, model: bool) -> None:
    """Print the time of every command, each in a new process, as the range of three runs."""
    root = folder / "store"
    env = {
        **os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "c"),
        "XDG_DATA_HOME": str(folder / "d"), "GIT_CONFIG_GLOBAL": str(folder / "gitconfig"), "MDMEM_SERVE": "off",
        "MDMEM_NOW": "2026-11-30T09:00:00Z", "MDMEM_DEVICE": "desk", "MDMEM_EMBEDDING_BACKEND": "bundled" if model else "none",
    }  # fmt: skip
    (folder / "gitconfig").write_text("[user]\nname = x\nemail = x@example.org\n[init]\ndefaultBranch = main\n[gc]\nauto = 0\n")
    os.environ.update({name: env[name] for name in ("HOME", "GIT_CONFIG_GLOBAL")})
    mdmem = [sys.executable, "-m", "mdmem", "-C", str(root)]
    if not root.exists():
        subprocess.run([*mdmem[:3], "init", str(root)], check=True, env=env, stdout=subprocess.DEVNULL)
        write_figures(root, rng)
    begin = time.perf_counter()
    subprocess.run([*mdmem, "index", "refresh"], check=False, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"index of {2000 + 533 + 207} notes: {time.perf_counter() - begin:.1f} s", flush=True)
    for args in COMMANDS:
        times = []
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(3):
            begin = time.perf_counter()
            done = subprocess.run([*mdmem, *args], env=env, capture_output=True, text=True)
            times.append(time.perf_counter() - begin)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 3
        failed = f"  FAILED: {done.stderr.strip()[-200:]}" if done.returncode else ""
        took = f"{min(times) * 1000:6.0f} … {max(times) * 1000:6.0f} ms, {cpu * 1000:5.0f} ms of processor"
        print(f"{' '.join(args):<46} {took}{failed}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the relation graph.")
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--edges", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--skip-figures", action="store_true", help="leave out the store with real figures")
    parser.add_argument("--only-figures", action="store_true", help="only the store with real figures")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="make that store in FOLDER, or use the one that is there")
    parser.add_argument("--model", action="store_true", help="with the bundled embedding model: the first index takes minutes")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    print(f"seed {given.seed}, {given.entities} entities, {given.edges} edges")
    with tempfile.TemporaryDirectory(prefix="mdmem-") as folder:
        if not given.only_figures:
            catalog = catalog_of(Path(folder), given.entities, given.edges, rng)
            walk(catalog, given.entities, rng)
            catalog.close()
        if not given.skip_figures:
            if given.keep:
                given.keep.mkdir(parents=True, exist_ok=True)
            figures((given.keep or Path(folder)).resolve(), rng, given.model)


if __name__ == "__main__":
    main()
