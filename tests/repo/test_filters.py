"""A filter of the user's general git configuration is not a pulled repository's to choose; one of the clone's own is used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdmem.cli.main import run
from tests.repo.conftest import plain_git

NAMES = ("clean", "smudge", "process")


@pytest.fixture
def sprung(own_home: Path, tmp_path: Path) -> Path:
    """The file that a general filter leaves when it runs."""
    trace = tmp_path / "sprung"
    for name in NAMES:
        plain_git(tmp_path, "config", "--global", f"filter.evil.{name}", f"touch {trace}; cat")
    plain_git(tmp_path, "config", "--global", "filter.evil.required", "true")
    return trace


def remote_with_filter(tmp_path: Path) -> Path:
    """Return a remote store whose .gitattributes choose the filter for every note."""
    made, remote = tmp_path / "made", tmp_path / "remote.git"
    plain_git(tmp_path, "init", "-q", "--bare", str(remote))
    assert run(["init", str(made)]) == 0
    assert run(["-C", str(made), "remember", "fact", "The harbor opens at nine."]) == 0
    with (made / ".gitattributes").open("a") as stream:
        stream.write("*.md filter=evil\n*.txt filter=evil\n")
    (made / "plain.txt").write_text("plain\n")
    off = [word for name in NAMES for word in ("-c", f"filter.evil.{name}=")]
    plain_git(made, *off, "-c", "filter.evil.required=false", "add", "-A")
    plain_git(made, *off, "-c", "filter.evil.required=false", "commit", "-qm", "attributes")
    plain_git(made, "push", "-q", str(remote), "HEAD:main")
    return remote


def test_a_pulled_repository_chooses_no_filter_of_the_users(
    sprung: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remote, top = remote_with_filter(tmp_path), tmp_path / "clone"
    sprung.unlink(missing_ok=True)
    assert run(["clone", str(remote), str(top)]) == 0
    note = next((top / "memories").glob("the-harbor*.md"))
    capsys.readouterr()
    assert run(["-C", str(top), "remember", "fact", "The lantern is green.", "--json"]) == 0
    saved = json.loads(capsys.readouterr().out)
    # Saved, and not committed as it is: the filter may be there to hide it.
    assert not saved["committed"] and "filter evil" in saved["reason"] and (top / saved["path"]).is_file()
    note.write_text(note.read_text() + "\nmore\n")
    for words in (("status",), ("recall", "harbor", "--keyword"), ("sync",), ("doctor",), ("history", str(note.name))):
        run(["-C", str(top), *words])
    assert not sprung.exists()
    other = tmp_path / "made"
    off = [word for name in NAMES for word in ("-c", f"filter.evil.{name}=")]
    (other / "memories" / "new.md").write_text("new\n")
    plain_git(other, *off, "-c", "filter.evil.required=false", "add", "-A")
    plain_git(other, *off, "-c", "filter.evil.required=false", "commit", "-qm", "more")
    plain_git(other, "push", "-q", str(remote), "HEAD:main")
    sprung.unlink(missing_ok=True)
    assert run(["-C", str(top), "sync"]) in (0, 1)
    assert (top / "memories" / "new.md").read_text() == "new\n" and not sprung.exists()


def test_a_filter_of_the_clone_itself_is_used(sprung: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remote, top = remote_with_filter(tmp_path), tmp_path / "clone"
    assert run(["clone", str(remote), str(top)]) == 0
    plain_git(top, "config", "--global", "--unset", "filter.evil.process")
    for name, program in (("clean", "tr a-z A-Z"), ("smudge", "tr A-Z a-z")):
        plain_git(top, "config", f"filter.evil.{name}", program)
    capsys.readouterr()
    assert run(["-C", str(top), "remember", "fact", "The lantern is green.", "--json"]) == 0
    saved = json.loads(capsys.readouterr().out)
    assert saved["committed"], saved["reason"]
    assert "LANTERN" in plain_git(top, "cat-file", "blob", f"HEAD:{saved['path']}")
