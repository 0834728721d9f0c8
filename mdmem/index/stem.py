"""Porter's second stemmer (snowballstem.org/algorithms/english) as Whoosh has it, with the steps left out that cannot apply.

Whoosh tries some sixty endings one by one on each word; most words have none of them, which one call tells."""

from __future__ import annotations

from whoosh.lang import porter2

_ONE_A = ("s", "ied")
_ONE_B = ("eed", "eedly", *porter2.s1b_suffixes)
_TWO = tuple(end for end, _, _ in porter2.s2_triples)
_THREE = tuple(end for end, _, _ in porter2.s3_triples)
_FOUR = (*porter2.s4_delete_list, "sion", "tion")


def stem(word: str) -> str:
    """Return the stem of a word of lower-case ASCII letters: exactly what whoosh.lang.porter2.stem returns for it."""
    if len(word) <= 2:
        return word
    if word in porter2.exceptional_forms:
        return str(porter2.exceptional_forms[word])
    if "y" in word:
        word = porter2.capitalize_consonant_ys(word)
    first = porter2.get_r1(word)
    match = porter2.r_exp.match(word, first)
    second = match.start(1) if match else len(word)
    if word.endswith(_ONE_A):
        word = porter2.step_1a(word)
    if word in porter2.exceptional_early_exit_post_1a:
        return word
    if word.endswith(_ONE_B):
        word = porter2.step_1b(word, first)
    if word.endswith(("y", "Y")):
        word = porter2.step_1c(word)
    if word.endswith(_TWO):
        word = porter2.step_2(word, first)
    if word.endswith(_THREE):
        word = porter2.step_3(word, first, second)
    if word.endswith(_FOUR):
        word = porter2.step_4(word, second)
    if word.endswith(("l", "e")):
        word = porter2.step_5(word, first, second)
    return word.replace("Y", "y")
