"""From sessions to memories: with their source, once, the same on every device, in the order in which things were said."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

from mdmem.learn.consolidate import Consolidated, consolidate
from mdmem.learn.log import read as read_log
from mdmem.learn.review import doubts
from mdmem.memory.session_record import SessionRecord, Turn
from mdmem.memory.transcripts import read_transcript
from mdmem.notes.note import Note
from mdmem.store import Store

HERE = Path(__file__).parent / "transcripts"
START = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)


def session(name: str, day: int, *said: str, scope: str = "project:shop") -> SessionRecord:
    """A session on the n-th day from START; `T: step`, `X: failed step`."""
    begin = START + timedelta(days=day)
    record = SessionRecord(name, begin, begin + timedelta(minutes=len(said)), scope)
    for number, text in enumerate(said, 1):
        at = begin + timedelta(minutes=number)
        who = {"U": "user", "A": "assistant", "T": "tool", "X": "tool"}[text[0]]
        record.turns.append(Turn(who, text[3:], number, at, text[0] != "X"))
        if who == "user":
            record.prompts.append(text[3:])
        elif who == "assistant":
            record.said.append(text[3:])
        elif text[0] == "X":
            record.problems.append(text[3:] + ": exit code 1")
    return record


def talk(name: str, day: int, *said: str, **more: str) -> SessionRecord:
    """A session long enough to count."""
    return session(name, day, "U: hello", *said, "A: I see.", "U: ok", "A: Done.", **more)


def memories(store: Store, active: bool = True) -> dict[str, Note]:
    found = {}
    for path in sorted((store.root / "memories").glob("*.md")):
        note = store.folder.read(f"memories/{path.name}")
        if not active or note.status in ("", "active"):
            found[note.body.strip().partition("\n")[0]] = note
    return found


def test_a_session_gives_facts_with_their_source(store: Store) -> None:
    record = read_transcript(HERE / "a01-orders-db.jsonl")
    assert record is not None
    record.scope = "project:orders"
    done = consolidate(store, [record])
    notes = memories(store)
    text = "We use PostgreSQL 16 for orders, and every migration must be reversible."
    assert text in notes, list(notes)
    note = notes[text]
    assert note.source == f"{done.sessions[0]['note']}#L8" and note.session == record.session
    assert note.text("speaker") == "user" and note.summary and note.overview and note.confidence and note.importance
    assert note.scope == "project:orders" and note.type == "decision" and note.category == "decision"
    line = (HERE / "a01-orders-db.jsonl").read_text("utf-8").splitlines()[7]
    assert "PostgreSQL 16 for orders" in json.loads(line)["message"]["content"]
    assert note.created == json.loads(line)["timestamp"].replace(".000Z", "Z")
    assert (
        done.committed
        and not subprocess.run(["git", "status", "--porcelain"], cwd=store.root, capture_output=True, check=True).stdout
    )


def test_a_statement_is_linked_with_the_entities_it_names(store: Store) -> None:
    for path, title, scope in (
        ("person/mei.md", "Mei", "shared"), ("project/billing.md", "Billing", "project:shop"),
        ("project/pay.md", "支付服务", "shared"),
        ("project/other.md", "Service", "project:other"), ("person/me.md", "Me", "shared"),
    ):  # fmt: skip
        place = store.root / "entities" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        kind = path.partition("/")[0]
        place.write_text(
            f"---\nid: {kind}-{place.stem}\nkind: entity\ntype: {kind}\ntitle: {title}\nscope: {scope}\n---\n\nAn entity.\n"
        )
    said = ("U: Mei owns the billing service of the shop.", "U: 支付服务由小王负责")
    consolidate(store, [talk("s1", 0, *said)])
    notes = memories(store)
    assert notes["Mei owns the billing service of the shop."].words("relates_to") == ["person-mei", "project-billing"]
    assert notes["支付服务由小王负责"].words("relates_to") == ["project-pay"]
    assert not doubts(store) and consolidate(store, [talk("s1", 0, *said)]).paths == []


def test_twice_changes_nothing(store: Store) -> None:
    records = [read_transcript(path) for path in sorted(HERE.glob("a0*.jsonl"))]
    first = consolidate(store, [record for record in records if record])
    before = {path.name: path.read_bytes() for path in store.root.rglob("*.md")}
    second = consolidate(store, [record for record in records if record])
    assert len(first.paths) > 20 and second.paths == [] and not second.committed
    assert {path.name: path.read_bytes() for path in store.root.rglob("*.md")} == before
    assert {one.action for one in second.drawn} <= {"known", "unchanged"}


def test_a_dry_run_writes_nothing(store: Store) -> None:
    done = consolidate(store, [talk("s1", 0, "U: We use Redis 7 for sessions.")], dry_run=True)
    assert [one.action for one in done.drawn] == ["created"]
    assert not (store.root / "memories").exists() or not memories(store)
    assert not list(store.root.glob("sessions/*/*/*.md")) and not read_log(store)


def test_two_devices_write_the_same_bytes(make_store: Callable[..., Store]) -> None:
    trees = []
    for name, device in (("one", "laptop"), ("two", "tower")):
        store = make_store(name, device=device, agent=f"agent-{name}")
        records = [read_transcript(path) for path in sorted(HERE.glob("*.jsonl"))]
        consolidate(store, [record for record in (records if name == "one" else records[::-1]) if record])
        trees.append({path.relative_to(store.root): path.read_bytes() for path in store.root.rglob("*.md")})
    assert trees[0] == trees[1] and len(trees[0]) > 60


def test_a_change_of_mind_in_a_later_session_whatever_is_read_first(make_store: Callable[..., Store]) -> None:
    old = talk("s1", 0, "U: The staging server listens on port 8080.")
    new = talk("s2", 40, "U: The staging server listens on port 9090.")
    trees = []
    for name, order in (("forth", [[old], [new]]), ("back", [[new], [old]]), ("together", [[new, old]])):
        store = make_store(name)
        for part in order:
            consolidate(store, part)
        notes = memories(store, active=False)
        before, after = notes[old.turns[1].text], notes[new.turns[1].text]
        assert list(memories(store)) == [after.body.strip()], name
        assert before.status == "superseded" and before.words("superseded_by") == [after.id]
        assert after.words("supersedes") == [before.id]
        trees.append({key: note.data for key, note in notes.items()})
    assert trees[0] == trees[1] == trees[2]


def test_a_fact_that_holds_again_is_current_again(store: Store) -> None:
    first = "The main database is MySQL."
    consolidate(store, [talk("s1", 0, f"U: {first}"), talk("s2", 30, "U: The main database is PostgreSQL.")])
    assert list(memories(store)) == ["The main database is PostgreSQL."]
    consolidate(store, [talk("s3", 60, f"U: {first}")])
    assert list(memories(store)) == [first]
    assert consolidate(store, [talk("s3", 60, f"U: {first}"), talk("s1", 0, f"U: {first}")]).paths == []
    assert list(memories(store)) == [first]


def test_what_was_forgotten_does_not_come_back_from_the_same_session(store: Store) -> None:
    from mdmem.memory.forget import forget

    record = talk("s1", 0, "U: The staging server listens on port 8080.")
    made = consolidate(store, [record]).drawn[0]
    forget(store, [made.id])
    assert [one.action for one in consolidate(store, [record]).drawn] == ["known"] and not memories(store)


def test_the_log_says_of_each_sentence_what_was_made_of_it(store: Store) -> None:
    consolidate(
        store,
        [
            talk(
                "s1",
                0,
                "U: We use Redis 7 for sessions.",
                "U: Which port does the gateway use?",
                "U: The color is blue, maybe.",
            )
        ],
    )
    rows = {row["text"]: (row["outcome"], row["why"]) for row in read_log(store, "s1")}
    assert rows["We use Redis 7 for sessions."] == ("created", "decision")
    assert rows["Which port does the gateway use?"] == ("skipped", "a question")
    assert rows["The color is blue, maybe."] == ("skipped", "a what-if")
    assert read_log(store, "other") == []
    again = consolidate(store, [talk("s2", 1, "U: Sessions use Redis 7.")])
    assert [one.action for one in again.drawn] == ["unchanged"]
    assert [row["outcome"] for row in read_log(store, "s2") if row["outcome"] != "skipped"] == ["unchanged"]


def test_steps_that_recur_become_a_procedure(store: Store) -> None:
    steps = ("T: Bash: Run the linter", "T: Bash: Build version 1.2", "T: Bash: Upload the wheel")
    for number in range(2):
        done = consolidate(store, [talk(f"s{number}", number, *steps)])
    assert not done.procedures
    done = consolidate(store, [talk("s2", 2, "T: Bash: Clean up", *steps)])
    (made,) = done.procedures
    assert made["steps"] == ["Run the linter", "Build version 1.2", "Upload the wheel"] and made["sessions"] == 3
    note = next(note for note in memories(store).values() if note.id == made["id"])
    assert note.type == "procedure" and len(note.words("relates_to")) == 3 and "2. Build version 1.2" in note.body
    again = consolidate(store, [talk("s3", 3, *steps)])
    assert again.procedures[0]["id"] == made["id"] and again.procedures[0]["sessions"] == 4
    assert consolidate(store, [talk("s3", 3, *steps)]).paths == []


def test_the_session_note_tells_the_fix_and_is_much_smaller(store: Store) -> None:
    record = session(
        "s1", 0, "U: the build fails on the arm runner",
        "X: Bash: Build the wheel", "T: Edit: setup.cfg", "T: Bash: Build the wheel",
        *(f"A: {'Looking at the arm runner and its output. ' * 40}" for _ in range(30)), "U: thanks",
    )  # fmt: skip
    done = consolidate(store, [record])
    body = store.folder.read(done.sessions[0]["path"]).body
    assert "Build the wheel: exit code 1 → worked after Edit: setup.cfg" in body
    assert "runner" in body.partition("## Words")[2]
    size = sum(len(turn.text) for turn in record.turns)
    assert len(body) * 20 < size, (len(body), size)


def test_greetings_are_neither_outcome_nor_words_of_a_session(store: Store) -> None:
    said = ("U: hello", "A: Hi!", "U: move the cache to Redis", "A: The cache now lives in Redis.")
    done = consolidate(store, [talk("s1", 0, *said, "U: thanks, bye", "A: Bye!")])
    note = store.folder.read(done.sessions[0]["path"])
    assert "Outcome\n\nThe cache now lives in Redis" in note.body
    assert "bye" not in note.body.lower().partition("## outcome")[2]
    only = consolidate(store, [talk("s2", 1, "U: hello", "A: Hi!")])
    assert "hello" in store.folder.read(only.sessions[0]["path"]).body


def test_tasks_are_proposed_and_applied_only_when_wanted(make_store: Callable[..., Store]) -> None:
    from mdmem.learn.reflect import proposals
    from mdmem.team.tasks import add, listed

    for wanted, status in (("propose", "open"), ("apply", "done"), ("off", "open")):
        store = make_store(wanted, **{"extract.tasks": wanted})
        task = add(store, "Migrate the orders table")[0]
        add(store, "Write the release notes")
        done = consolidate(store, [talk("s1", 0, "A: The migration of the orders table is done and merged.")])
        assert [row["task"] for row in done.tasks] == ([] if wanted == "off" else [task.id])
        found = {one.id: one.status for one in listed(store, everything=True)}
        assert found[task.id] == status
        assert len(proposals(store)) == (1 if wanted == "propose" else 0)


def test_a_note_from_the_other_device_is_compared_once_it_is_here(make_store: Callable[..., Store]) -> None:
    one, two = make_store("one", device="laptop"), make_store("two", device="tower")
    consolidate(one, [talk("s1", 0, "U: The staging server listens on port 8080.")])
    consolidate(two, [talk("s2", 40, "U: The staging server listens on port 9090.")])
    exchange(one, two)
    done: list[Consolidated] = [consolidate(store, []) for store in (one, two)]
    assert all(part.reconciled for part in done)
    trees = [{path.name: path.read_bytes() for path in (store.root / "memories").iterdir()} for store in (one, two)]
    assert trees[0] == trees[1]
    assert list(memories(one)) == ["The staging server listens on port 9090."]
    assert all(consolidate(store, []).paths == [] for store in (one, two)) and not doubts(one)


def test_a_store_kept_for_years_is_not_gone_through_because_a_session_ended(store: Store) -> None:
    from mdmem.learn.apply import change
    from mdmem.memory.remember import Memory, remember

    old = remember(store, Memory("fact", "The staging server listens on port 8080.", scope="project:shop"))
    store.clock.advance(days=1)  # type: ignore[attr-defined]
    new = remember(store, Memory("fact", "The staging server listens on port 9090.", scope="project:shop"))
    for made in (old, new):
        note = store.folder.read(made.path)
        change(store, note, {"status": None, "superseded_by": None, "supersedes": None})
    before = {path: path.read_bytes() for path in (store.root / "memories").iterdir()}
    done = consolidate(store, [talk("s1", 0, "U: We use Redis 7 for caching.")])
    assert not done.reconciled and all(path.read_bytes() == data for path, data in before.items())
    asked = consolidate(store, [], everything=True)
    assert [row["outcome"] for row in asked.reconciled] == ["update"] and store.folder.read(old.path).status == "superseded"


def exchange(one: Store, two: Store) -> None:
    """What a sync without conflicts does: both have the files of both."""
    for source, target in ((one, two), (two, one)):
        for folder in ("memories", "sessions"):
            for path in (source.root / folder).rglob("*.md"):
                copy = target.root / path.relative_to(source.root)
                if not copy.exists():
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes(path.read_bytes())
