"""A store whose settings this mdmem cannot make out: another format, a damaged file, settings of a newer version. And folders
that are no place for a store."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mdmem.cli.main import run
from tests.hooks.host import payload, run_hook
from tests.repo.conftest import plain_git

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one note."""
    top = tmp_path / "store"
    assert run(["init", str(top)]) == 0
    assert run(["-C", str(top), "remember", "fact", "the harbor opens at nine"]) == 0
    return top


def told(capsys: Capsys, top: Path, *words: str) -> tuple[int, str]:
    """Return the exit code of a command and all that it printed."""
    capsys.readouterr()
    code = run(["-C", str(top), *words])
    return code, "".join(capsys.readouterr())


def snapshot(top: Path) -> tuple[str, ...]:
    return (
        plain_git(top, "rev-parse", "HEAD"),
        plain_git(top, "status", "--porcelain"),
        *(p.read_text() for p in top.glob("*/*.md")),
    )


@pytest.mark.parametrize("written", ["2", "99", "0", '"next"', "true"])
def test_a_store_of_another_format_is_only_read(written: str, store: Path, capsys: Capsys) -> None:
    """The number was written into each store and looked at by nobody: an old program would have written into a newer store."""
    settings = store / ".mdmem.toml"
    settings.write_text(settings.read_text().replace("format = 1", f"format = {written}"))
    before = snapshot(store)
    assert told(capsys, store, "recall", "harbor", "--keyword")[0] == 0
    for words in (
        ("remember", "fact", "a word"),
        ("set", "harbor", "importance=0.5"),
        ("sync",),
        ("trust",),
        ("init", str(store)),
    ):
        code, text = told(capsys, store, *words)
        assert code == 1 and "of another format" in text and "install a newer mdmem" in text and "not trusted" not in text, (
            words,
            text,
        )
    code, text = told(capsys, store, "status")
    assert code == 0 and "read only" in text and "not trusted" not in text and "this mdmem knows 1" in text
    assert "another format" in told(capsys, store, "doctor")[1]
    assert not run_hook("SessionStart", payload("SessionStart", store), cwd=store).out
    assert snapshot(store) == before
    settings.write_text(settings.read_text().replace(f"format = {written}", "format = 1"))
    assert told(capsys, store, "remember", "fact", "a word")[0] == 0


def test_damaged_settings_are_not_told_as_a_store_of_somebody_else(store: Path, capsys: Capsys) -> None:
    """A merge by hand left its marks in `.mdmem.toml`: the advice was to trust the store, which would not have helped."""
    settings = store / ".mdmem.toml"
    whole = settings.read_text()
    settings.write_text(whole + "<<<<<<< HEAD\n=======\n>>>>>>> other\n")
    for words in (("remember", "fact", "a word"), ("sync",), ("trust",)):
        code, text = told(capsys, store, *words)
        assert code == 1 and "cannot be read, so it is only read" in text and "line 7" in text, (words, text)
        assert "neither made nor cloned" not in text and "diff -- .mdmem.toml" in text
    assert told(capsys, store, "recall", "harbor", "--keyword")[0] == 0
    assert "not trusted" not in told(capsys, store, "status")[1]
    settings.write_text(whole)
    assert told(capsys, store, "remember", "fact", "a word")[0] == 0


def test_settings_of_a_newer_mdmem_are_told_from_those_of_the_user_alone(store: Path, capsys: Capsys) -> None:
    with (store / ".mdmem.toml").open("a") as settings:
        settings.write('[future]\nknob = 1\n[llm]\ncommand = "rm -rf /"\n[recall]\nlimit = "many"\n')
    code, text = told(capsys, store, "recall", "harbor", "--keyword")
    assert code == 0 and "'future.knob', which this mdmem does not know" in text
    assert "'llm.command', which only the user's own configuration may set" in text and "it is a whole number, such as" in text


@pytest.mark.parametrize("repository", [False, True])
@pytest.mark.parametrize("above", [False, True])
def test_the_home_folder_does_not_become_a_store(
    repository: bool, above: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """`mdmem init` typed in the home folder: every markdown file of the user would have been committed, and pushed later."""
    home = tmp_path / "users" / "me"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (home / "diary.md").write_text("# mine\n")
    target = home.parent if above else home
    if repository:
        plain_git(target, "init", "-q")
    before = sorted(os.listdir(target))
    capsys.readouterr()
    assert run(["init", str(target), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert "home folder" in answer["error"]["message"] and answer["error"]["hint"] == "mdmem init ~/memory"
    assert sorted(os.listdir(target)) == before
    assert run(["init", str(home / "memory")]) == 0


def test_a_folder_of_code_without_git_is_not_taken_for_a_folder_of_notes(tmp_path: Path, capsys: Capsys) -> None:
    """Only an empty folder, or one of markdown, becomes a store as a whole; of any other the folders of mdmem are."""
    for name in ("src/main.c", "node_modules/x/README.md"):
        (tmp_path / "code" / name).parent.mkdir(parents=True)
        (tmp_path / "code" / name).write_text("text\n")
    assert run(["init", str(tmp_path / "code")]) == 0
    code, text = told(capsys, tmp_path / "code", "status", "--json")
    assert code == 0 and json.loads(text[text.index("{") :])["mode"] == "embedded"


def test_a_vault_with_its_attachments_is_a_store_as_a_whole_and_what_makes_it_none_is_named(
    tmp_path: Path, capsys: Capsys
) -> None:
    """A folder of Logseq with its `config.edn`, or one recording among the notes, was taken for a code repository: none of its
    notes was seen, and nothing said why."""
    vault = tmp_path / "vault"
    (vault / "logseq").mkdir(parents=True)
    for name in ("page.md", "logseq/config.edn", "logseq/custom.css", "talk.m4a", "IMG_1.HEIC", "list.csv"):
        (vault / name).write_text("a harbor\n")
    plain_git(vault, "init", "-q")
    assert run(["init", str(vault)]) == 0 and "page.md" in told(capsys, vault, "recall", "harbor", "--keyword")[1]
    code = tmp_path / "code"
    (code / "src").mkdir(parents=True)
    (code / "page.md").write_text("a harbor\n")
    (code / "src" / "main.c").write_text("int main;\n")
    plain_git(code, "init", "-q")
    capsys.readouterr()
    assert run(["init", str(code)]) == 0
    text = "".join(capsys.readouterr())
    assert "src/main.c is neither a note nor an attachment" in text and 'mode = "dedicated"' in text
    settings = code / ".mdmem.toml"
    settings.write_text(settings.read_text().replace('"embedded"', '"dedicated"'))
    assert run(["init", str(code)]) == 0 and "page.md" in told(capsys, code, "recall", "harbor", "--keyword")[1]


def test_a_bare_repository_with_work_trees_beside_it_is_a_store(store: Path, tmp_path: Path, capsys: Capsys) -> None:
    """`git clone --bare` and `git worktree add`, a layout that many keep their repositories in: it was refused as bare."""
    plain_git(tmp_path, "clone", "-q", "--bare", str(store), "hub.git")
    plain_git(tmp_path / "hub.git", "worktree", "add", "-q", "../tree")
    tree = tmp_path / "tree"
    plain_git(tree, "remote", "remove", "origin")
    assert told(capsys, tree, "trust")[0] == 0
    code, text = told(capsys, tree, "remember", "fact", "the ferry leaves at ten", "--json")
    assert code == 0 and json.loads(text[text.index("{") :])["committed"] is True, text
    assert told(capsys, tree, "sync")[0] == 0 and plain_git(tree, "status", "--porcelain") == ""
