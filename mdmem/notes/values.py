"""What a frontmatter value is, and what can be wrong with one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

# As read: every scalar is the string that stands in the file.
Value: TypeAlias = "str | list[Value] | dict[str, Value]"
# As given by a caller: the same, but any sequence and any mapping will do.
Given: TypeAlias = "str | Sequence[Given] | Mapping[str, Given]"

MAX_BLOCK = 64 * 1024  # bytes
MAX_DEPTH = 32  # levels of nesting

# Characters that neither a block nor a value may hold: they are invisible, break lines in one
# reader and not in another, or cannot be encoded. Tab and the two line-end characters are fine.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")

# Codes of findings that are worth saying and stop nothing; every other finding of this room is an error.
WARNINGS = frozenset(
    ("comment_in_value", "late_block", "conflict_markers", "cut", "large", "unreadable", "unreadable_folder")
    + ("nested_repository", "symlink", "folder_named_md", "special_file")
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding: stable code, one sentence, and the 1-based line of the file when it has one."""

    code: str
    message: str
    line: int | None = None


class BadBlock(Exception):
    """Raised inside notes/ only: why a block cannot be read, and the 1-based line within the block."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def clean(text: str) -> str:
    """Return text with the characters that no value may hold taken out (a line or paragraph separator becomes a space)."""
    return FORBIDDEN.sub(lambda found: " " if found[0] in "\x0b\x0c\x85\u2028\u2029" else "", text)


