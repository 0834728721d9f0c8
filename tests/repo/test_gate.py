"""The gate before a push: every unpushed text is scanned, what the remote knows already is not held against us."""

from __future__ import annotations

import pytest

from mdmem.notes.redact import scan
from mdmem.repo.gate import GateFailed, findings, unpushed_findings

from .conftest import Clone, World
from .test_sync import note

KEY = "AKIA" + "Z7QX4MPL2VTRW9KD"


def unpushed(clone: Clone, **options: object) -> list[tuple[str, int]]:
    tip = clone.sh("rev-parse", "refs/remotes/origin/main").strip()
    found = unpushed_findings(clone.git, clone.sh("rev-parse", "HEAD").strip(), [tip], scan, **options)  # type: ignore[arg-type]
    return [(held.path, held.line) for held in found]


def test_files_history_and_messages_are_scanned(world: World) -> None:
    one, _ = world.pair()
    assert unpushed(one) == []
    one.save("b.md", f"fine\nkey {KEY}\n")
    one.save("b.md", "fine\n")
    assert unpushed(one) == [("b.md", 2)]
    assert unpushed(one, allowed=frozenset(["b.md"])) == []
    one.sh("commit", "-q", "--allow-empty", "-m", f"oops {KEY}")
    assert [path for path, _ in unpushed(one)][1].startswith("message of commit ")
    assert KEY not in repr(unpushed(one))


def test_only_own_paths_count_in_a_code_repository(world: World) -> None:
    one, _ = world.pair({"memories/a.md": note("mem-a")})
    one.write("fixtures/key.txt", f"{KEY}\n")
    one.sh("add", ".")
    one.sh("commit", "-qm", "fixture")
    assert unpushed(one, roots=("memories",)) == []
    one.save("memories/b.md", f"{KEY}\n")
    assert unpushed(one, roots=("memories",)) == [("memories/b.md", 1)]


def test_a_line_that_the_remote_has_is_known(world: World) -> None:
    one, two = world.pair({"a.md": f"one\n\nkey {KEY}\n\ntwo\n"})
    one.save("a.md", f"ONE\n\nkey {KEY}\n\ntwo\n")
    assert unpushed(one) == []
    two.save("a.md", f"one\n\nkey {KEY}\n\nTWO\n")
    one.sync()
    assert two.sync(scan=scan).pushed == 2
    one.sync()
    one.save("a.md", f"ONE\n\nkey {KEY}X\n\nTWO\n" + f"second {KEY}\n")
    assert ("a.md", 6) in unpushed(one)


def test_binary_files_pass_and_a_broken_scan_does_not(world: World) -> None:
    assert findings(b"\0" + KEY.encode(), "x.png", scan) == []

    def broken(text: str) -> list[object]:
        raise RuntimeError(text)

    with pytest.raises(GateFailed) as caught:
        findings(b"some s3cr3t text", "a.md", broken)  # type: ignore[arg-type]
    assert "s3cr3t" not in str(caught.value)
    one, _ = world.pair()
    with pytest.raises(GateFailed):
        unpushed_findings(one.git, "0" * 40, [], scan)


def test_what_cannot_be_looked_at_stops_the_push_by_name(world: World) -> None:
    one, _ = world.pair()
    one.save("b.md", "words\n")
    oid = one.sh("rev-parse", "HEAD:b.md").strip()
    for loose in (one.top / ".git" / "objects" / oid[:2]).glob("*"):
        loose.unlink()
    with pytest.raises(GateFailed, match="failed") as caught:
        unpushed(one)
    assert caught.value.why
    with pytest.raises(GateFailed, match="failed") as caught:
        unpushed_findings(one.git, "--all", [], scan)
    assert "dash" in caught.value.why
