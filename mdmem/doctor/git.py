"""Checks of git: version, state, driver, attributes, locks, remote, what it ignores or no longer tracks."""

from __future__ import annotations

import time
from collections.abc import Iterator

from mdmem.doctor.finding import ERROR, NOTE, OK, WARNING, Finding, Look
from mdmem.errors import MdmemError, typed

OLDEST = (2, 38)
SHOWN = 5


def version(look: Look) -> Iterator[Finding]:
    """git is there and not too old."""
    from mdmem.repo.version import git_version

    number = git_version()
    shown = ".".join(map(str, number))
    if number[:2] < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        yield Finding("git-version", ERROR, f"git {shown} is too old, {wanted} is needed", "update git")
    else:
        yield Finding("git-version", OK, f"git version {shown}")


def state(look: Look) -> Iterator[Finding]:
    """No rebase, merge or detached head is in the way."""
    found = look.store.git.state()
    if found.safe:
        yield Finding("git-state", OK, f"git state: {found.name}")
    else:
        yield Finding("git-state", ERROR, f"git state: {found.name}; nothing is committed or synced", found.hint)


def locks(look: Look) -> Iterator[Finding]:
    """No lock of a git that died is left. It is named, never removed: only you know whether that git is gone."""
    for name in ("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock"):
        path = look.store.git.path(name)
        try:
            age = time.time() - path.stat().st_mtime
        except OSError:
            continue
        if age > 60:
            text = f"{path} is {int(age // 60)} minutes old: a git that died may have left it"
            yield Finding("git-lock", WARNING, text, "when no git runs here: " + typed("rm", path))


def driver(look: Look) -> Iterator[Finding]:
    """The merge driver is configured, covers the notes, and gives the right merge on a known triple."""
    from mdmem.repo.driver_install import driver_status, install_driver
    from mdmem.setup import attribute_lines

    store = look.store
    found = driver_status(store.git, store.to_git("memories/x.md"), store.trusted)

    def mend() -> str:
        install_driver(store.git, attribute_lines(store.mode))
        return "the merge driver was configured again"

    if found.ok:
        yield Finding("merge-driver", OK, "the merge driver is configured and merges a known triple rightly")
    elif not found.configured:
        text = "the merge driver is not configured in this clone: git merges notes as plain text"
        yield Finding("merge-driver", WARNING, text, "mdmem doctor --fix", mend if store.trusted else None)
    elif not found.covered:
        text = "no attribute gives notes to the merge driver"
        yield Finding("merge-driver", WARNING, text, "mdmem doctor --fix", mend if store.trusted else None)
    elif not found.current and not store.trusted:
        text = "the merge driver that this clone's configuration names is not ours, and was not tried"
        yield Finding("merge-driver", WARNING, text, "mdmem trust, then mdmem doctor --fix")
    else:
        text = "the merge driver points to another installation" if found.works else "the merge driver does not work"
        yield Finding("merge-driver", WARNING if found.works else ERROR, text, "mdmem doctor --fix", mend)


def attributes(look: Look) -> Iterator[Finding]:
    """The store's own .gitattributes holds the line that every clone needs."""
    from mdmem.setup import ATTRIBUTES, attribute_lines

    try:
        lines = (look.store.root / ATTRIBUTES).read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    missing = [line for line in attribute_lines(look.store.mode) if line not in lines]
    if missing:
        yield Finding("attributes", WARNING, f"{ATTRIBUTES} lacks: {missing[0]}", typed("mdmem", "init", look.store.root))


def ignored(look: Look) -> Iterator[Finding]:
    """No ignore rule hides a note from git."""
    from mdmem.recall.select import nameable
    from mdmem.repo.commit import ignored_paths

    store = look.store
    may_name = nameable(store)
    paths = [store.to_git(found.path) for found in store.folder.scan() if may_name(found.path)]
    hidden = sorted(ignored_paths(store.git, paths))
    if hidden:
        names = ", ".join(hidden[:SHOWN]) + (" …" if len(hidden) > SHOWN else "")
        text = f"{len(hidden)} notes are ignored by git and reach no other machine: {names}"
        yield Finding("ignored-notes", ERROR, text, typed("git", "-C", store.root, "check-ignore", "-v", hidden[0]))


def untracked(look: Look) -> Iterator[Finding]:
    """No note that git once tracked was taken out of it while its file stays."""
    from mdmem.recall.select import nameable
    from mdmem.repo.commit import pending
    from mdmem.repo.history import log_of

    store = look.store
    roots = tuple(store.to_git(folder).rstrip("/") for folder in store.owned)
    may_name = nameable(store)
    new = [found.path for found in pending(store.git, roots) if found.kind == "new"]
    new = [path for path in new if may_name(store.from_git(path) or path)]
    gone = [path for path in new[:200] if log_of(store.git, path, limit=1)]
    if gone:
        names = ", ".join(gone[:SHOWN]) + (" …" if len(gone) > SHOWN else "")
        text = f"{len(gone)} notes were taken out of git, their files stay: {names}"
        yield Finding("untracked-notes", WARNING, text, "mdmem sync")


def remote(look: Look) -> Iterator[Finding]:
    """The remote answers."""
    from mdmem.locate import remote_url
    from mdmem.repo.git import GitFailed, safe_text

    store = look.store
    url = remote_url(store.location.git.common_dir)
    if not url:
        yield Finding("remote", NOTE, "no remote: this memory is on one machine only", "mdmem remote add origin URL")
        return
    if not look.network or not store.trusted:
        return
    try:
        store.git.run("ls-remote", "--heads", "--quiet", "--", url, timeout=15, network=True)
        yield Finding("remote", OK, f"the remote answers: {safe_text(url)}")
    except GitFailed as error:
        yield Finding("remote", WARNING, f"the remote does not answer: {error}", "mdmem sync, when it does")


def waiting(look: Look) -> Iterator[Finding]:
    """What waits for a commit or a push."""
    from mdmem.recall.select import nameable
    from mdmem.repo.commit import remembered
    from mdmem.repo.history import unpushed_count

    store = look.store
    may_name = nameable(store)
    left = [path for path in remembered(store.git) if may_name(store.from_git(path) or path)]
    if left:
        yield Finding("uncommitted", WARNING, f"{len(left)} saved notes wait for a commit", "mdmem sync")
    count = unpushed_count(store.git)
    if count:
        yield Finding("unpushed", NOTE, f"{count} commits wait to be pushed", "mdmem sync")


def stash(look: Look) -> Iterator[Finding]:
    """No work waits in git's stash, where `git pull --autostash` leaves it when it does not fit (with exit code 0)."""
    found = [line for line in look.store.git.run("stash", "list", "-z", read=True).fields() if line]
    if found:
        from mdmem.memory.conflicts import conflicted

        marked = [note.path for note, conflicts in conflicted(look.store) if any(c.kind == "markers" for c in conflicts)]
        text = f"{len(found)} entries in git's stash: {found[0]}"
        if marked:
            text += f"; and git's markers stand in {marked[0]}: an autostash did not fit"
        yield Finding("stash", WARNING if marked else NOTE, text, typed("git", "-C", look.store.root, "stash", "show", "-p"))


def secrets(look: Look) -> Iterator[Finding]:
    """No secret stands in what would be pushed (with --deep: in the whole history)."""
    from mdmem.recall.select import nameable
    from mdmem.repo.scan import scan_history, scan_unpushed

    store = look.store
    if store.git.rev("HEAD") is None:
        return
    try:
        may_name = nameable(store)
        hits = scan_history(store.git) if look.deep else scan_unpushed(store.git)
        hits = [hit for hit in hits if may_name(store.from_git(hit.path) or hit.path)]
    except MdmemError as error:
        yield Finding("secrets", WARNING, f"could not look for secrets: {error}", "mdmem scan-secrets --history")
        return
    if hits:
        where = "history" if look.deep else "commits that wait to be pushed"
        yield Finding("secrets", ERROR, f"{len(hits)} secrets in the {where}: {hits[0]}", "mdmem scan-secrets --history")


CHECKS = (version, state, locks, driver, attributes, ignored, untracked, waiting, remote, stash, secrets)
