"""What questions have in common, as a direction among the bundled model's vectors (tools/build_usual_question.py makes it)."""

from __future__ import annotations

import base64
from typing import Any

MODEL, DIMS = "multilingual-e5-small-q4-enzh", 384
STEP = 0.0008  # what one step of the bytes below is worth
_BYTES = (
    "RNu+fP{<c5PWwa;M$O7HSk~&9B?7raM?KIKNu$KdH@QeQ$K6WG<SR2vDM;Qs&F0iPHY_W*xw5WCK;arDOe#D+y6ez64%8GCEY=ykqs-tbzC1j{",
    "SoT9m(7&L+-YiexPS7E$#WOFoI>O9CP(rZI`nWvNIn%($#KI#!7!V^F4k<QRvH0%s+Aqd4L_T2BNWC1}P&pvj(Z*0e!NIN8u+cU_!rRv{xHJPm",
    "*C$~=+3LW!uEoeB5ccLg&(PK;vP3aD?$H|<E(f<Syf`<c!Bf=a{XEevF7_XV%Q!g2<37jH#G%Hl>o6&#(9I*HKgif7=_x&=$*bT*HDJdn2JK=*",
    "G8VPs!so0cLcq$>D16%0P(LJEDAUeD(BJddQ0F@w1Wm&*)#Du{nJ^I?89q-i(cC3G_Z_**v(n$VH!8Z!KO+;@w@ky_#74=tAxYLU*})Rq!7(<7",
    "A~e%7*Tyt5sMItnMkw<DA+JY1zy{#i%SOt|EK?;x",
)


def usual_question(embedder: Any) -> Any:
    """Return float64 [dims], the mean vector of questions of all kinds; None for a model that it is not known of."""
    if getattr(getattr(embedder, "model", None), "name", "") != MODEL or embedder.dims != DIMS:
        return None
    import numpy as np

    return np.frombuffer(base64.b85decode("".join(_BYTES)), np.int8).astype(np.float64) * STEP
