"""Two languages in one store: which of two scripts a text is in, and what evens out a model's liking for its own language.

Where the means of questions and passages in general are known (`Common`), they are taken off. Else the store's own must do:

A multilingual model puts texts of one language near each other, so that a Chinese question is nearer to any Chinese note
than to the English one that answers it. Of each question, the cosines to the windows of the other language are therefore
moved and stretched to the mean and spread of those of its own (z-scores matched between the groups)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Of the CJK characters and other words of a text, the share of the former from which on it counts as CJK.
WIDE = 0.3
SAMPLE = 2000  # windows of each group that mean and spread are taken from
DOUBT = 0.5  # windows of the smaller group at which half is believed, beyond the first
NARROWEST, WIDEST = 0.6, 1.7  # of the stretch
# Of what all questions have in common, what is taken off each: all of it would also take off what a question says by being one.
SHARED = 0.5
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=1)
def _cjk() -> re.Pattern[str]:
    """Return the pattern of a CJK character; compiled when a text may hold one: it takes a fifth of a bare start."""
    return re.compile("[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af]")


def wide(text: str) -> bool:
    """Tell whether a text is in a CJK script; Latin and all others count as one language."""
    if text.isascii():
        return False
    rest, characters = _cjk().subn(" ", text)
    if not characters:
        return False
    return characters > WIDE * (characters + len(_WORD.findall(rest)))


@dataclass(frozen=True)
class Common:
    """What all questions and what all passages have in common, by script: {in a CJK script: mean vector, float32 [dims]}."""

    questions: dict[bool, Any]
    passages: dict[bool, Any]

    def turned(self, question: Any, asked: bool, even: bool = True, named: Any = None) -> tuple[Any, Shift]:
        """Return (a question's vector less SHARED of what all questions in its script have in common, what makes its products
        with windows comparable). `even`: also take off what it has with all passages of a script; `named`: a vector to add."""
        import numpy as np

        vector = np.asarray(question, np.float64) - SHARED * self.questions[asked].astype(np.float64)
        if named is not None:
            vector = vector + named
        off = {script: round(float(vector @ mean.astype(np.float64)), 4) for script, mean in self.passages.items()}
        return vector.astype(np.float32), Shift(asked, off if even else dict.fromkeys(off, 0.0))


@dataclass(frozen=True)
class Shift:
    """What a turned question's products with windows are made comparable with; `asked`: whether it is in a CJK script."""

    asked: bool
    off: dict[bool, float]

    def near(self, product: float, written: bool) -> float:
        """Return the comparable product of a window; `written`: whether it is in a CJK script."""
        return product - self.off[written]


@dataclass(frozen=True)
class Level:
    """What a question's cosines are made comparable with; `asked`: whether the question is in a CJK script."""

    asked: bool
    own: float
    other: float
    stretch: float
    trust: float

    def near(self, cosine: float, written: bool) -> float:
        """Return the comparable cosine of a window; `written`: whether it is in a CJK script."""
        if written == self.asked:
            return cosine
        evened = self.own + (cosine - self.other) * self.stretch
        return cosine + self.trust * (evened - cosine)


def level(asked: bool, own: NDArray[Any], other: NDArray[Any]) -> Level | None:
    """Return what evens the cosines to windows of the two languages out, None when either has hardly any.

    The nearest one of each group is left out where there are others: in a small store it is the answer, not the language.
    Where one group is small, less is done. Rounded, so that the order of the sums moves nothing."""
    least = min(len(own), len(other))
    if least < 2:
        return None
    (mean, spread), (mean_other, spread_other) = _moments(own), _moments(other)
    stretch = min(WIDEST, max(NARROWEST, spread / max(spread_other, 1e-6)))
    trust = (least - 1) / (least - 1 + DOUBT)
    return Level(asked, round(mean, 4), round(mean_other, 4), round(stretch, 3), trust)


def _moments(cosines: NDArray[Any]) -> tuple[float, float]:
    import numpy as np

    kept = np.sort(cosines.astype(np.float64))
    kept = kept[:-1] if len(kept) > 2 else kept
    return float(kept.mean()), float(kept.std())
