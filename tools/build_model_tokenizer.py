"""The vocabulary: which pieces stay, and the tokenizer in the form of the tokenizers package."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from build_model_weights import Source
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
# ASCII, punctuation, symbols, CJK ideographs and full-width forms.
KEPT = re.compile(
    "^[\u2581\u0020-\u007e\u00a0-\u00bf\u2000-\u206f\u20a0-\u20bf\u2100-\u214f\u2190-\u21ff\u2200-\u22ff\u2460-\u24ff"
    "\u2500-\u25ff\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef]+$"
)


def kept_pieces(pieces: list[str], everything: bool = False) -> np.ndarray:
    """Return the indices of the pieces that stay: English and Chinese, or all."""
    if everything:
        return np.arange(len(pieces))
    special = len(SPECIAL)
    return np.array([*range(special), *(i for i in range(special, len(pieces)) if KEPT.match(pieces[i]))])


def write_tokenizer(source: Source, keep: np.ndarray, path: Path) -> None:
    """Write tokenizer.json: NFKC, white space to one blank, a Unigram model over the kept pieces."""
    vocabulary = [(source.pieces[i], float(source.scores[i])) for i in keep]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=source.special["unk"], byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"[\n\r\t]"), " "), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace()
    marks = [("<s>", source.special["bos"]), ("</s>", source.special["eos"])]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=marks)
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in SPECIAL])
    tokenizer.save(str(path), pretty=False)
