"""mdmem scan-secrets: name secrets in notes, files and commits; never their value."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.errors import MdmemError, UsageError

if TYPE_CHECKING:
    from mdmem.repo.gate import Wanted
    from mdmem.repo.scan import Hit
    from mdmem.store import Store


@click.command("scan-secrets")
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--history", is_flag=True, help="Also every commit of the repository.")
@click.option("--unpushed", is_flag=True, help="Only commits that no remote has.")
@click.option("--staged", is_flag=True, help="Only what the next commit holds.")
@click.option("--pre-push", is_flag=True, hidden=True)
@json_option
@click.pass_context
@examples("mdmem scan-secrets", "mdmem scan-secrets docs/ mem-7q2m", "mdmem scan-secrets --history --json")
def command(
    ctx: click.Context, paths: tuple[str, ...], history: bool, unpushed: bool, staged: bool, pre_push: bool, as_json: bool
) -> None:
    """Name the secrets in the store's notes, or in the given files: kind and line, never the value.

    Exit code 1 when there is one, and when anything could not be looked at. A line that holds mdmem:allow-secret is allowed,
    and so is the line below one that holds nothing else.
    """
    chosen = [
        name for name, on in (("history", history), ("unpushed", unpushed), ("staged", staged), ("pre-push", pre_push)) if on
    ]
    if len(chosen) + bool(paths) > 1:
        raise UsageError("choose one of PATHS, --history, --unpushed and --staged")
    unread: list[str] = []
    hits = _files(ctx, paths, unread) if paths else _store(ctx, chosen[0] if chosen else "", unread)

    def human() -> None:
        for hit in hits:
            say(clean(str(hit)))
        if hits:
            note(f"{len(hits)} secrets found; take them out, or put mdmem:allow-secret on the line")

    findings = [{"path": hit.path, "line": hit.line, "kind": hit.kind, "commit": hit.rev} for hit in hits]
    emit({"findings": findings, "unread": unread}, as_json, human)
    for line in unread:
        note(f"could not look at {clean(line)}")
    if hits or unread:
        ctx.exit(1)


def _store(ctx: click.Context, what: str, unread: list[str]) -> list[Hit]:
    from mdmem.recall.select import nameable
    from mdmem.repo.scan import scan_history, scan_staged, scan_unpushed

    store = open_store(ctx)
    wanted = _ours(store)
    if what == "pre-push":
        # Guards what leaves this machine, whoever pushes: nothing is left out of it.
        return _pushed(store, wanted)
    if what == "staged":
        return scan_staged(store.git, wanted)
    may_name = nameable(store)
    wanted = _and(wanted, lambda path: may_name(store.from_git(path) or path))
    if what == "unpushed":
        return scan_unpushed(store.git, wanted=wanted)
    found = _notes(store, unread, may_name)
    if what == "history":
        known = {(hit.path, hit.line, hit.kind) for hit in found}
        found += [hit for hit in scan_history(store.git, wanted) if (hit.path, hit.line, hit.kind) not in known]
    return found


def _ours(store: Store) -> Wanted | None:
    """Return which paths of git are looked at: all of a dedicated store, our own folders inside another repository."""
    if store.mode == "dedicated":
        return None

    def wanted(path: str) -> bool:
        inner = store.from_git(path)
        return inner is not None and inner.split("/")[0] in store.owned

    return wanted


def _and(ours: Wanted | None, also: Wanted) -> Wanted:
    return also if ours is None else lambda path: ours(path) and also(path)


def _notes(store: Store, unread: list[str], may_name: Wanted) -> list[Hit]:
    from mdmem.repo.scan import scan_bytes

    found = []
    for stat in sorted(store.folder.scan(), key=lambda stat: stat.path):
        if not may_name(stat.path):
            continue
        try:
            found += scan_bytes(store.to_git(stat.path), store.folder.read_bytes(stat.path))
        except (MdmemError, OSError) as error:
            unread.append(f"{stat.path}: {error}")
    return found


def _pushed(store: Store, wanted: Wanted | None) -> list[Hit]:
    """The commits that git is about to push: it names them on stdin, one ref a line."""
    from mdmem.repo.scan import scan_unpushed

    found: list[Hit] = []
    for line in sys.stdin.read().splitlines():
        words = line.split()
        if len(words) != 4:
            raise UsageError("git names each ref with four words", why=f"got {len(words)}")
        _, local, _, remote = words
        if set(local) == {"0"}:
            continue
        known = [remote] if set(remote) != {"0"} and store.git.rev(remote) else []
        found += [hit for hit in scan_unpushed(store.git, local, known, wanted) if hit not in found]
    return found


def _files(ctx: click.Context, paths: tuple[str, ...], unread: list[str]) -> list[Hit]:
    from mdmem.repo.scan import scan_bytes

    found = []
    for name in paths:
        for path in _below(_file(ctx, name), unread):
            try:
                found += scan_bytes(path.as_posix(), path.read_bytes())
            except OSError as error:
                unread.append(f"{path}: {error.strerror}")
    return found


def _file(ctx: click.Context, name: str) -> Path:
    """Return the file or folder of a name; of a note, by its id or title, when there is no such file."""
    from mdmem.cli.cmd_check import relative_paths

    if os.path.lexists(name):
        return Path(name)
    try:
        store = open_store(ctx)
        (path,) = relative_paths(store, (name,))
    except MdmemError:
        return Path(name)
    return Path(os.path.relpath(store.root / path))


def _below(path: Path, unread: list[str]) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = []
    for folder, names, files in os.walk(path, onerror=lambda error: unread.append(f"{error.filename}: {error.strerror}")):
        names[:] = sorted(name for name in names if name != ".git")
        found += [Path(folder, name) for name in sorted(files) if Path(folder, name).is_file()]
    return found
