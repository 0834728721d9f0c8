"""`He`, `it`, 他, 它 at the head of a sentence, put into words: what the sentence before it in the same turn is about. Pure.

Only where one answer is plain: a single person named before, or the subject of the sentence before. `That`, `this`, 这个 and
那个 are left alone: as often as a thing they mean what was just said. What cannot be resolved stays as it was said.
"""

from __future__ import annotations

import re

from mdmem.learn.statement import read

_PERSON = re.compile(r"^(he|she)(?='s\b|'ll\b|\s+[a-z])|^([他她])(?![们的])", re.IGNORECASE)
_THING = re.compile(r"^(it)(?='s\b|'ll\b|\s+[a-z])|^(它)(?![们的])", re.IGNORECASE)
# `It` that means nothing: it is important to …, it seems that …
_EMPTY = re.compile(
    r"^it(?:'s| is| was| would be| will be)?\s+(?:seems?|looks? like|appears?|depends|turns? out|takes?|(?:been|a|the|all|"
    r"just|about|"
    r"time|up to|too|very|so|not|worth|better|best|easy|hard|important|possible|impossible|necessary|clear|likely|fine|ok|okay|"
    r"good|great|nice|bad|true|because|\w+ (?:to|that)))\b",
    re.IGNORECASE,
)
# The subject: an article and up to five words before the first verb of the sentence.
_SUBJECT = re.compile(
    r"^(?:and |so |also |now )*((?i:the|our|my|your)\s+(?:[\w./-]+\s+){0,4}?[\w./-]+|[A-Z][\w./-]*(?:\s+[A-Z][\w./-]*){0,2})"
    r"\s+(?:now\s+|always\s+|only\s+)?(?:is|was|has|runs|listens|lives|uses|needs|must|should|will|can|gets|goes|keeps|stores|holds|"
    r"reads|writes|sends|serves|takes|belongs|stays|sits|depends|talks|comes|handles|works|starts|builds|deploys|owns)\b"
)
_SUBJECT_ZH = re.compile(
    r"^(?:现在|目前|我们的)?([\w\u4e00-\u9fff ./-]{2,14}?)(?:现在|目前|都|只|一直)?"
    r"(?:是|用|跑在|放在|部署在|运行在|监听|在|由|必须|需要|每|存在|走|归|叫)"
)
# Two named together, and one at the head of a sentence whom a verb of people shows.
_SEVERAL = re.compile(r"\b[A-Z][a-z]+(?:,| and| or) [A-Z][a-z]+")
_OPENING = re.compile(r"^([A-Z][a-z]+) (?:joined|left|became|wrote|said|asked|told|knows|wants|likes|manages|took)\b")
_PRONOUN = frozenset(("he", "she", "it", "they", "we", "you", "that", "this", "there", "i", "nobody", "somebody", "everybody"))
# Chinese family names that open a person's name; with 小, 老 or 阿 before or alone.
_NAME_ZH = re.compile(
    r"(?:小|老|阿)[\u4e00-\u9fff](?![\u4e00-\u9fff]*(?:组|时|版))|"
    r"(?<![\u4e00-\u9fff])(?:王|李|张|刘|陈|杨|黄|赵|周|吴|徐|孙|马|朱|胡|郭|何|林|高|罗)[\u4e00-\u9fff]{1,2}"
    r"(?=是|负责|在|管|说|来|也|和|接|写|做|会)"
)


def referred(sentence: str, before: str) -> str:
    """Return a sentence with the pronoun at its head replaced by what the sentence before it names, else as it is."""
    person, thing = _PERSON.match(sentence), _THING.match(sentence)
    match = person or thing
    if match is None or not before or before.rstrip().endswith(("?", "？")):
        return sentence
    name = _person(before) if person is not None else "" if _EMPTY.match(sentence) else _subject(before)
    if not name:
        return sentence
    rest = sentence[match.end() :]
    rest = re.sub(r"^'s\b", " has" if re.match(r"'s\s+(?:been|had|got)\b", rest) else " is", rest)
    rest = re.sub(r"^'ll\b", " will", rest)
    return f"{name}{rest}" if rest[:1] == " " or not name[-1].isascii() or not rest[:1].isascii() else f"{name} {rest}"


def _person(before: str) -> str:
    """Return the one person that a sentence names, '' for none and for several."""
    from mdmem.learn.statement import known_names

    chinese = list(dict.fromkeys(match[0] for match in _NAME_ZH.finditer(before)))
    if chinese:
        return chinese[0] if len(chinese) == 1 else ""
    if _SEVERAL.search(before):
        return ""
    names = set(read(before).names)
    if (opening := _OPENING.match(before)) and opening[1].lower() not in _PRONOUN:
        names.add(opening[1].lower())
    found = []
    for word in dict.fromkeys(re.findall(r"(?<!\bin )(?<!\bat )(?<!\bnear )(?<!\bfrom )\b[A-Z][a-z]+", before)):
        if word.lower() in names and word.lower() not in known_names() and word.lower() not in _PRONOUN:
            found.append(word)
    return found[0] if len(found) == 1 and len(names) == 1 else ""


def _subject(before: str) -> str:
    """Return the subject of a sentence, '' where it is none that a thing could be named by."""
    match = _SUBJECT.match(before) or _SUBJECT_ZH.match(before)
    if match is None:
        return ""
    subject = match[1].strip()
    words = subject.lower().split()
    if not words or words[0] in _PRONOUN or words[-1] in ("team", "user", "users", "one") or _NAME_ZH.search(subject):
        return ""
    if "and" in words or re.search(r"[和与及、]", subject):
        return ""  # of two things it is not said which one
    if words[0] in ("the", "our", "my", "your"):
        return subject[:1].upper() + subject[1:]
    # A single capitalised word that opens a sentence may be any word; a name of a program or an odd spelling is none.
    statement = read(before)
    if subject[0].isascii():
        known = all(word in statement.names for word in words)
        return subject if known and not _person(before) else ""
    return subject if not re.search(r"[我你他她它这那]", subject) else ""
