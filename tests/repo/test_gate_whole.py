"""The last gate looks at the whole of a file, however long."""

from __future__ import annotations

from mdmem.notes.redact import scan
from mdmem.repo.gate import findings


def test_a_secret_behind_megabytes_of_text_is_found() -> None:
    data = b"plain words of prose\n" * 250_000 + b"key ghp_" + b"a1B2" * 9 + b"\n"
    held = findings(data, "big.md", scan)
    assert [(found.path, found.line) for found in held] == [("big.md", 250_001)]
