"""The merge driver under git itself, in the form of git's own t6406: each way to merge, each way to fail.

Every test ends with `git fsck --strict`, and nothing is ever silently one side: after a merge that git calls conflicted,
the file holds both sides, as a note or between markers.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mdmem.notes.frontmatter import parse
from mdmem.repo.driver import driver_command, install_driver
from mdmem.repo.git import Git
from mdmem.repo.merge import find_conflicts, merge, read_markers

from .conftest import plain_git

BASE = b"---\nid: mem-a\npriority: low\ntags:\n  - a\n---\n\nThe first text.\n\nThe second text.\n"
OURS = BASE.replace(b"  - a\n", b"  - a\n  - ours\n").replace(b"first", b"1st")
CLEAN = BASE.replace(b"  - a\n", b"  - a\n  - theirs\n").replace(b"second", b"2nd")
CLASH = CLEAN.replace(b"first", b"very first")
Run = Callable[..., tuple[int, str]]


class Repo:
    """A repository with branches main and side that both changed one note."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def git(self, *args: str, check: bool = True) -> str:
        return plain_git(self.top, *args, check=check)

    def code(self, *args: str) -> int:
        import subprocess

        return subprocess.run(["git", "-C", str(self.top), *args], capture_output=True, check=False).returncode

    def write(self, data: bytes, path: str = "memories/x.md") -> None:
        (self.top / path).parent.mkdir(parents=True, exist_ok=True)
        (self.top / path).write_bytes(data)

    def commit(self, data: bytes | None = None, path: str = "memories/x.md", message: str = "change") -> None:
        if data is not None:
            self.write(data, path)
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def read(self, path: str = "memories/x.md") -> bytes:
        return (self.top / path).read_bytes()

    def stages(self) -> list[str]:
        return [entry.split("\t")[0].split()[2] for entry in self.git("ls-files", "-u", "-z").split("\0") if entry]

    def fork(self, ours: bytes, theirs: bytes, base: bytes | None = BASE) -> None:
        """Make main and side from a base; end on main."""
        self.write(b"* text\n", "other.txt")
        self.commit(base)
        self.git("checkout", "-qb", "side")
        self.commit(theirs)
        self.git("checkout", "-q", "main")
        self.commit(ours)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Repo]:
    top = tmp_path / "store"
    top.mkdir()
    plain_git(top, "init", "-q")
    repo = Repo(top)
    (top / ".gitattributes").write_text("*.md -text merge=mdmem\n")
    install_driver(Git(top))
    yield repo
    plain_git(top, "fsck", "--strict")


def test_a_clean_merge_is_committed(store: Repo) -> None:
    store.fork(OURS, CLEAN)
    assert store.code("merge", "-q", "--no-edit", "side") == 0
    assert store.read() == merge(BASE, OURS, CLEAN).text
    assert parse(store.read()).fields["tags"] == ["a", "ours", "theirs"]
    assert store.stages() == [] and store.git("status", "--porcelain") == ""


def test_a_conflict_leaves_a_note_that_reads_and_three_stages(store: Repo) -> None:
    store.fork(OURS, CLASH)
    assert store.code("merge", "-q", "--no-edit", "side") == 1
    assert store.read() == merge(BASE, OURS, CLASH).text
    assert parse(store.read()).problem is None and len(find_conflicts(store.read())) == 1
    assert store.stages() == ["1", "2", "3"]


WAYS = ("merge", "reverse merge", "rebase", "cherry-pick", "stash pop", "merge-tree", "revert of a revert", "am -3", "apply -3")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("theirs", [CLEAN, CLASH], ids=["clean", "conflict"])
def test_g45_every_way_to_merge_gives_the_same_bytes(store: Repo, way: str, theirs: bytes, tmp_path: Path) -> None:
    store.fork(OURS, theirs)
    expected = merge(BASE, OURS, theirs)
    fails = int(bool(expected.conflicts))
    if way == "merge":
        assert store.code("merge", "-q", "--no-edit", "side") == fails
    elif way == "reverse merge":
        store.git("checkout", "-q", "side")
        assert store.code("merge", "-q", "--no-edit", "main") == fails
    elif way == "rebase":
        store.git("checkout", "-q", "side")
        assert store.code("rebase", "-q", "main") == fails
    elif way == "cherry-pick":
        assert store.code("cherry-pick", "side") == fails
    elif way == "stash pop":
        store.git("checkout", "-q", "--detach", "main~1")
        store.write(theirs)
        store.git("stash", "-q")
        store.git("checkout", "-q", "main")
        assert store.code("stash", "pop", "-q") == fails
    elif way == "merge-tree":
        done = store.git("merge-tree", "--write-tree", "--no-messages", "-z", "main", "side", check=False)
        assert plain_git(store.top, "show", done.split("\0")[0] + ":memories/x.md").encode() == expected.text
        return
    elif way == "revert of a revert":
        store.git("checkout", "-q", "side")
        store.git("revert", "--no-edit", "HEAD")
        store.commit(OURS)
        assert store.code("revert", "--no-edit", "HEAD~1") == fails
    else:
        patch = tmp_path / "side.patch"
        patch.write_text(store.git("format-patch", "-1", "--stdout", "--full-index", "side"))
        command = ["am", "-q", "-3", str(patch)] if way == "am -3" else ["apply", "-3", str(patch)]
        assert store.code(*command) in ((1, 128) if fails else (0,))
    assert store.read() == expected.text


def test_add_add_without_a_base(store: Repo) -> None:
    store.fork(OURS, CLASH, base=None)
    assert store.code("merge", "-q", "--no-edit", "side") == 1
    assert store.read() == merge(None, OURS, CLASH).text
    assert store.stages() == ["2", "3"]


def test_the_same_fact_added_on_both_sides_is_clean(store: Repo) -> None:
    one = b"---\nid: mem-a\nagent: claude\ncreated: 2026-01-01T00:00:00Z\n---\n\nfact\n"
    store.fork(one, one.replace(b"claude", b"codex").replace(b"01-01", b"01-02"), base=None)
    assert store.code("merge", "-q", "--no-edit", "side") == 0
    assert parse(store.read()).fields["agent"] == "claude"


def test_a_rename_on_one_side(store: Repo) -> None:
    store.fork(OURS, CLEAN)
    store.git("mv", "memories/x.md", "memories/y.md")
    store.commit()
    assert store.code("merge", "-q", "--no-edit", "side") == 0
    assert store.read("memories/y.md") == merge(BASE, OURS, CLEAN).text
    assert not (store.top / "memories/x.md").exists()


def test_a_mode_change_on_one_side(store: Repo) -> None:
    store.fork(OURS, CLEAN)
    (store.top / "memories/x.md").chmod(0o755)
    store.commit()
    assert store.code("merge", "-q", "--no-edit", "side") == 0
    assert store.git("ls-files", "-s", "memories/x.md").startswith("100755")
    assert store.read() == merge(BASE, OURS, CLEAN).text


@pytest.mark.parametrize("inner", ["mdmem", "text"])
def test_g44_a_criss_cross_history(store: Repo, inner: str) -> None:
    """Two merge bases that clash: git merges the bases first, with longer markers where the inner driver is text."""
    store.git("config", "merge.mdmem.recursive", inner)
    store.fork(OURS, CLASH)
    store.git("branch", "old-main")
    for branch, other, extra in (("main", "side", b"\nMain's own end.\n"), ("side", "old-main", b"\nSide's own end.\n")):
        store.git("checkout", "-q", branch)
        store.code("merge", "-q", "--no-edit", other)
        settled = merge(BASE, OURS, CLASH).text
        assert store.read() == settled
        store.commit(settled + extra)
    store.git("checkout", "-q", "main")
    code = store.code("merge", "-q", "--no-edit", "side")
    result = store.read()
    assert b"Main's own end." in result and b"Side's own end." in result
    assert parse(result).problem is None and b"<<<<<<<" not in result
    assert [v.text for v in find_conflicts(result)[0].versions] == ["The 1st text.", "The very first text."]
    if inner == "mdmem":
        assert code == 0 and len(find_conflicts(result)) == 1


def test_g27_a_linked_worktree(store: Repo, tmp_path: Path) -> None:
    store.fork(OURS, CLASH)
    store.git("worktree", "add", "-q", "-b", "third", str(tmp_path / "w t"), "main")
    linked = Repo(tmp_path / "w t")
    assert install_driver(Git(linked.top)) is False
    linked.git("config", "color.ui", "always")
    assert linked.code("merge", "-q", "--no-edit", "side") == 1
    assert linked.read() == merge(BASE, OURS, CLASH).text


def test_g23_a_clone_without_the_driver_gets_markers_that_read_back(store: Repo, tmp_path: Path) -> None:
    store.fork(OURS, CLASH)
    plain_git(tmp_path, "clone", "-q", str(store.top), "fresh")
    fresh = Repo(tmp_path / "fresh")
    assert fresh.code("merge", "-q", "--no-edit", "origin/side") == 1
    marked = fresh.read()
    assert parse(marked).problem is not None and parse(marked).problem.code == "conflicted"  # type: ignore[union-attr]
    sides = read_markers(marked)
    assert sides is not None and merge(BASE, sides[1], sides[2]).text == merge(BASE, OURS, CLASH).text
    fresh.git("fsck", "--strict")


def both_sides(data: bytes) -> bool:
    return b"1st" in data and b"very first" in data


@pytest.mark.parametrize(
    "program",
    [
        "/nonexistent/python",
        "#!/bin/sh\nkill -KILL $$\n",
        "#!/bin/sh\nkill -TERM $$\n",
        "#!/bin/sh\necho garbage; head -c 300 /dev/zero; exit 5\n",
        "#!/bin/sh\necho no module named mdmem >&2; exit 1\n",
        "#!/bin/sh\nexit 2\n",
        "#!/bin/sh\nexit 130\n",
        "not a program\n",
    ],
    ids=["missing", "killed", "terminated", "garbage", "exit 1", "exit 2", "exit 130", "text"],
)
@pytest.mark.parametrize("theirs", [CLEAN, CLASH], ids=["clean", "conflict"])
def test_a_driver_that_does_not_end_well_leaves_gits_own_merge(
    store: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, theirs: bytes
) -> None:
    path = program
    if not program.startswith("/"):
        script = tmp_path / "bin" / "python"
        script.parent.mkdir()
        script.write_text(program)
        script.chmod(0o755 if program.startswith("#!") else 0o644)
        path = str(script)
    monkeypatch.setattr(sys, "executable", path)
    install_driver(Git(store.top))
    store.fork(OURS, theirs)
    assert store.code("merge", "-q", "--no-edit", "side") == 1
    result = store.read()
    assert b"<<<<<<< ours" in result and b">>>>>>> theirs" in result
    assert b"1st" in result and b"2nd" in result
    assert store.stages() == ["1", "2", "3"]
    sides = read_markers(result)
    assert sides is not None and merge(BASE, sides[1], sides[2]).text == merge(BASE, OURS, theirs).text


def test_a_driver_killed_after_it_wrote_the_result_loses_nothing(
    store: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\n{sys.executable} "$@"\nkill -KILL $$\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    install_driver(Git(store.top))
    store.fork(OURS, CLASH)
    assert store.code("merge", "-q", "--no-edit", "side") == 1
    assert both_sides(store.read()) and store.stages() == ["1", "2", "3"]


def test_bytes_that_are_no_text_still_come_out_of_a_merge(store: Repo) -> None:
    one, two = b"\0\1ours\xff", b"\0\2theirs\xfe"
    store.fork(one, two, base=b"\0base")
    assert store.code("merge", "-q", "--no-edit", "side") == 1
    assert {v.data for v in find_conflicts(store.read())[0].versions} == {one, two}


def test_crlf_notes_come_out_as_crlf(store: Repo) -> None:
    texts = [data.replace(b"\n", b"\r\n") for data in (BASE, OURS, CLASH)]
    store.fork(texts[1], texts[2], base=texts[0])
    store.git("config", "core.autocrlf", "true")
    assert store.code("merge", "-q", "--no-edit", "side") == 1
    assert store.read() == merge(BASE, OURS, CLASH).text.replace(b"\n", b"\r\n")


def test_a_path_with_quotes_blanks_and_percent_signs(store: Repo) -> None:
    name = "memories/it's a \"%A\" $HOME; touch PWNED.md"
    store.write(b"x\n", "seed.txt")
    store.commit(BASE, name)
    store.git("checkout", "-qb", "side")
    store.commit(CLASH, name)
    store.git("checkout", "-q", "main")
    store.commit(OURS, name)
    assert store.code("merge", "-q", "--no-edit", "side") == 1
    assert store.read(name) == merge(BASE, OURS, CLASH).text
    assert not (store.top / "PWNED.md").exists() and not (store.top / "PWNED").exists()


def test_in_an_embedded_store_only_the_folders_of_mdmem_are_merged(store: Repo) -> None:
    (store.top / ".gitattributes").write_text("/memories/**/*.md -text merge=mdmem\n")
    install_driver(Git(store.top), ["/memories/**/*.md -text merge=mdmem"])
    store.write(BASE, "docs/x.md")
    store.commit(BASE, "memories/deep/x.md")
    store.git("checkout", "-qb", "side")
    store.write(CLASH, "docs/x.md")
    store.commit(CLASH, "memories/deep/x.md")
    store.git("checkout", "-q", "main")
    store.write(OURS, "docs/x.md")
    store.commit(OURS, "memories/deep/x.md")
    assert store.code("merge", "-q", "--no-edit", "side") == 1
    assert b"<<<<<<<" in store.read("docs/x.md")
    assert store.read("memories/deep/x.md") == merge(BASE, OURS, CLASH).text


def test_the_configured_command_is_the_one_that_is_documented(store: Repo) -> None:
    assert store.git("config", "merge.mdmem.driver").strip() == driver_command()
    assert shutil.which("sh")
