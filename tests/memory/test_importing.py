"""Markdown brought in from elsewhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mdmem.cli.main import run
from mdmem.memory.importing import import_markdown
from mdmem.store import Store


def source(tmp_path: Path) -> Path:
    folder = tmp_path / "old notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "plain.md").write_text("# Ports\n\nThe proxy listens on 8443.\n")
    decision = "---\nid: mem-abc123\ntype: decision\ntitle: Use tabs\nmood: fine\n---\n\nWe use tabs.\n"
    (folder / "decision.md").write_text(decision)
    (folder / "sub" / "page.md").write_text("---\ntitle: A page\nlayout: wide\n---\n\nText.\n")
    (folder / "sub" / "apollo.md").write_text("---\nkind: entity\ntype: project\ntitle: Apollo\n---\n")
    (folder / "secret.md").write_text("password=hunter2-and-more\n")
    (folder / "bad.md").write_text("---\ntitle: 'don't'\n---\n")
    (folder / "latin.md").write_bytes(b"caf\xe9\n")
    (folder / ".hidden.md").write_text("no\n")
    return folder


def test_a_folder_keeps_what_it_says_and_names_what_fails(store: Store, tmp_path: Path) -> None:
    folder = source(tmp_path)
    dry = import_markdown(store, folder, dry_run=True)
    done = import_markdown(store, folder)
    assert (dry.created, dry.unchanged, len(dry.failed)) == (done.created, done.unchanged, len(done.failed)) == (5, 0, 2)
    assert {row["path"] for row in done.failed} == {"bad.md", "latin.md"}
    assert done.committed
    kept = store.folder.read(next(p for p in done.paths if "mem-abc123" in p))
    assert kept.data == (folder / "decision.md").read_bytes()
    assert store.folder.read("entities/project/apollo.md").title == "Apollo"
    assert store.folder.read("imported/old-notes/sub/page.md").data == (folder / "sub/page.md").read_bytes()
    assert all(b"hunter2" not in (store.root / path).read_bytes() for path in done.paths)


def test_f35_twice_is_once(store: Store, tmp_path: Path) -> None:
    folder = source(tmp_path)
    first = import_markdown(store, folder)
    again = import_markdown(store, folder)
    assert (again.created, again.unchanged, again.paths) == (0, first.created, [])


def test_one_file_with_a_type(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_text("---\ntitle: Ship on Thursdays\n---\n\nAlways.\n")
    done = import_markdown(store, path, type_="decision")
    note = store.folder.read(done.paths[0])
    assert (note.kind, note.type, note.title) == ("memory", "decision", "Ship on Thursdays")


def test_links_of_a_vault_lead_to_the_same_notes_after_the_import(store: Store, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / ".obsidian" / "app.json").write_text("{}")
    (vault / "daily").mkdir()
    (vault / "db choice.md").write_text("---\ntype: decision\ntitle: We stay with PostgreSQL\n---\nBecause of [[Ledger]].\n")
    (vault / "Ledger.md").write_text("---\nkind: entity\ntype: project\nrelates_to:\n  - \"[[db choice]]\"\n---\nThe ledger.\n")
    (vault / "daily" / "2026-11-01.md").write_text("Talked about [[db choice|the database]] and [[Ledger#Plan]].\n")
    done = import_markdown(store, vault)
    assert (done.created, done.failed) == (3, [])
    store.index.refresh(embed_budget_s=0.0)
    rows = store.index.catalog.rows("SELECT n.title, e.target, m.title AS leads FROM edges e JOIN notes n ON n.rowid = e.src "
                                    "LEFT JOIN notes m ON m.rowid = e.dst ORDER BY 1, 2")
    assert [(row["target"].split("|")[0], row["leads"]) for row in rows if row["leads"] is None] == []
    assert len(rows) == 4


def test_p8_a_note_of_ours_that_comes_back_passes_the_gate_too(store: Store, tmp_path: Path) -> None:
    secret = "".join(("ghp_", "a1B2" * 9))
    for mark in ("memories/a.md", "plain.md"):
        top = tmp_path / mark.partition("/")[0]
        (top / "memories").mkdir(parents=True)
        if mark != "plain.md":
            (top / ".mdmem.toml").write_text("format = 1\n")
        (top / "memories" / f"{top.name[0]}.md").write_text(f"---\nid: mem-{top.name[0]}\ntype: fact\n---\nkey {secret}\n")
        done = import_markdown(store, top)
        assert done.redacted == 1 and done.created == 1, (mark, done)
        assert not any(secret in store.folder.read_bytes(path).decode() for path in done.paths)


def test_a_pipe_among_the_files_is_left_out_by_name_and_the_others_come_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading it never ended, and what had been imported before it stood in no commit."""
    source = tmp_path / "notes"
    source.mkdir()
    for name in ("a.md", "z.md"):
        (source / name).write_text(f"# The harbor of {name}\n\nIt opens at nine.\n")
    os.mkfifo(source / "m.md")
    top = tmp_path / "store"
    assert run(["init", str(top)]) == 0
    capsys.readouterr()
    run(["-C", str(top), "import", str(source)])
    told = "".join(capsys.readouterr())
    assert "Imported 2" in told and "m.md: not a regular file" in told, told
    assert subprocess.run(["git", "-C", str(top), "status", "--porcelain"], capture_output=True, check=True).stdout == b""
