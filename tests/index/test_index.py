"""The index on a real store: what changes outside is found, nothing is lost, damage is rebuilt."""

from __future__ import annotations

import os
import shutil
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from notes_at_hand import FakeEmbedder, found, write

from mdmem.errors import Ambiguous, NotFound
from mdmem.index.rows import row_of
from mdmem.notes.note import load
from mdmem.store import Store
from tests.another_user import permissions_count

Opened = Callable[[], Store]


def git(root: Path, *args: str) -> None:
    subprocess.run(["git", "-C", str(root), *args], check=True, capture_output=True)


def test_i8_edits_and_deletions_while_nothing_runs_are_seen_by_the_next_search(root: Path, opened: Opened) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A")
    write(root, "memories/b.md", "the walrus sleeps", title="B")
    assert found(opened().index, "walrus") == ["memories/a.md", "memories/b.md"]
    write(root, "memories/a.md", "the penguin sings", title="A")
    (root / "memories/b.md").unlink()
    index = opened().index
    assert found(index, "walrus") == []
    assert found(index, "penguin") == ["memories/a.md"]
    assert index.verify() == []


def test_a_rename_keeps_the_row_and_the_vectors(root: Path, opened: Opened, embedder: FakeEmbedder) -> None:
    write(root, "memories/a.md", "the walrus sings", title="A", id="mem-aaaa")
    index = opened().index
    index.refresh(embed_budget_s=None)
    before = index.note_by("mem-aaaa")["rowid"]
    done = len(embedder.embedded)
    git(root, "add", "-A")
    (root / "deep").mkdir()
    git(root, "mv", "memories/a.md", "deep/b.md")
    out = index.refresh(embed_budget_s=None)
    assert (out.renamed, out.added, out.removed) == (1, 0, 0)
    row = index.note_by("mem-aaaa")
    assert row["rowid"] == before and row["path"] == "deep/b.md"
    assert len(embedder.embedded) == done
    assert index.verify() == []


def test_i9_a_note_saved_by_an_editor_is_found_by_meaning(root: Path, opened: Opened) -> None:
    index = opened().index
    index.refresh(embed_budget_s=None)
    temporary = write(root, ".4913.md", "zebra crossing rules")
    os.replace(temporary, root / "memo.md")
    index.refresh()
    ((window, cosine),) = index.vector_search("zebra crossing rules", None, 1)
    assert cosine > 0.5
    assert (
        index.catalog.value("SELECT path FROM notes n JOIN windows w ON w.note = n.rowid WHERE w.rowid = ?", (window,))
        == "memo.md"
    )


def test_a_change_within_the_clock_tick_is_seen(root: Path, opened: Opened) -> None:
    path = write(root, "memories/a.md", "aardvark", title="A")
    index = opened().index
    assert found(index, "aardvark")
    stat = path.stat()
    with open(path, "r+b") as stream:  # same inode, same size, same time of change as far as it can be set
        data = stream.read().replace(b"aardvark", b"albacore")
        stream.seek(0)
        stream.write(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with index.catalog.writing() as connection:  # as if the file system's clock had not ticked either
        connection.execute("UPDATE notes SET ctime_ns = ?", (path.stat().st_ctime_ns,))
    later = opened().index
    assert found(later, "albacore") and not found(later, "aardvark")


def test_a_change_of_a_file_that_has_long_been_still_is_seen(
    root: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mdmem.index import fold_in

    path = write(root, "memories/a.md", "aardvark", title="A")
    # Nothing is young any more: what was looked at counts by its numbers alone.
    real = fold_in.time_ns
    monkeypatch.setattr(fold_in, "time_ns", lambda: real() + 60_000_000_000)
    assert found(opened().index, "aardvark")
    path.write_bytes(path.read_bytes().replace(b"aardvark", b"albacore, long"))
    later = opened().index
    assert found(later, "albacore") and not found(later, "aardvark")


@permissions_count
def test_i25_an_unreadable_folder_keeps_its_rows_and_gives_one_warning(root: Path, opened: Opened) -> None:
    write(root, "memories/a.md", "walrus", title="A")
    write(root, "other/b.md", "walrus", title="B")
    index = opened().index
    assert len(found(index, "walrus")) == 2
    os.chmod(root / "memories", 0)
    try:
        out = index.refresh(embed_budget_s=0.0)
        assert out.removed == 0 and len(out.notices) == 1
        assert index.refresh(embed_budget_s=0.0).notices == []
        assert len(found(index, "walrus")) == 2
    finally:
        os.chmod(root / "memories", 0o755)
    assert index.refresh(embed_budget_s=0.0).removed == 0


def test_i25_a_scan_error_below_a_folder_is_no_deletion(root: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "memories/a.md", "walrus", title="A")
    write(root, "other/b.md", "walrus", title="B")
    index = opened().index
    assert len(found(index, "walrus")) == 2
    real = os.scandir

    def failing(path: str) -> object:
        if str(path).endswith("memories"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", failing)
    out = index.refresh(embed_budget_s=0.0)
    assert out.removed == 0 and [text for text in out.notices if "memories" in text]
    assert index.refresh(embed_budget_s=0.0).notices == []
    monkeypatch.setattr(os, "scandir", real)
    shutil.rmtree(root / "memories")
    assert index.refresh(embed_budget_s=0.0).removed == 1


def test_a_vanished_store_folder_is_no_deletion(root: Path, opened: Opened, tmp_path: Path) -> None:
    outside = tmp_path / "docs"
    write(outside, "x.md", "walrus", title="X")
    config = tmp_path / "config.toml"
    write(root, "a.md", "walrus", title="A")
    store = opened()
    store.config.user["folders"] = [{"path": str(outside), "kind": "entity"}]
    index = store.index
    assert len(found(index, "walrus")) == 2
    outside.rename(tmp_path / "gone")
    assert index.refresh(embed_budget_s=0.0).removed == 0
    assert not config.exists()


def test_bad_notes_are_found_by_their_words_and_named(root: Path, opened: Opened) -> None:
    path = root / "bad.md"
    path.write_text("---\ntitle: 'don't'\n---\n\nthe walrus\n")
    index = opened().index
    assert found(index, "walrus") == ["bad.md"]
    row = index.note_by("bad.md")
    assert row["state"] == "bad"
    assert index.catalog.value("SELECT count(*) FROM problems WHERE note = ?", (row["rowid"],)) == 1
    conflicted = "---\n<<<<<<< ours\ntitle: a\n=======\ntitle: b\n>>>>>>> theirs\n---\n\nthe penguin\n"
    path.write_text(conflicted)
    assert found(index, "penguin") == ["bad.md"]
    assert index.note_by("bad.md")["state"] == "conflicted"


def test_f31_a_unique_word_at_byte_200_000_is_found(root: Path, opened: Opened) -> None:
    write(root, "long.md", "filler words again and again. " * 6_700 + "quixotry " + "tail. " * 50)
    assert found(opened().index, "quixotry") == ["long.md"]


@pytest.mark.parametrize("limit", [200_000, 0])
def test_f34_a_huge_file_is_cut_with_a_message(root: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    from mdmem.notes import folder, scan

    if limit:  # else the real one
        monkeypatch.setattr(folder, "MAX_BYTES", limit)
        monkeypatch.setattr(scan, "MAX_BYTES", limit)
    rows = folder.MAX_BYTES // 10 + 5_000
    (root / "table.md").write_text("firstword\n" + "| a | b |\n" * rows + "lastword\n")
    index = opened().index
    out = index.refresh(embed_budget_s=0.0)
    assert any("table.md" in text for text in out.notices)
    row = index.note_by("table.md")
    assert row["state"] == "cut" and 0 < row["cut"] <= folder.MAX_BYTES
    assert found(index, "firstword") == ["table.md"] and found(index, "lastword") == []


def test_f36_the_whole_body_is_indexed_and_the_block_decides(root: Path, opened: Opened) -> None:
    write(root, "a.md", "intro\n\n---\n\nstatus: done\n\nwalrus", status="open", title="A")
    index = opened().index
    assert found(index, "walrus") == ["a.md"]
    assert index.note_by("A")["status"] == "open"


def test_f9_f11_values_are_strings(root: Path, opened: Opened) -> None:
    write(root, "a.md", "x", title="1458", id="0123", due="2026-02-30", version="1.10")
    row = opened().index.note_by("0123")
    assert (row["title"], row["id"], row["due"]) == ("1458", "0123", "2026-02-30")
    assert '"version": "1.10"' in row["fields"]


def test_f32_f29_tags_come_from_hashtags_only(root: Path, opened: Opened) -> None:
    write(root, "a.md", "#a\n\n- [/] todo\n- Added X to the roster\nnot a tag #", title="A")
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    assert [row["tag"] for row in index.catalog.rows("SELECT tag FROM tags")] == ["a"]
    assert index.catalog.value("SELECT count(*) FROM edges") == 0


def test_n1_n3_odd_names_are_indexed_and_printed_as_they_are(root: Path, opened: Opened) -> None:
    names = ["记录 a.md", 'quote".md', "arrow -> b.md", "-dash.md", "new\nline.md", "50%_x.md"]
    for name in names:
        write(root, name, "walrus")
    assert sorted(found(opened().index, "walrus")) == sorted(names)


def test_n4_n5_one_note_in_nfc_and_nfd(root: Path, opened: Opened) -> None:
    write(root, unicodedata.normalize("NFD", "테스트_맥.md"), "데이터베이스를 고른다", title="회의록")
    index = opened().index
    for form in ("NFC", "NFD"):
        assert len(found(index, unicodedata.normalize(form, "데이터베이스"))) == 1  # type: ignore[arg-type]
        assert index.note_by(unicodedata.normalize(form, "테스트_맥"))["title"] == "회의록"  # type: ignore[arg-type]
        assert index.note_by(unicodedata.normalize(form, "회의록"))  # type: ignore[arg-type]


def test_n7_n8_near_twins_are_two_notes(root: Path, opened: Opened) -> None:
    for name in ("README.md", "readme.md", "2026_06_16.md", "2026-06-16.md"):
        write(root, name, "walrus")
    if len(os.listdir(root)) < 4:
        pytest.skip("this file system folds case")
    index = opened().index
    out = index.refresh(embed_budget_s=0.0)
    assert len(found(index, "walrus")) == 4
    assert [text for text in out.notices if "README.md" in text]
    codes = {row["path"] for row in index.catalog.rows("SELECT path FROM problems WHERE code = 'twin'")}
    assert codes == {"README.md", "readme.md"}
    assert index.refresh(embed_budget_s=0.0).notices == []


def test_n14_n18_tags_are_exact(root: Path, opened: Opened) -> None:
    write(root, "a.md", "x", title="A", tags='["50%_x\\\\y", "अनीता"]')
    write(root, "b.md", "y", title="B", tags='["50abx\\\\y"]')
    index = opened().index
    assert found(index, "अनीता") == ["a.md"]
    rows = index.catalog.rows("SELECT note FROM tags WHERE tag = ?", ("50%_x\\y",))
    assert len(rows) == 1


def test_n21_a_folder_named_like_a_note_is_skipped_with_a_message(root: Path, opened: Opened) -> None:
    (root / "2026-01-01.md").mkdir()
    write(root, "2026-01-01.md/inner.md", "walrus")
    out = opened().index.refresh(embed_budget_s=0.0)
    assert [text for text in out.notices if "2026-01-01.md" in text]


def test_references(root: Path, opened: Opened) -> None:
    write(root, "memories/one.md", "x", id="mem-abcdefgh", title="First thing", aliases="[uno]")
    write(root, "memories/two.md", "x", id="mem-abcdzzzz", title="Second thing")
    write(root, "deep/two.md", "x", title="Other")
    index = opened().index
    for reference in (
        "mem-abcdefgh",
        "mem-abcde",
        "memories/one.md",
        "memories/one",
        "First thing",
        "first THING",
        "uno",
        "one",
    ):
        assert index.note_by(reference)["path"] == "memories/one.md", reference
    assert index.note_by("deep/two")["path"] == "deep/two.md"
    assert index.path_of_id("mem-abcdzzzz") == "memories/two.md"
    assert index.path_of_id("mem-abcd") is None
    for reference in ("mem-abcd", "two"):
        with pytest.raises(Ambiguous):
            index.note_by(reference)
    for reference in ("mem-xxxx", "absent", "%", "", "' OR 1=1 --"):
        with pytest.raises(NotFound):
            index.note_by(reference)


def test_i17_i42_filters_are_sets_and_values_literal(root: Path, opened: Opened) -> None:
    for number in range(30):
        write(root, f"n{number}.md", "walrus", type='"x\\" OR 1=1"' if number == 7 else "fact")
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    allowed = {row["rowid"] for row in index.catalog.rows("SELECT rowid FROM notes WHERE type = ?", ('x" OR 1=1',))}
    assert len(allowed) == 1
    assert {hit.note for hit in index.text_hits("walrus", allowed, 5).hits} == allowed


def test_i12_a_new_model_embeds_again_and_words_go_on(root: Path, opened: Opened, embedder: FakeEmbedder) -> None:
    for number in range(5):
        write(root, f"n{number}.md", f"walrus number{number}")
    opened().index.refresh(embed_budget_s=None)
    for fingerprint, dims in (("fake2", 32), ("fake1", 64)):
        embedder.fingerprint, embedder.dims = fingerprint, dims
        index = opened().index
        assert index.dense.pending(index.catalog) == 5
        assert index.vector_search("walrus") == [] and len(found(index, "walrus")) == 5
        assert index.refresh(embed_budget_s=None).pending_vectors == 0
        assert len(index.vector_search("walrus")) == 5


def test_a_note_that_came_while_others_were_embedded_still_waits(
    root: Path, opened: Opened, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "a.md", "walrus")
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    passages = embedder.passages

    def slow(texts: list[str]) -> object:
        if not (root / "late.md").exists():
            write(root, "late.md", "zebra")
            opened().index.refresh(embed_budget_s=0.0)
        return passages(texts)

    monkeypatch.setattr(embedder, "passages", slow)
    index.refresh(embed_budget_s=None)
    assert index.dense.pending(index.catalog) == 1 == opened().index.dense.pending(index.catalog)
    assert index.refresh(embed_budget_s=None).pending_vectors == 0
    assert len(index.vector_search("zebra")) == 2


def test_i12_a_failed_probe_is_no_model_change(root: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.index import dense
    from mdmem.index.embed import EmbeddingUnavailable

    write(root, "a.md", "walrus")
    opened().index.refresh(embed_budget_s=None)
    with monkeypatch.context() as patch:

        def absent(*_: object, **__: object) -> object:
            raise EmbeddingUnavailable("the model is missing")

        patch.setattr(dense, "load_embedder", absent)
        index = opened().index
        out = index.refresh(embed_budget_s=None)
        assert any("words only" in text for text in out.notices)
        assert index.vector_search("walrus") == [] and found(index, "walrus") == ["a.md"]
    assert len(opened().index.vector_search("walrus")) == 1


def test_i14_two_stores_with_two_models_in_one_process(
    tmp_path: Path, opened: Opened, root: Path, embedder: FakeEmbedder
) -> None:
    from mdmem.setup import init

    init(tmp_path / "second")
    write(root, "a.md", "walrus")
    write(tmp_path / "second", "b.md", "walrus")
    first, second = opened().index, Store.open(tmp_path / "second").index
    first.refresh(embed_budget_s=None)
    other = FakeEmbedder("fake2", 16)
    second.dense._embedder = other
    second.refresh(embed_budget_s=None)
    assert len(first.vector_search("walrus")) == len(second.vector_search("walrus")) == 1
    assert first.dense.question("walrus").shape == (64,) and second.dense.question("walrus").shape == (16,)


def test_dates_come_from_fields_then_commits_then_the_file(root: Path, opened: Opened) -> None:
    write(root, "said.md", "x", created="2020-01-01", updated="2021-01-01T10:00:00+02:00")
    write(root, "committed.md", "y")
    git(root, "add", "-A")
    subprocess.run(
        ["git", "-C", str(root), "commit", "-qm", "x"],
        check=True,
        env=dict(os.environ, GIT_COMMITTER_DATE="2019-05-05T00:00:00Z", GIT_AUTHOR_DATE="2018-05-05T00:00:00Z"),
    )
    write(root, "fresh.md", "z")
    os.utime(root / "fresh.md", (1_500_000_000, 1_500_000_000))
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    dates = {row["path"]: (row["created"], row["updated"]) for row in index.catalog.rows("SELECT * FROM notes")}
    assert dates["said.md"] == ("2020-01-01T00:00:00Z", "2021-01-01T08:00:00Z")
    assert dates["committed.md"] == ("2019-05-05T00:00:00Z", "2019-05-05T00:00:00Z")
    assert dates["fresh.md"] == ("2017-07-14T02:40:00Z", "2017-07-14T02:40:00Z")


def test_a_budget_of_nothing_leaves_the_work_for_later(root: Path, opened: Opened) -> None:
    write(root, "a.md", "walrus")
    index = opened().index
    out = index.refresh(budget_s=0.0, embed_budget_s=0.0)
    assert out.pending_notes == 1 and out.added == 0
    assert index.refresh(embed_budget_s=0.0).added == 1


def test_state_files_are_private(root: Path, opened: Opened) -> None:
    write(root, "a.md", "walrus")
    index = opened().index
    index.refresh(embed_budget_s=None)
    index.maintain(thorough=True)
    for path in index.state_dir.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_single_paths_can_be_refreshed(root: Path, opened: Opened) -> None:
    write(root, "a.md", "walrus")
    write(root, "b.md", "walrus")
    index = opened().index
    assert len(found(index, "walrus")) == 2
    write(root, "a.md", "penguin")
    (root / "b.md").unlink()
    out = index.refresh(paths=["a.md", "b.md", "never.md"], embed_budget_s=0.0)
    assert (out.changed, out.removed) == (1, 1)
    assert index.text_search("penguin") and not index.text_search("walrus")


def test_i6_one_absent_word_does_not_hide_the_rest(root: Path, opened: Opened) -> None:
    write(root, "ru.md", "мы выбрали базу данных")
    write(root, "el.md", "διαλέξαμε τη βάση δεδομένων")
    write(root, "th.md", "เราเลือก ฐานข้อมูล แล้ว")
    index = opened().index
    assert found(index, "выбрали базу отсутствует") == ["ru.md"]
    assert found(index, "βάση δεδομένων απούσα") == ["el.md"]
    assert found(index, "ฐานข้อมูล เราเลือก ไม่มีคำนี้") == ["th.md"]


def test_i27_forty_thousand_notes_need_no_forty_thousand_parameters(root: Path, opened: Opened) -> None:
    from mdmem.index.catalog import listed

    write(root, "a.md", "walrus")
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    with index.catalog.writing() as connection:
        connection.executemany(
            "INSERT INTO notes (path, size, mtime_ns, ctime_ns, inode, checked_ns) VALUES (?, 0, 0, 0, 0, 1)",
            [(f"ghost{number}.md",) for number in range(40_000)],
        )
    everything = [row["rowid"] for row in index.catalog.rows("SELECT rowid FROM notes")]
    assert len(everything) == 40_001
    counted = "SELECT count(*) FROM notes WHERE rowid IN (SELECT value FROM json_each(?))"
    assert index.catalog.value(counted, (listed(everything),)) == 40_001
    assert len(index.text_hits("walrus", set(everything), 5).hits) == 1
    assert index.neighbours(everything, 1) == []
    index.known.forget()
    assert index.refresh(embed_budget_s=0.0).removed == 40_000


@pytest.mark.parametrize("named", [0, 50])
def test_an_undated_note_takes_the_date_of_its_commit_once_committed(
    root: Path, opened: Opened, named: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A few notes are asked for by name, many by one look at the whole store.
    monkeypatch.setattr("mdmem.index.dates.NAMED", named)
    path = write(root, "a.md", "walrus")
    os.utime(path, (1_500_000_000, 1_500_000_000))
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    assert index.note_by("a.md")["updated"] == "2017-07-14T02:40:00Z"
    git(root, "add", "-A")
    environment = dict(os.environ, GIT_COMMITTER_DATE="2019-05-05T00:00:00Z", GIT_AUTHOR_DATE="2019-05-05T00:00:00Z")
    subprocess.run(["git", "-C", str(root), "commit", "-qm", "x"], check=True, env=environment)
    write(root, "b.md", "another")
    index.refresh(embed_budget_s=0.0)
    assert index.note_by("a.md")["updated"] == "2019-05-05T00:00:00Z"
    write(root, "a.md", "walrus changed")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    index.refresh(embed_budget_s=0.0)
    row = index.note_by("a.md")
    assert (row["created"], row["updated"]) == ("2019-05-05T00:00:00Z", "2023-11-14T22:13:20Z")


def test_a_title_of_a_megabyte_is_not_copied_into_every_window(root: Path, opened: Opened) -> None:
    (root / "big.md").write_text("# " + "long title " * 20_000 + "\n\n" + "words of the body. " * 5_000 + "\n")
    index = opened().index
    index.refresh(embed_budget_s=0.0)
    row = index.note_by("big")
    assert len(row["title"]) <= 400
    assert index.catalog.value("SELECT max(length(heading)) FROM windows") <= 400
    assert index.verify() == []


def test_what_is_embedded_says_what_it_is_about_once() -> None:
    from mdmem.index.rows import embed_text

    assert embed_text("Ports", "Web", "It is 80.") == "Ports\nWeb\nIt is 80."
    assert embed_text("We use port 80", "", "We use port 80. It is open.") == "We use port 80. It is open."
    assert embed_text("We use the port that is…", "", "We use the port that is open.") == "We use the port that is open."
    assert embed_text("2026-05-04", "", "It is 80.") == "It is 80."


def test_of_a_file_whose_block_is_bad_a_part_is_indexed() -> None:
    bad = b"---\n" + b"".join(b"key%d: [a, b\n" % number for number in range(100_000)) + b"---\nbody\n"
    row = row_of(load("memories/a.md", bad), "memories/a.md")
    assert sum(len(window.text) for window in row.windows) < 600_000 and "key5: [a, b" in row.windows[0].text
    whole = bad.replace(b"---\n", b"***\n", 1)  # plain text of that size is indexed whole
    assert "body" in row_of(load("memories/a.md", whole), "memories/a.md").windows[-1].text
    assert row.columns["sha"] != row_of(load("memories/a.md", bad + b"x"), "memories/a.md").columns["sha"]
