"""The warm process: one per user, the user's own, gone when idle; everything works without it."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mdmem.warm import address, client, memory, server, starting
from tests.another_user import become_nobody, in_child, is_root
from tests.hooks.host import add_note, index, make_store, payload, run_hook, wait_until
from tests.patience import within

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MDMEM_SERVE", "auto")
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "off")
    monkeypatch.setenv("MDMEM_SERVE_IDLE", "60")
    monkeypatch.setattr(client, "GREETING", 2.0)
    yield
    client.ask({"op": "stop"})
    wait_until(lambda: not servers())


def servers() -> list[int]:
    """Return the processes that hold this test's lock file open."""
    lock = os.path.realpath(address.lock_path())
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if any(os.path.realpath(link) == lock for link in (entry / "fd").iterdir()):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def ready() -> int:
    """Wait for the warm process; returns its process id."""
    wait_until(lambda: client.ask({"op": "status"}) is not None)
    status = client.ask({"op": "status"})
    assert status is not None
    return int(status["pid"])


def test_a_second_start_finds_the_first() -> None:
    assert starting.start()
    first = ready()
    assert not starting.start()
    argv = [sys.executable, "-m", "mdmem", "serve", "--json"]
    done = subprocess.run(argv, capture_output=True, cwd=TOP, timeout=60, check=True)
    assert json.loads(done.stdout) == {"running": True, "started": False}
    assert ready() == first and len(servers()) == 1


def test_i24_ten_starts_at_once_leave_one(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(TOP)!r}); from mdmem.warm.starting import start; start()"
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(10)]
    assert [process.wait(60) for process in running] == [0] * 10
    ready()
    assert len(servers()) == 1


def test_i24_it_ends_when_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDMEM_SERVE_IDLE", "0.2")
    starting.start()
    wait_until(lambda: not servers())
    assert not os.path.exists(address.socket_path())


def test_it_has_its_own_session_and_no_descriptor_of_ours() -> None:
    starting.start()
    process = ready()
    assert os.getsid(process) == process
    assert {os.readlink(f"/proc/{process}/fd/{n}") for n in (0, 1, 2)} == {"/dev/null"}


def test_the_socket_is_the_users_alone() -> None:
    starting.start()
    ready()
    assert os.stat(address.socket_path()).st_mode & 0o777 == 0o600
    assert os.stat(address.folder()).st_mode & 0o777 == 0o700


def test_a_folder_of_somebody_else_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(address, "LONGEST", 4096)  # the folder of the test may be a long one
    (tmp_path / "mdmem").symlink_to("/tmp")
    with pytest.raises(address.NoAddress):
        address.socket_path()
    assert client.ask({"op": "status"}) is None and not starting.start()
    (tmp_path / "mdmem").unlink()


def test_a_long_home_gets_a_short_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / ("x" * 150)))
    assert len(address.socket_path()) < 100
    starting.start()
    ready()
    client.ask({"op": "stop"})
    wait_until(lambda: not servers())
    os.unlink(address.lock_path())
    os.rmdir(address.folder())


def test_another_version_makes_it_end(monkeypatch: pytest.MonkeyPatch) -> None:
    starting.start()
    ready()
    monkeypatch.setattr(client, "__version__", "99.0")
    assert client.ask({"op": "status"}) is None
    wait_until(lambda: not servers())
    monkeypatch.undo()


def test_i29_a_lock_file_with_an_old_process_id_stops_nobody() -> None:
    Path(address.lock_path()).write_text(str(os.getpid()))
    Path(address.socket_path()).write_text("left over")
    assert starting.start()
    ready()


def test_sigterm_cleans_up() -> None:
    starting.start()
    os.kill(ready(), signal.SIGTERM)
    wait_until(lambda: not servers())
    assert not os.path.exists(address.socket_path())


def test_killed_it_is_replaced() -> None:
    starting.start()
    os.kill(ready(), signal.SIGKILL)
    wait_until(lambda: not servers())
    assert client.ask({"op": "status"}) is None
    assert starting.start()
    ready()


@pytest.mark.parametrize("data", [b"", b"\n", b"null\n", b"[]\n", b'{"op": 1}\n', b'{"op":"prompt"}\n', b"x" * 100_000 + b"\n"])
def test_nonsense_does_not_hurt_it(data: bytes) -> None:
    starting.start()
    process = ready()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(address.socket_path())
        line.sendall(data)
        line.shutdown(socket.SHUT_WR)
        line.settimeout(10)
        while line.recv(65536):
            pass
    assert ready() == process


def test_off_means_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MDMEM_SERVE", "off")
    store = make_store(tmp_path / "store")
    run_hook("SessionStart", payload("SessionStart", store, source="startup"), cwd=store)
    assert not servers()
    assert not client.allowed()
    monkeypatch.setenv("MDMEM_SERVE", "auto")


def test_a_session_starts_it_and_a_prompt_uses_it(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    add_note(store, "memories/pg.md", "Billing runs on PostgreSQL 16.", type="decision", title="Billing database")
    index(store)
    run_hook("SessionStart", payload("SessionStart", store, source="startup", session_id="one"), cwd=store)
    ready()
    before = client.ask({"op": "status"})
    data = payload("UserPromptSubmit", store, prompt="which PostgreSQL version does billing run on?", session_id="two")
    argv = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(TOP)!r})\n"
            "from mdmem.warm import client; client.GREETING = 5.0\n"
            "from mdmem.hooks.entry import run_hook; run_hook(['UserPromptSubmit'])"]  # fmt: skip
    done = run_hook("", data, cwd=store, argv=argv)
    assert "PostgreSQL 16" in done.context
    after = client.ask({"op": "status"})
    assert before is not None and after is not None and after["served"] > before["served"]


def test_a_prompt_works_when_it_hangs(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    add_note(store, "memories/pg.md", "Billing runs on PostgreSQL 16.", type="decision", title="Billing database")
    index(store)
    starting.start()
    process = ready()
    os.kill(process, signal.SIGSTOP)
    try:
        data = payload("UserPromptSubmit", store, prompt="which PostgreSQL version does billing run on?")
        begin = time.monotonic()
        done = run_hook("UserPromptSubmit", data, cwd=store)
        assert "PostgreSQL 16" in done.context
        within(begin, 4)
    finally:
        os.kill(process, signal.SIGCONT)


def test_a_store_that_is_gone_is_dropped(tmp_path: Path) -> None:
    import shutil

    from mdmem.warm.answers import Answers

    store = make_store(tmp_path / "store")
    add_note(store, "memories/pg.md", "Billing runs on PostgreSQL 16.", type="decision", title="Billing")
    index(store)
    answers = Answers()
    request = {"op": "prompt", "root": str(store), "prompt": "which PostgreSQL does billing run on?", "scope": "shared"}
    assert "PostgreSQL 16" in answers.answer(request)["text"]
    assert len(answers.held) == 1
    # Moved first: the worker that indexes it may still write into it while it is taken away.
    store.rename(tmp_path / "gone")
    shutil.rmtree(tmp_path / "gone", ignore_errors=True)
    answers.tidy()
    assert not answers.held
    with pytest.raises(Exception, match="store"):
        answers.answer(request)


def test_recall_by_way_of_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.recall.query import Filters, Query
    from mdmem.recall.recall import recall
    from mdmem.store import Store
    from mdmem.warm.recalling import recall_warm

    root = make_store(tmp_path / "store")
    for number in range(5):
        text = f"Billing fact {number} on PostgreSQL."
        add_note(root, f"memories/n{number}.md", text, type="decision", title=f"Fact {number}")
    store = Store.open(root)
    query = Query("billing PostgreSQL", filters=Filters(types=("decision",)), explain=True, budget=500)
    starting.start()
    ready()
    by_way = recall_warm(store, query)
    assert by_way is not None
    alone = recall(store, query)
    assert by_way.as_dict()["results"] == alone.as_dict()["results"]
    assert by_way.context == alone.context
    # A file that came since is seen, as by any command.
    add_note(root, "memories/late.md", "Billing PostgreSQL latecomer zebra.", type="decision", title="Late")
    late = recall_warm(store, Query("zebra"))
    assert late is not None and [hit.title for hit in late.results] == ["Late"]
    monkeypatch.setenv("MDMEM_NOW", "2026-01-01T00:00:00Z")
    assert recall_warm(store, query) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_mcp_server_asks_it_and_searches_nothing_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.mcp.server import Memory
    from mdmem.recall import recall

    store = make_store(tmp_path)
    add_note(store, "memories/rome.md", "The office in Rome has two printers.")
    starting.start()
    ready()

    def itself(*_: object) -> None:
        raise AssertionError("searched in the server's own process")

    monkeypatch.setattr(recall, "recall_many", itself)
    monkeypatch.setattr(recall, "recall", itself)
    answer = Memory(str(store)).call("memory_search", {"query": "printers in Rome"})
    assert "two printers" in answer["content"][0]["text"] and not answer["isError"]


def test_a_prompt_is_answered_from_the_users_other_stores_too(tmp_path: Path) -> None:
    from mdmem.warm.answers import Answers

    here, own, strange = (
        make_store(tmp_path / name, trusted=name != "strange", store_id=f"st-{name}") for name in ("here", "own", "strange")
    )
    for root in (here, own, strange):
        text = f"The label printer of {root.name} needs darkness 15."
        add_note(root, "memories/printer.md", text, type="fact", title="Printer")
        index(root)
    request = {"op": "prompt", "root": str(here), "agent": "tester", "device": "laptop", "scope": "", "source": "user"}
    request |= {"prompt": "which darkness does the label printer need? password=Tr0ub4dor3", "inject": True, "budget": 900}
    others = [{"name": root.name, "root": str(root)} for root in (own, strange, tmp_path / "gone")]
    answer = Answers().answer({**request, "others": others})
    assert "printer of here" in answer["text"] and "own:memories/printer.md" in answer["text"]
    assert "strange" not in answer["text"]
    # The spool's part of the prompt comes back redacted.
    assert answer["kept"] == "which darkness does the label printer need? password=[redacted:password]"
    for quiet in ({"prompt": "thanks a lot"}, {"inject": False}):
        assert set(Answers().answer({**request, **quiet})) == {"kept"}
    assert Answers().answer({**request, "source": "system"}) == {"kept": ""}


def _held_below(folder: Path) -> int:
    """Return how many descriptors of this process stand below a folder, or look out for changes."""
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    names = [os.readlink(link) for link in links if os.path.lexists(link)]
    return sum(name.startswith(f"{folder}/") or "inotify" in name for name in names)


def test_agents_of_one_store_share_its_index_and_not_what_they_may_read(tmp_path: Path) -> None:
    from mdmem.config import user_file
    from mdmem.warm.answers import Answers

    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text('[agents.bot]\nscopes = ["shared"]\n')
    store = make_store(tmp_path / "store")
    add_note(store, "memories/pg.md", "Billing runs on PostgreSQL 16.", type="decision", title="Billing", scope="project:x")
    index(store)
    answers = Answers()
    request = {"op": "prompt", "root": str(store), "prompt": "which PostgreSQL does billing run on?", "scope": "project:x"}
    answers.answer({**request, "agent": "rival-0"})
    before = _held_below(store)
    for number in range(10):
        assert "PostgreSQL 16" in answers.answer({**request, "agent": f"rival-{number}"})["text"]
        assert "PostgreSQL 16" not in str(answers.answer({**request, "agent": "bot"}).get("text", ""))
    assert len(answers.held) == 11 and len({id(held.store.index) for held in answers.held.values()}) == 1
    # A look-out and a second connection may come; an index for each agent would be some thirty more.
    assert _held_below(store) <= before + 6
    with user_file().open("a") as stream:
        stream.write('[agents.rival-0]\nscopes = ["shared"]\n')
    assert "PostgreSQL 16" not in str(answers.answer({**request, "agent": "rival-0"}).get("text", ""))
    assert "PostgreSQL 16" in answers.answer({**request, "agent": "rival-1"})["text"]
    assert len({id(held.store.index) for held in answers.held.values()}) == 2  # those that know the new settings, the others


@pytest.mark.skipif(not is_root(), reason="only root can ask as another user")
def test_another_user_is_not_answered_even_where_the_socket_could_be_reached() -> None:
    assert starting.start()
    ready()
    # A file system may not keep the modes that keep others out.
    place = Path(address.socket_path())
    place.parent.chmod(0o755)
    place.chmod(0o666)

    def become() -> None:
        os.chdir(place.parent)  # nobody cannot walk there
        become_nobody()

    def answer() -> bytes:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(10)
            try:
                line.connect(place.name)
                return line.recv(100)
            except ConnectionError:
                return b""

    assert in_child(become, answer) == b""
    assert client.ask({"op": "status"}) is not None


def test_a_request_leaves_a_damaged_index_to_others(tmp_path: Path) -> None:
    from mdmem.warm.answers import Answers

    store = make_store(tmp_path / "store")
    add_note(store, "memories/pg.md", "Billing runs on PostgreSQL 16.", type="decision", title="Billing")
    index(store)
    answers = Answers()
    request = {"op": "prompt", "root": str(store), "prompt": "which PostgreSQL does billing run on?", "scope": "shared"}
    assert "PostgreSQL 16" in answers.answer(request)["text"]
    (held,) = answers.held.values()
    assert not held.store.index.rebuilds
    wait_until(lambda: not held.looking)
    held.looked = time.monotonic() + 1000  # the look afterwards is not what is tried here
    held.store.close()
    catalog = store / ".git" / "mdmem" / "catalog.db"
    for name in ("catalog.db-wal", "catalog.db-shm"):
        catalog.with_name(name).unlink(missing_ok=True)
    catalog.write_bytes(b"damaged" * 1000)
    answer = answers.answer(request)
    # An empty one stands there now; to read all notes into it is the worker's work.
    with sqlite3.connect(catalog) as connection:
        assert not answer.get("text") and connection.execute("SELECT count(*) FROM notes").fetchone() == (0,)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_what_a_large_store_took_for_a_moment_is_given_back() -> None:
    code = """
        import ctypes, sys, threading; from pathlib import Path
        from mdmem.warm import memory
        if not hasattr(ctypes.CDLL(None), "malloc_trim"):
            sys.exit()
        memory.sparing()
        kept = []
        def work():
            b"x" * 9_000_000  # the C library maps no block of this size any more unless it is told to
            some = [b"x" * (5_000_000 + number) for number in range(10)]
            kept.append(b"x" * 200_000)
        def held():
            return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024
        before = held()
        for _ in range(6):
            thread = threading.Thread(target=work); thread.start(); thread.join()
        assert held() - before < 20, held() - before
        kept += [b"x" * (100_000 + n) for n in range(300)]
        del kept[6:-1]
        memory.trim()
        assert held() - before < 20, held() - before
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=TOP, check=True, timeout=60)


def test_the_warm_process_tells_the_c_library_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(memory, "sparing", lambda: told.append(threading.active_count()))
    thread = threading.Thread(target=lambda: server.serve(idle=0.1))
    before = threading.active_count()
    thread.start()
    thread.join(20)
    assert told == [before + 1]


def test_memory_that_is_had_again_is_given_back_only_when_nobody_asks() -> None:
    rested: list[int] = []
    made = server.Server(lambda request: {}, lambda: None, rest=lambda: rested.append(1))
    made._settle(quiet=True)
    assert not rested  # nothing was asked since
    made._reply(b'{"op": "recall"}')
    made._settle(quiet=False)
    assert not rested
    made._settle(quiet=True)
    made._settle(quiet=True)
    assert rested == [1]


def test_the_warm_process_lets_the_vectors_of_all_its_stores_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mdmem.index.vectors import Vectors
    from mdmem.warm.answers import Answers

    monkeypatch.delenv("MDMEM_EMBEDDING_BACKEND")
    store = make_store(tmp_path / "store")
    add_note(store, "memories/pg.md", "Billing runs on PostgreSQL 16.", type="decision", title="Billing")
    index(store)
    answers = Answers()
    answers.answer({"op": "warm", "root": str(store), "agent": "a"})
    (held,) = answers.held.values()
    wait_until(lambda: not held.looking)
    held.store.index.refresh(embed_budget_s=None)
    assert held.store.index.vector_search("billing")
    rested: list[int] = []
    monkeypatch.setattr(Vectors, "rest", lambda self: rested.append(len(self)))
    answers.rest()
    assert rested == [1]


def test_settings_that_the_index_does_not_know_make_no_second_one(tmp_path: Path) -> None:
    from mdmem.warm.answers import Answers

    store = make_store(tmp_path / "store")
    add_note(store, "memories/pg.md", "Billing runs on PostgreSQL 16.", type="decision", title="Billing")
    index(store)
    answers = Answers()
    chosen = ({"serve": "off"}, {"serve": "auto", "recall.limit": 3, "agent": "b"}, {"index.engine": "tantivy"})
    for options in chosen:
        asked = {"op": "prompt", "root": str(store), "prompt": "which PostgreSQL does billing run on?", "scope": "shared"}
        answers.answer({**asked, "options": options})
    first, second, third = (held.store for held in answers.held.values())
    assert first.index is second.index and second.config.get("recall.limit") == 3
    assert third.index is not first.index
