"""Read thousands of markdown files that other people wrote, out of packages that the registries serve, and see that nothing of
them changes unless it is asked for.

    python tools/real_corpus.py FOLDER            fetch the packages into FOLDER (kept for the next time) and check them
    python tools/real_corpus.py FOLDER --no-fetch check what is there already: any folder of markdown files
    python tools/real_corpus.py FOLDER --json

For each file with a frontmatter block: it parses or is named as bad, never raises; written back unchanged it has the same
bytes; one key edited changes the lines of that key alone; read again, every other key has its old value and the edited one its
new one; a key added and removed leaves the bytes as they were. Bad blocks are counted by reason and must be refused by an edit.
Needs the ordinary clients `pip` and `npm`; they reach the registries that they are set up for.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# At most ten packages, chosen for how many markdown files with frontmatter they hold: documentation, and agents' own files.
NPM = ("next", "claude-flow-novice", "claude-flow", "bmad-method", "specweave", "agentic-flow", "ecc-universal")
PYPI = ("skillforge-agent", "skillpilot")
WANTED = 3000
LARGEST = 4 << 20


@dataclass
class Counts:
    """What was seen; `wrong` holds a line for each file with which something is not as it should be."""

    files: int = 0
    good: int = 0
    bad: int = 0
    edits: int = 0
    reasons: collections.Counter[str] = field(default_factory=collections.Counter)
    wrong: list[str] = field(default_factory=list)


def fetch(folder: Path) -> None:
    """Download and unpack the packages that are not there yet. Raises CalledProcessError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NPM:
        place = folder / ("npm-" + name.replace("/", "-").replace("@", ""))
        if not place.exists():
            done = subprocess.run(["npm", "pack", "--silent", name], cwd=folder, check=True, capture_output=True, text=True)
            unpack(folder / done.stdout.strip().splitlines()[-1], place)
    for name in PYPI:
        place = folder / f"pypi-{name}"
        if not place.exists():
            words = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", str(place.with_suffix(".got")), name]
            subprocess.run([sys.executable, "-m", "pip", *words], check=True)
            for file in place.with_suffix(".got").iterdir():
                unpack(file, place)


def unpack(archive: Path, place: Path) -> None:
    """Take the markdown files out of an archive; names that lead elsewhere are left out."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as stored:
            for entry in stored.infolist():
                if not entry.is_dir() and entry.file_size <= LARGEST:
                    keep(place, entry.filename, lambda entry=entry: stored.read(entry))  # type: ignore[misc]
        return
    with tarfile.open(archive) as packed:
        for member in packed:
            stream = packed.extractfile(member) if member.isfile() and member.size <= LARGEST else None
            if stream is not None:
                keep(place, member.name, stream.read)


def keep(place: Path, name: str, read: object) -> None:
    """Write one file of an archive below `place` when it is markdown."""
    parts = Path(name).parts
    if name.lower().endswith((".md", ".mdx")) and ".." not in parts and not Path(name).is_absolute():
        target = place.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(read())  # type: ignore[operator]


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of each different markdown file that begins with a frontmatter block."""
    seen: set[int] = set()
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in (".md", ".mdx") or not path.is_file() or path.stat().st_size > LARGEST:
            continue
        data = path.read_bytes()
        start = data[3:] if data.startswith(b"\xef\xbb\xbf") else data
        if start.startswith((b"---\n", b"---\r\n")) and hash(data) not in seen:
            seen.add(hash(data))
            yield path.relative_to(folder).as_posix(), data


def changed(old: bytes, new: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the lines that differ in the middle of two texts: what the old one had there and what the new one has."""
    one, two = old.splitlines(keepends=True), new.splitlines(keepends=True)
    start = 0
    while start < min(len(one), len(two)) and one[start] == two[start]:
        start += 1
    end = 0
    while end < min(len(one), len(two)) - start and one[-1 - end] == two[-1 - end]:
        end += 1
    return one[start : len(one) - end], two[start : len(two) - end]


def check(name: str, data: bytes, counts: Counts) -> None:
    """Check one file; adds to the counts."""
    from mdmem.errors import BadNote
    from mdmem.notes.frontmatter import edit, parse
    from mdmem.notes.note import load

    counts.files += 1
    parsed = parse(data)
    load(name, data)
    if parsed.problem is not None:
        counts.bad += 1
        counts.reasons[f"{parsed.problem.code}: {parsed.problem.message}"[:70]] += 1
        try:
            edit(data, {"probe": "x"})
        except BadNote:
            return
        counts.wrong.append(f"{name}: a bad block was written to")
        return
    if not parsed.has_block:
        counts.reasons["no block: a rule and an empty line after it"] += 1
        return
    counts.good += 1
    before = dict(parsed.fields)
    if edit(data, {}) != data:
        counts.wrong.append(f"{name}: written without a change, other bytes")
    for key, value in one_value(before):
        if edit(data, {key: before[key]}) != data:
            counts.wrong.append(f"{name}: {key} set to what it is, other bytes")
        new = edit(data, {key: value})
        after = dict(parse(new).fields)
        if after != {**before, key: value}:
            counts.wrong.append(f"{name}: after {key} was set, the fields are not what they should be")
        gone, come = changed(data, new)
        if len(come) > 1 or any(not line.startswith(key.encode()) for line in come):
            counts.wrong.append(f"{name}: {key} set, and {len(gone)} lines became {len(come)}")
        if len(data.splitlines()) - len(new.splitlines()) != len(gone) - len(come):
            counts.wrong.append(f"{name}: lines were lost")
        counts.edits += 1
    added = edit(data, {"mdmem-probe": "#1: yes"})
    if dict(parse(added).fields) != {**before, "mdmem-probe": "#1: yes"}:
        counts.wrong.append(f"{name}: a new key is not read back")
    if edit(added, {"mdmem-probe": None}) != data:
        counts.wrong.append(f"{name}: a key added and removed, other bytes")
    counts.edits += 1


def one_value(fields: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Yield up to three top-level keys with a text on one line, and what to write there."""
    chosen = [key for key, value in fields.items() if isinstance(value, str) and "\n" not in value and key.isidentifier()]
    for key in chosen[:3]:
        yield key, "another: value #2"


def main() -> int:
    """Fetch and check; returns 1 when a file is not as it should be, or too few were found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--no-fetch", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--wanted", type=int, default=WANTED, help="how many files there must be")
    asked = parser.parse_args()
    if not asked.no_fetch:
        fetch(asked.folder)
    counts = Counts()
    for name, data in files(asked.folder):
        try:
            check(name, data, counts)
        except Exception as error:
            counts.wrong.append(f"{name}: {type(error).__name__}: {error}")
    if asked.json:
        print(json.dumps({**vars(counts), "reasons": dict(counts.reasons)}, indent=1))
    else:
        print(f"{counts.files} files with a block: {counts.good} good, {counts.bad} bad and named; {counts.edits} edits")
        for reason, count in counts.reasons.most_common():
            print(f"  {count:5}  {reason}")
        print("\n".join(counts.wrong) or "nothing wrong")
    if counts.files < asked.wanted:
        print(f"only {counts.files} files, {asked.wanted} were wanted", file=sys.stderr)
    return 1 if counts.wrong or counts.files < asked.wanted else 0


if __name__ == "__main__":
    raise SystemExit(main())
