"""What kind of question it is, and which stream then deserves more trust. Pure; English and Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A name that code gives: snake_case, camelCase, dotted.path, a/path.py, --option, v1.2.3, a hash, CODE-123.
_IDENTIFIER = re.compile(
    r"""(?<![\w-])(?:
      [A-Za-z]\w*_\w+ | [a-z]+[A-Z]\w* | [A-Z][a-z0-9]+[A-Z]\w* | \w+(?:\.[A-Za-z_]\w*){2,} | \w+\.[a-z]{1,4}(?=$|[\s)?,;:])
      | \w+::\w+ | \w+\(\) | (?:[\w.-]*/)+[\w.-]+ | --?[a-z][\w-]+ | v?\d+\.\d+(?:\.\d+)+
      | (?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40} | [A-Z]{2,}[-_]?\d+ | [A-Z]+(?:_[A-Z0-9]+)+
    )(?![\w-])""",
    re.VERBOSE,
)
_QUOTED = re.compile(r"`[^`]+`")
_RECENT = re.compile(
    r"\b(?:latest|newest|recent(?:ly)?|last|current(?:ly)?|now|today|these days)\b|最近|最新|目前|现在|当前|刚才|上次|这次",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:when|what (?:date|day|year|month)|how long ago|since when)\b|什么时候|何时|哪一?[天年月]|几[月号点]", re.IGNORECASE
)
_ASKED = re.compile(
    r"[?？]\s*$|^\s*(?:what|when|where|which|who|whose|whom|why|how|is|are|do|does|did|can|could|should|was|were|has|have)\b"
    r"|[吗呢]\s*[?？。]?\s*$|什么|怎么|怎样|如何|为什么|为何|哪|谁|多少|几|是否|能不能",
    re.IGNORECASE,
)

# To the share of the words in the sum (prior art: 0.15 moved to BM25 for a lookup).
IDENTIFIER_WORDS = 0.15
# The decay window shrinks to this part where the newest is asked for (prior art: recency ×2).
RECENT_WINDOW = 0.5


@dataclass(frozen=True)
class Route:
    """The kind of a question (identifier, temporal, question, keywords) and what follows from it."""

    kind: str
    words: float = 0.0  # added to the share of the words
    window: float = 1.0  # factor of the decay window


def route(text: str, dated: bool = False) -> Route:
    """Return the route of a question; `dated`: it names a day or a period."""
    if _QUOTED.search(text) or _IDENTIFIER.search(text):
        return Route("identifier", words=IDENTIFIER_WORDS)
    if _RECENT.search(text) and not dated:
        return Route("temporal", window=RECENT_WINDOW)
    if dated or _TIME.search(text):
        return Route("temporal")
    return Route("question" if _ASKED.search(text) else "keywords")
