"""History is answered from git alone: by note, by revision, by date."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

import pytest

from mdmem.clock import parse_time
from mdmem.errors import NotFound
from mdmem.repo import history
from mdmem.repo.commit import commit_paths
from mdmem.repo.git import Git, GitFailed

from .conftest import Sh


def day(number: int, hour: int = 12) -> datetime:
    return datetime(2026, 3, number, hour, tzinfo=timezone.utc)


def save(top: Path, path: str, text: str | None, when: datetime, message: str = "remember: x", **trailers: str) -> str:
    if text is None:
        (top / path).unlink()
    else:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
    done = commit_paths(Git(top), [path], message, trailers, when=when)
    assert done.rev
    return done.rev


@pytest.fixture
def store(tmp_path: Path, sh: Sh) -> Path:
    top = tmp_path / "store"
    sh(tmp_path, "init", "-q", "store")
    return top


LONG = "a line that is long enough to be known again\n" * 5


def test_log_follows_renames_and_reads_trailers(store: Path, sh: Sh) -> None:
    save(store, "old name.md", LONG, day(1), "remember: one", agent="claude", device="laptop", session="ses-1")
    (store / "old name.md").rename(store / "né\nw.md")
    commit_paths(Git(store), ["old name.md", "né\nw.md"], "set: moved", {}, when=day(2))
    save(store, "né\nw.md", LONG + "more\n", day(3), "set: two", agent="codex")
    save(store, "other.md", "x", day(4))
    found = history.log_of(Git(store), "né\nw.md")
    assert [(c.subject, c.status, c.path) for c in found] == [
        ("set: two", "M", "né\nw.md"),
        ("set: moved", "R", "né\nw.md"),
        ("remember: one", "A", "old name.md"),
    ]
    assert found[2].trailers == {"Mdmem-Agent": "claude", "Mdmem-Device": "laptop", "Mdmem-Session": "ses-1"}
    assert found[2].date == "2026-03-01T12:00:00Z" and found[2].author == "Test"
    assert history.log_of(Git(store), "absent.md") == []
    assert history.path_at(Git(store), "né\nw.md", found[2].rev) == "old name.md"
    assert len(history.log_of(Git(store), "né\nw.md", limit=1)) == 1


def test_an_empty_store_has_no_history(store: Path) -> None:
    git = Git(store)
    assert history.log_of(git, "a.md") == [] and history.rev_at(git, day(1)) is None
    assert history.path_dates(git, ["a.md"]) == {} and history.unpushed_count(git) is None


def test_rev_at_is_the_first_commit_at_or_before(store: Path) -> None:
    revs = [save(store, "a.md", f"{n}", day(n)) for n in (1, 2, 3)]
    git = Git(store)
    assert history.rev_at(git, day(1, 11)) is None
    assert history.rev_at(git, day(1)) == revs[0]
    assert history.rev_at(git, day(2, 11)) == revs[0]
    assert history.rev_at(git, day(20)) == revs[2]
    assert history.rev_at(git, revs[1][:8]) == revs[1]
    assert history.resolve(git, "2026-03-02") == revs[1]
    assert history.resolve(git, revs[0][:10]) == revs[0]
    assert history.resolve(git, "1d", now=day(3, 13)) == revs[1]
    for wrong in ("2026-02-01", "nonsense", "--all"):
        with pytest.raises(NotFound):
            history.resolve(git, wrong)


def test_rev_at_survives_wrong_clocks(store: Path) -> None:
    future = datetime(2031, 1, 1, tzinfo=timezone.utc)
    past = datetime(1971, 1, 1, tzinfo=timezone.utc)
    revs = [save(store, "a.md", f"{n}", when) for n, when in enumerate((day(1), future, day(3), past, day(5)))]
    git = Git(store)
    assert history.rev_at(git, day(1)) == revs[1]  # the commit of the wrong clock counts as the one before it
    assert history.rev_at(git, day(3)) == revs[3]
    assert history.rev_at(git, day(4)) == revs[3]
    assert history.rev_at(git, day(6)) == revs[4]


def test_a_later_moment_never_has_less_history(store: Path, sh: Sh) -> None:
    save(store, "a.md", "base", day(1))
    sh(store, "switch", "-qc", "side")
    save(store, "side.md", "s", day(2))
    sh(store, "switch", "-q", "main")
    save(store, "main.md", "m", day(3))
    env = {"GIT_COMMITTER_DATE": "2026-03-04T12:00:00Z", "GIT_AUTHOR_DATE": "2026-03-04T12:00:00Z"}
    sh(store, "merge", "-q", "--no-ff", "-m", "merge", "side", env=env)
    git = Git(store)
    seen: set[str] = set()
    for hour in range(0, 24 * 6, 6):
        found = history.rev_at(git, day(1, 0).replace(day=1 + hour // 24, hour=hour % 24))
        names = set(history.tree_at(git, found)) if found else set()
        assert seen <= names
        seen = names
    assert seen == {"a.md", "side.md", "main.md"}


def test_trees_and_blobs_at_a_revision(store: Path, sh: Sh) -> None:
    first = save(store, "d/a.md", LONG, day(1))
    (store / "link").symlink_to("/etc/passwd")
    sh(store, "add", "link")
    sh(store, "commit", "-qm", "link")
    second = save(store, "b\n.md", "two", day(2))
    git = Git(store)
    assert history.read_at(git, first, "d/a.md") == LONG.encode()
    assert history.read_at(git, first, "b\n.md") is None and history.read_at(git, "nonsense", "a") is None
    assert history.read_at(git, second, "link") is None and history.read_at(git, second, "d") is None
    tree = history.tree_at(git, second)
    assert set(tree) == {"d/a.md", "b\n.md"} and set(history.tree_at(git, second, "d")) == {"d/a.md"}
    assert history.blobs(git, [*tree.values(), "0" * 40]) == {tree["d/a.md"]: LONG.encode(), tree["b\n.md"]: b"two"}
    assert [(e.status, e.path) for e in history.diff_trees(git, first, second)] == [("A", "b\n.md"), ("A", "link")]


def test_diff_names_renames(store: Path) -> None:
    first = save(store, "a.md", LONG, day(1))
    (store / "a.md").rename(store / "z.md")
    done = commit_paths(Git(store), ["a.md", "z.md"], "x", {})
    assert done.rev
    assert history.diff_trees(Git(store), first, done.rev) == [history.Entry("R", "z.md", "a.md")]


def test_dates_of_all_notes_come_from_one_pass(store: Path) -> None:
    save(store, "a.md", LONG, day(1))
    save(store, "b.md", "b", day(2))
    save(store, "b.md", None, day(3))
    (store / "a.md").rename(store / "moved.md")
    commit_paths(Git(store), ["a.md", "moved.md"], "x", {}, when=day(4))
    since = save(store, "b.md", "again", day(5))
    save(store, "moved.md", LONG + "x", day(6))
    git = Git(store)
    found = history.path_dates(git, ["moved.md", "b.md", "absent.md"])
    assert found == {
        "moved.md": history.Dates("2026-03-01T12:00:00Z", "2026-03-06T12:00:00Z"),
        "b.md": history.Dates("2026-03-05T12:00:00Z", "2026-03-05T12:00:00Z"),
    }
    assert set(history.path_dates(git, ["moved.md", "b.md"], since)) == {"moved.md"}
    assert set(history.path_dates(git, ["moved.md"], "0" * 40)) == {"moved.md"}


def test_unpushed_commits_are_counted(store: Path, sh: Sh, tmp_path: Path) -> None:
    save(store, "a.md", "a", day(1))
    sh(tmp_path, "init", "-q", "--bare", "remote.git")
    sh(store, "remote", "add", "origin", str(tmp_path / "remote.git"))
    sh(store, "push", "-qu", "origin", "main")
    assert history.unpushed_count(Git(store)) == 0
    save(store, "a.md", "b", day(2))
    assert history.unpushed_count(Git(store)) == 1


def test_odd_subjects_and_names_do_not_confuse_the_log(store: Path) -> None:
    save(store, "0123456789012345678901234567890123456789", "x", day(1), "M\x1ed\x1f A")
    save(store, "M", "x", day(2), "0123456789012345678901234567890123456789")
    found = history.commits(Git(store))
    assert [[e.path for e in c.entries] for c in found] == [["M"], ["0123456789012345678901234567890123456789"]]
    assert found[0].ours and parse_time(found[0].date) == day(2)


def test_a_new_note_under_an_old_name_does_not_take_the_dates_of_the_one_that_moved(store: Path) -> None:
    """a.md became b.md, then another a.md was written: each has its own first day."""
    save(store, "a.md", LONG, day(1))
    (store / "a.md").rename(store / "b.md")
    commit_paths(Git(store), ["a.md", "b.md"], "x", {}, when=day(2))
    save(store, "a.md", "something else\n", day(5))
    found = history.path_dates(Git(store), ["a.md", "b.md"])
    assert found == {
        "a.md": history.Dates("2026-03-05T12:00:00Z", "2026-03-05T12:00:00Z"),
        "b.md": history.Dates("2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z"),
    }


def test_a_commit_of_a_time_that_cannot_be_is_dated_1970(store: Path, sh: Sh) -> None:
    rev = save(store, "a.md", "x", day(1))
    raw = sh(store, "cat-file", "commit", rev)
    odd = re.sub(r"(?m)^(committer .*> )\d+", r"\g<1>99999999999999999", raw)
    made = Git(store).run("hash-object", "-t", "commit", "-w", "--literally", "--stdin", input=odd.encode()).text()
    assert [commit.date for commit in history.commits(Git(store), "--no-walk", made)] == ["1970-01-01T00:00:00Z"]


def test_dates_of_a_damaged_history_are_an_error_not_a_guess(store: Path) -> None:
    first = save(store, "a.md", "x", day(1))
    save(store, "a.md", "y", day(2))
    (store / ".git/objects" / first[:2] / first[2:]).unlink()
    with pytest.raises(GitFailed):
        history.path_dates(Git(store), ["a.md"])


def merge_keeping(store: Path, sh: Sh, branch: str, when: datetime) -> None:
    """Merge a branch without taking anything of it, as a person does who settles it by hand."""
    date = when.isoformat()
    env = {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date}
    sh(store, "merge", "-q", "-s", "ours", "-m", "both", branch, env=env)


def test_a_note_that_one_branch_deleted_and_the_merge_kept_keeps_its_first_day(store: Path, sh: Sh) -> None:
    save(store, "a.md", LONG, day(1))
    sh(store, "switch", "-qc", "side")
    save(store, "a.md", None, day(4))
    sh(store, "switch", "-q", "main")
    save(store, "a.md", LONG + "x", day(3))
    merge_keeping(store, sh, "side", day(5))
    assert history.path_dates(Git(store), ["a.md"]) == {"a.md": history.Dates("2026-03-01T12:00:00Z", "2026-03-03T12:00:00Z")}


def test_a_name_that_one_branch_gave_up_and_another_kept_stays_its_notes(store: Path, sh: Sh) -> None:
    save(store, "a.md", LONG, day(1))
    sh(store, "switch", "-qc", "side")
    (store / "a.md").rename(store / "b.md")
    commit_paths(Git(store), ["a.md", "b.md"], "x", {}, when=day(4))
    sh(store, "switch", "-q", "main")
    save(store, "a.md", LONG + "x", day(3))
    merge_keeping(store, sh, "side", day(5))
    save(store, "b.md", LONG, day(6))
    found = history.path_dates(Git(store), ["a.md", "b.md"])
    assert found["a.md"] == history.Dates("2026-03-01T12:00:00Z", "2026-03-03T12:00:00Z")
