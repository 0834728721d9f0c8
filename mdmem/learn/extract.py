"""From the turns of a session to what is worth keeping, by rules for English and Chinese. Pure: no disk, no store.

A sentence is kept when it says something that will still matter: it states, decides, prefers or explains. Questions, requests
of the moment, what-ifs, acknowledgements and pasted material are not. What an assistant says is never a user's preference:
of it only causes with their fixes are kept, and a proposal that the user then agrees to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from mdmem.learn.categories import Category, Rules
from mdmem.learn.dates import dated
from mdmem.learn.refer import referred
from mdmem.learn.statement import read, slot_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem.memory.session_record import Turn

# Characters of a sentence, and the fewest terms that it must have.
SHORTEST, LONGEST, TERMS = 6, 400, 2
# Turns between a cause and its fix that still belong together.
EPISODE = 8

_SENTENCES = re.compile(r"(?<=[.!?])(?<!\bMs\.)(?<!\bMr\.)(?<!\bDr\.)(?<!\be\.g\.)(?<!\bi\.e\.)\s+(?=\S)|(?<=[。！？；])|\n+")
_FENCE = re.compile(r"^(```|~~~).*?(?:^\1\s*$|\Z)", re.DOTALL | re.MULTILINE)
_LEAD = re.compile(
    r"^(?:(?:ok(?:ay)?|right|yes|no|yeah|yep|well|good|great|nice|perfect|cool|fine|sure|thanks|also|and|but|so|oh|"
    r"btw|by the way|"
    r"fyi|one more thing|for the record|actually|additionally|hm+|wait|done|fixed|reproduced|agreed|"
    r"understood)\s*[,.:!—-]+\s*|"
    r"(?:and|also|so|but)\s+|(?:好的?|对|嗯|行|可以|没错|是的|另外|还有|首先|其次|然后|顺便说一下|顺便|那么?|不过|总之|明白|收到)\s*[,，:：.。!！、]\s*)+",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"^(?:please )?(?:remember|note|keep in mind|write down|don't forget|make a note|for your information|reminder|"
    r"for next time|"
    r"rule of thumb|important|one rule)\b(?: (?:that|this))?\s*[:,]?\s*"
    r"|^(?:请)?(?:还有一条规矩|记住|记下|记一下|牢记|备忘|注意)\s*[:：,，]?\s*",
    re.IGNORECASE,
)
_TAIL = re.compile(r",?\s*(?:by the way|btw|please|ok\?|顺便说一下)\s*(?=[.。]?$)|\s*,?\s*by the way(?=,)", re.IGNORECASE)
_QUESTION = re.compile(
    r"[?？]\s*$|^(?:what|who|whom|whose|when|where|why|how|which|is|are|was|were|do|does|did|can|could|should|would|"
    r"will|shall|may|has|"
    r"have|any idea)\b(?! (?:happens? is|matters is))|吗\s*[。.]?$|呢\s*[。.]?$"
    r"|^(?:为什么|怎么|如何|什么|哪|谁|能不能|可不可以|是不是|有没有)",
    re.IGNORECASE,
)
_WHAT_IF = re.compile(
    r"\b(?:what if|imagine|suppose|hypothetical(?:ly)?|maybe|perhaps|might|could (?:we|be|use|try|also)|should we|"
    r"would (?:it|that|be)|if (?:we|i|you) |"
    r"some ?day|one day|pretend|let's say|for example|e\.g\.|i (?:think|guess|wonder|suppose|suspect|assume)|not sure|"
    r"probably|you may|i'm afraid|"
    r"in (?:the|a) (?:story|novel|game|movie)|once upon)\b"
    r"|如果|假如|假设|要是|也许|可能|或许|要不要|能不能|万一|比如|设想|我猜|我觉得|大概|故事里|小说里",
    re.IGNORECASE,
)
_DURABLE = re.compile(
    r"\b(?:always|never|every(?:where)?|each|from now on|in general|whenever|must|all new|for all|in all|any time|"
    r"instead of|let'?s)\b"
    r"|以后|今后|每次|一律|统一|始终|总是|永远|都用|必须|不要在|都要|决定|不要再",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^(?:please |now |then |can you |could you |just )*(?:fix|add|run|write|make|create|rename|remove|delete|update|"
    r"check|look|find|show|tell|"
    r"explain|implement|refactor|commit|push|set|open|read|try|build|deploy|help|give|list|print|move|change|convert|"
    r"generate|install|"
    r"test|review|search|start|stop|restart|merge|rebase|revert|undo|clean|format|summari[sz]e|translate|describe|compare|"
    r"investigate|debug|use|put|go|do|let me|take|bump|extract|split|replace|draft|have a look|prepare|compute|count|"
    r"ignore|skip|"
    r"wait|continue|reproduce|leave|ask|send|call|copy|download|upload|close|reply|mark|see|turn|switch|drop|keep|document)\b"
    r"|^(?:请|麻烦)?(?:你)?(?:帮我|帮忙|看看|看一下|查一下|查查|试试|跑一下|运行|写一个|写个|加一个|加个|建一个|修一下|改一下|删掉|"
    r"解释|翻译|总结|列出|生成|检查|打开|搜索|继续|重试|先不|我们讨论|讨论)"
    r"|^(?:那就)?把",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"\b(?:fail(?:s|ed|ing)?|broken|wrong|diverges?|resets?|hangs?|crash\w*|slow|worse|errors?|weird|odd|seems?|"
    r"feels?|looks? (?:odd|good|"
    r"fine|like)|doesn'?t work|not working|stuck|bug|last year|I (?:want|need) to|before we)\b"
    r"|不对|报错|失败|太(?:慢|大|小|多|少)|偶尔|超时|不工作|有问题|好多了|没反应|我记得|够的",
    re.IGNORECASE,
)
_AGREED = re.compile(
    r"^(?:yes|yep|yeah|ok(?:ay)?|sure|agreed|sounds good|good idea|let'?s do (?:that|it)|do (?:it|that)|go ahead|"
    r"perfect|exactly|"
    r"好|可以|行|同意|就这样|就这么(?:定|办)|没问题|对)(?![a-z])[\s\S]{0,60}$",
    re.IGNORECASE,
)
_PROPOSED = re.compile(
    r"\b(?:I(?:'d| would)? (?:suggest|recommend|propose)|my (?:suggestion|proposal|recommendation) is|how about|"
    r"shall (?:we|I) use|"
    r"we (?:should|could) (?:use|go with|switch|keep|move))\b|我建议|建议(?:用|使用|采用|改)|不如(?:用|改)|推荐(?:用|使用)",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"^.*?\b(?:I(?:'d| would)? (?:suggest|recommend|propose)(?: that)?(?: we)?|my \w+ is(?: to)?|how about|"
    r"shall (?:we|I)|we (?:should|could))\s+"
    r"|^.*?(?:我?建议|不如|推荐)\s*",
    re.IGNORECASE,
)


@dataclass
class Candidate:
    """Something that may be kept. `lines`: first and last line of its turns; `who` said it; `told`: asked to be remembered."""

    text: str
    category: str
    type: str
    who: str
    lines: tuple[int, int]
    at: datetime
    confidence: float
    importance: float
    said: str = ""
    why: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    told: bool = False


@dataclass(frozen=True)
class Judged:
    """One sentence and what was made of it: `kept` with the category, or `skipped` with the reason."""

    line: int
    who: str
    text: str
    outcome: str
    why: str


def extract(turns: Iterable[Turn], rules: Rules, limit: int, min_messages: int = 0) -> tuple[list[Candidate], list[Judged]]:
    """Return (what is worth keeping in the order it was said, what was made of each sentence).

    At most `limit` candidates: the weightiest. A session of fewer than `min_messages` turns of people and assistants gives only
    what it was told to keep."""
    talk = [turn for turn in turns if turn.who in ("user", "assistant") and not turn.agent]
    found: list[Candidate] = []
    judged: list[Judged] = []
    for number, turn in enumerate(talk):
        following = talk[number + 1] if number + 1 < len(talk) else None
        before = ""
        for sentence in sentences(turn.text):
            told = referred(_LEAD.sub("", sentence), _LEAD.sub("", before)) if before else sentence
            candidate, why = judge(told, turn, rules, following)
            before = told
            if candidate is not None and len(talk) < min_messages and not candidate.told:
                candidate, why = None, f"a session of fewer than {min_messages} messages"
            if candidate is None:
                judged.append(Judged(turn.line, turn.who, sentence[:200], "skipped", why))
                continue
            found.append(candidate)
            judged.append(Judged(turn.line, turn.who, sentence[:200], "kept", candidate.category))
    found = _episodes(_once(found), talk)
    best = sorted(range(len(found)), key=lambda n: (-found[n].told, -found[n].importance * found[n].confidence, n))[:limit]
    dropped = [found[n] for n in range(len(found)) if n not in set(best)]
    judged += [Judged(c.lines[0], c.who, c.text[:200], "skipped", f"beyond {limit} a session") for c in dropped]
    return [found[n] for n in sorted(best)], judged


def sentences(text: str) -> list[str]:
    """Return the sentences of a turn that are prose: code blocks, quoted and listed material left out."""
    from mdmem.memory.prompts import without_tagged

    plain = without_tagged(_FENCE.sub("\n", text))
    out = []
    for part in _SENTENCES.split(plain):
        part = part.strip()
        if part.startswith((">", "|", "    ", "\t")):
            continue
        part = re.sub(r"^(?:[-*+•]|\d{1,2}[.)])\s+", "", part).strip(" *_\t")
        if part:
            out.append(part)
    return out


def judge(sentence: str, turn: Turn, rules: Rules, following: Turn | None = None) -> tuple[Candidate | None, str]:
    """Return (candidate or None, why)."""
    text = _LEAD.sub("", sentence).strip()
    told = turn.who == "user" and _TOLD.match(text) is not None
    text = _TAIL.sub("", _TOLD.sub("", text) if told else text).strip(" ,，;；")
    if _QUESTION.search(text):
        return None, "a question"
    if len(text) < SHORTEST or len(read(text).terms) < TERMS:
        return None, "too short to say anything"
    if len(text) > LONGEST:
        return None, "too long for one statement"
    if any(pattern.search(text) for pattern in rules.noise):
        return None, "noise"
    if turn.who == "assistant":
        return _from_assistant(text, turn, rules, following)
    if _WHAT_IF.search(text) and not told:
        return None, "a what-if"
    if re.search(r"\bI (?:want|need|would like) to (?:understand|know|see|find|check|look|do|try|go)\b", text, re.IGNORECASE):
        return None, "a request of the moment"
    if _REQUEST.match(text) and not told and not _DURABLE.search(text):
        return None, "a request of the moment"
    category = rules.of(text, turn.who)
    if category is None and not _REPORT.search(text):
        category = _by_form(text, rules)
    if category is None:
        if not told:
            return None, "nothing that will matter later"
        category = rules.named("entity") or rules.categories[-1]
    if category.name == "entity" and not told:
        if _REPORT.search(text):
            return None, "a report of what is wrong now"
        if not _says_a_value(text):
            return None, "a remark without a value"
    return _candidate(text, category, turn, told), ""


_WE = re.compile(
    r"^we (?!were|had|did|saw|got|have been|need|could|should|might|can|just|tried|found|want)[a-z]+(?<!ed)\b", re.IGNORECASE
)


def _by_form(text: str, rules: Rules) -> Category | None:
    """Return the category of a statement by its form alone: it says that something changed, or what is done or used here."""
    statement = read(text)
    if not statement.values:
        return None
    if statement.changes and (statement.dropped or statement.slot):
        return rules.named("decision")
    if _WE.match(text) or re.match(r".{2,12}用\s*[A-Za-z]|每(?:周|天|月|日|年)|.{2,16}(?:至少|至多|最多|最少|需要)", text):
        return rules.named("decision")
    return rules.named("entity") if statement.slot is not None and slot_text(text) else None


def reports(text: str) -> bool:
    """Tell whether a sentence says what is wrong just now."""
    return _REPORT.search(text) is not None


def of_the_moment(text: str) -> bool:
    """Tell whether a sentence asks, requests or supposes something, in place of stating it."""
    from mdmem.memory.prompts import worth_searching

    asks = _QUESTION.search(text) is not None or _WHAT_IF.search(text) is not None or not worth_searching(text)
    return asks or (_REQUEST.match(text) is not None and _DURABLE.search(text) is None) or len(read(text).terms) < TERMS


def _from_assistant(text: str, turn: Turn, rules: Rules, following: Turn | None) -> tuple[Candidate | None, str]:
    if following is not None and following.who == "user" and _PROPOSED.search(text) and _AGREED.match(following.text.strip()):
        decision = rules.named("decision")
        if decision is not None:
            made = _candidate(_OFFER.sub("", text), decision, turn, False)
            made.confidence, made.lines = 0.6, (turn.line, following.line)
            return made, ""
    if _WHAT_IF.search(text):
        return None, "an assistant's guess"
    category = rules.of(text, "assistant")
    if category is None:
        return None, "an assistant's words: kept only where they explain a problem"
    return _candidate(text, category, turn, False), ""


def _says_a_value(text: str) -> bool:
    statement = read(text)
    told = re.search(r"\b(?:only|never|always|nobody|at (?:least|most)|by the|not)\b|负责|只|都|全部|归", text)
    return bool(statement.values) or (statement.slot is not None and len(text) <= 80) or told is not None


def _candidate(text: str, category: Category, turn: Turn, told: bool) -> Candidate:
    shown = dated(text, turn.at)
    if shown[:1].isascii():
        shown = shown[:1].upper() + shown[1:]
    return Candidate(
        shown.rstrip(),
        category.name,
        category.type,
        turn.who,
        (turn.line, turn.line),
        turn.at,
        min(0.95, category.confidence + (0.15 if told else 0.0)),
        min(0.95, category.importance + (0.15 if told else 0.0)),
        said=turn.text if len(turn.text) > len(text) + 20 else "",
        facts=slot_text(text),
        told=told,
    )


def _once(found: list[Candidate]) -> list[Candidate]:
    """Return the candidates without those whose very words came before."""
    seen: dict[str, Candidate] = {}
    for candidate in found:
        seen.setdefault(" ".join(candidate.text.lower().split()).rstrip(".。"), candidate)
    return list(seen.values())


def _episodes(found: list[Candidate], talk: list[Turn]) -> list[Candidate]:
    """Join the sentences that tell one problem: its cause, its fix. They are said turns apart."""
    place = {turn.line: number for number, turn in enumerate(talk)}
    out: list[Candidate] = []
    last: Candidate | None = None
    for candidate in found:
        if candidate.category == "case":
            if last is not None and place[candidate.lines[0]] - place[last.lines[1]] <= EPISODE and len(last.text) < LONGEST:
                last.text = f"{last.text.rstrip()} {candidate.text}" if last.text[-1:].isascii() else last.text + candidate.text
                last.lines = (last.lines[0], candidate.lines[1])
                last.confidence = min(0.9, last.confidence + 0.1)
                continue
            last = candidate
        out.append(candidate)
    return out
