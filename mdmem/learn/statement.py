"""A statement taken apart: what it is about, its numbers and names, whether it denies, whether it says that something changed.

Pure rules for English and Chinese; no model, no disk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from mdmem.index.analyzer import stem, tokens

# Characters beyond which a text is a document, not one statement.
LONGEST = 600

_STOP = """a an the of in on at to for from by with about into over after before under and or nor but if then else while than as
is are was were be been being am do does did done doing have has had having can could may might shall should will
would must i you he she it we they me him her us them my your his its our their mine this that these those there here
what which who whom whose how any some such so too very just also still again now today please let lets make made use
uses used using user need needs ever keep keeps kept stay stays stick go goes going went choose chose chosen pick
picked decide decided decision agree agreed settle settled run runs running ran write written wrote happen happens own
owner owners owned responsible responsibility s t d ll re ve one all every thing way only that's it's we're we'll i'm
let's team remember each come comes store stored stores put save saved host hosted maintain maintains maintained lead
leads charge takes took take call via both per"""

# Words that deny, and words that say a thing has ended.
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|without|cannot|can't|don't|doesn't|didn't|won't|isn't|aren't|wasn't|weren't|"
    r"shouldn't|mustn't|hasn't|haven't|avoid|avoids|stop|stopped|disallow\w*|forbid\w*|forbidden|banned?|disabled?|"
    r"refuse[ds]?)\b"
    r"|不要|不用|不能|不会|不可以?|不再|不得|不准|不是|没有|没法|别再?|禁止|勿|避免|停用|停止|取消"
    r"|不(?=[\u4e00-\u9fff])",
    re.IGNORECASE,
)
_RETIRED = re.compile(
    r"\b(?:no longer|not any ?more|no more|any ?more|stopped (?:using|doing)|dropped|gave up|got rid of|removed|retired|"
    r"deprecated|abandoned|cancell?ed|shut down|decommissioned)\b"
    r"|不再|弃用|停用|废弃|取消了?|下线了?|去掉了?|移除了?|不用.{0,12}了|放弃了?",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:now|from now on|as of|instead(?: of)?|switched|moved|migrated|changed|replace(?:d|s)|became|becomes|renamed|raised|"
    r"lowered|reduced|increased|upgraded|downgraded|bumped|updated|took over|takes over|rather than|"
    r"starting (?:today|next|this)|since (?:today|yesterday|last)|correction|actually)\b"
    # `Before changing the schema` says of no change, and neither does `every update`.
    r"|(?:\b(?:are|is|am|be|started)|'re|'m)\s+(?:switching|moving|migrating|changing|replacing|upgrading|renaming)\b"
    r"|^(?:let's |please |we )?(?:switch|move|migrate|change|replace|rename|raise|lower|reduce|increase|upgrade|update|bump)\b"
    r"(?=.*\b(?:to|with|by)\b)"
    r"|改用|改为|改成|改到|换成|换到|换为|迁移到|迁到|升级到|降到|提高到|调整为|调整到|调到|调成|现在|从现在起|以后|今后|从今天起"
    r"|取代|代替|而不是|接手|更正",
    re.IGNORECASE,
)
# What a statement itself says is no longer so: the first group that matched.
_DROPPED = (
    re.compile(r"\bfrom\s+(.{1,40}?)\s+(?:over\s+)?to\b", re.IGNORECASE),
    re.compile(
        r"\b(?:instead of|rather than|in place of|replac(?:es?|ed|ing))\s+(.{1,40}?)"
        r"(?=\s+(?:for|in|as|on|by|with|because)\b|[,.;]|$)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:no longer|stopped|not)\s+(?:use|uses|using|on|run|runs)?\s*(.{1,40}?)"
        r"(?=\s+(?:for|in|as|on|any ?more|but)\b|[,.;]|$)",
        re.IGNORECASE,
    ),
    re.compile(r"从\s*(.{1,20}?)\s*(?:换|改|迁移|迁|升级|提高|降|调整?|切换)(?:成|为|到)"),
    re.compile(r"(?:把|将)\s*(.{1,20}?)\s*(?:换|改|替换)(?:成|为)"),
    re.compile(r"(?:不再(?:使?用)?|代替|取代|而不是|弃用|停用|不用)\s*([^,，。;；]{1,20}?)(?=了?(?:[,，。;；]|$))"),
)
_NUMBER = re.compile(r"(?<![\w.])v?\d+(?:[.:,]\d+)*(?![.:,]?\d)", re.IGNORECASE)
_WORD_NUMBERS = {
    "zero": "0", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15", "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50",
    "sixty": "60", "ninety": "90", "hundred": "100", "thousand": "1000", "twice": "2", "once": "1", "half": "0.5",
}  # fmt: skip
_DIGITS_ZH = {char: number for number, char in enumerate("零一二三四五六七八九")} | {"两": 2}
_NUMBER_ZH = re.compile(
    r"(?<!星期)(?<![周第])[零一二三四五六七八九十百千两]{1,6}"
    r"(?=\s*(?:个|人|天|点|分|秒|小时|次|周|月|年|台|条|份|名|倍|位|遍|万|元|块))"
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = re.compile(rf"\b({'|'.join(_DAYS)})s?\b|(?:周|星期|礼拜)([一二三四五六日天])", re.IGNORECASE)
_SWEEPING = re.compile(
    r"\b(?:all|every|each|any|only|always|everything|everywhere|nobody)\b|所有|全部|一律|每个|每次|只|仅|任何", re.I
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[._+#/@-]+[A-Za-z0-9]+)*(?:\+\+|#)?")
# A number that says which one is meant: `Milestone 3 is done`, `第3轮`.
_LABEL = re.compile(r"(?:[A-Za-z]+\s+)?([A-Za-z]+|第)\s*#?(\d+)|(?:\S+\s+){0,4}([A-Za-z]+)\s+#?(\d+)[.]?$")
_CJK = re.compile(r"[\u3400-\u9fff]")
# After a word at the head of a sentence, these make it a name: `Anna owns`, `Redis is`.
_VERBISH = re.compile(
    r"\s+(?:is|was|has|owns|runs|reviews?|leads?|maintains?|prefers?|works?|lives?|uses?|handles?|takes|took|keeps?|will)\b"
)
_STOP_ZH = re.compile(
    r"我们的?|你们|他们|现在|已经|必须|应该|需要|可以|一律|统一|全部|所有|每次|以后|今后|从今天起|从现在起|请|都|的|了|是|在|用|"
    r"使用|采用|"
    r"负责|由|把|将|被|会|要|也|就|得|为|和|与|及|或|有|于|到|对|换成|改成|改为|改用|决定|记住|注意|不要|不用|不能|不会|不可以|不再|不得|没有|"
    r"别|禁止|不|书写|写"
)


@dataclass(frozen=True)
class Statement:
    """A text taken apart. `topic` holds stems of words and pairs of Chinese characters; `dropped` the names and numbers that
    the text itself says are no longer so; `leading` the name or number at its head; `slot` (subject, value, relation)
    where it has the form `the X is V`."""

    text: str
    topic: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    leading: str = ""
    negated: bool = False
    retired: bool = False
    changes: bool = False
    dropped: frozenset[str] = field(default_factory=frozenset)
    slot: tuple[frozenset[str], str, str] | None = None

    @property
    def sweeping(self) -> bool:
        """Whether it speaks of all there are, or of these alone."""
        return _SWEEPING.search(self.text) is not None

    @property
    def values(self) -> frozenset[str]:
        """Numbers and names."""
        return self.numbers | self.names

    @cached_property
    def words(self) -> frozenset[str]:
        """The topic with single Chinese characters in place of pairs: pairs differ where only the order does."""
        return frozenset(part for term in self.topic for part in (term if _CJK.match(term) else (term,)))

    @property
    def terms(self) -> frozenset[str]:
        """Everything that it says, without small words."""
        return self.topic | self.numbers | self.names


@lru_cache(maxsize=1)
def known_names() -> frozenset[str]:
    """Return the names of programs and services that are often written in lower case."""
    try:
        lines = Path(__file__).with_name("names.txt").read_text("utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


@lru_cache(maxsize=1)
def _stop() -> frozenset[str]:
    return frozenset(term for word in _STOP.split() for term in (word, stem(word)))


_UNIT = re.compile(r"(?<![\w.])(\d+(?:[.,]\d+)?) ?(secs?|s|mins?|hrs?|h|ms|[kmgt]i?b)\b", re.IGNORECASE)
_UNITS = {"s": "seconds", "sec": "seconds", "secs": "seconds", "min": "minutes", "mins": "minutes"}
_UNITS |= {"h": "hours", "hr": "hours", "hrs": "hours"}


def _spelled_out(match: re.Match[str]) -> str:
    return f"{match[1]} {_UNITS.get(match[2].lower(), match[2])}"


@lru_cache(maxsize=4096)
def read(text: str) -> Statement:
    """Return the parts of a text; only its first LONGEST characters are looked at. Short units are spelled out: 30s, 10MB."""
    text = _UNIT.sub(_spelled_out, " ".join(text[:LONGEST].split()))
    numbers, rest = _numbers(text)
    names, leading = _names(rest)
    label = _LABEL.match(text)
    if label is not None and (label[1] or label[3]).lower() not in _stop() and not (label[3] and _slot(text)):
        leading = (label[2] or label[4]).lstrip("0") or "0"
    dropped: set[str] = set()
    for pattern in _DROPPED:
        for found in pattern.finditer(text):
            part, left = _numbers(found[1])
            dropped |= part | _names(left)[0] | _topic(left, frozenset())
    return Statement(
        text,
        _topic(rest, names),
        frozenset(numbers),
        frozenset(names),
        leading,
        _NEGATION.search(text) is not None,
        _RETIRED.search(text) is not None,
        _CHANGES.search(text) is not None,
        frozenset(dropped),
        _slot(text),
    )


def _numbers(text: str) -> tuple[set[str], str]:
    """Return (numbers and days, the text without them)."""
    found: set[str] = set()

    def digits(match: re.Match[str]) -> str:
        number = match[0].lower().lstrip("v").replace(",", "")
        found.add(re.sub(r"^0+(?=\d)", "", number))
        return " "

    def word(match: re.Match[str]) -> str:
        number = _WORD_NUMBERS.get(match[0].lower())
        if number is None:
            return match[0]
        found.add(number)
        return " "

    def day(match: re.Match[str]) -> str:
        found.add(match[1].lower() if match[1] else _DAYS["一二三四五六日".index(match[2].replace("天", "日"))])
        return " "

    def chinese(match: re.Match[str]) -> str:
        found.add(str(_chinese_number(match[0])))
        return " "

    text = _DAY.sub(day, text)
    text = _NUMBER_ZH.sub(chinese, text)
    text = _NUMBER.sub(digits, text)
    return found, re.sub(r"[A-Za-z]+", word, text)


def _chinese_number(text: str) -> int:
    total, current = 0, 0
    for char in text:
        unit = {"十": 10, "百": 100, "千": 1000}.get(char)
        if unit:
            total += (current or 1) * unit
            current = 0
        else:
            current = _DIGITS_ZH.get(char, 0)
    return total + current


def _names(text: str) -> tuple[set[str], str]:
    """Return (names in lower case, the one at the head of the text or '')."""
    found: set[str] = set()
    leading = ""
    for match in _WORD.finditer(text):
        word = match[0]
        low = word.lower()
        if low in _stop() or len(word) < 2:
            continue
        before = text[: match.start()].rstrip()
        at_head = not before or before[-1] in ".!?:;。！？：；-*>\"'“‘("
        known = low in known_names()
        odd = any(char.isupper() for char in word[1:]) or any(not char.isalpha() for char in word if char != "-")
        in_chinese = bool(_CJK.search(text[max(0, match.start() - 4) : match.end() + 4]))
        named = known or odd or in_chinese or (word[0].isupper() and not at_head)
        if not named and at_head and word[0].isupper() and _VERBISH.match(text, match.end()):
            named = not low.endswith(("s", "ing"))
        if named:
            found.add(low)
            if not before:
                leading = low
    return found, leading


def _topic(text: str, names: frozenset[str] | set[str]) -> frozenset[str]:
    """Return the terms that carry the subject: stems, and pairs of Chinese characters."""
    plain = _NEGATION.sub(" ", _CHANGES.sub(" ", _RETIRED.sub(" ", text)))
    out = set()
    spaced = _STOP_ZH.sub(" ", plain)
    for term in tokens(spaced):
        if _CJK.match(term):
            if len(term) > 1:
                out.add(term)
        elif len(term) > 1 and term not in _stop() and term not in names and not term[0].isdigit():
            out.add(term)
    # A single Chinese character between two cuts is a word of its own.
    out |= set(re.findall(r"(?<![\u3400-\u9fff])[\u3400-\u9fff](?![\u3400-\u9fff])", spaced))
    parts = {piece for name in names for piece in tokens(name)}
    return frozenset(out - parts)


_IS = r"(?:is|are|=|:|->|→|runs on|listens on|lives (?:in|at|on)|points to|"
_IS += r"was (?:moved|changed|set|raised|lowered) (?:from .{1,30} )?to|"
_IS += r"(?:is|are) (?:now|currently)|now (?:is|runs on|listens on)|will be|becomes?|changed (?:from .{1,30} )?to|moved to)"
_SLOTS = (
    re.compile(
        r"(?P<v>\w[\w -]{0,30}?) (?:now )?(?P<s>(?:owns|leads|maintains|is responsible for|is in charge of|takes over|"
        r"took over|is on call for) .{3,50}?)[.]?$",
        re.IGNORECASE,
    ),
    re.compile(rf"(?:the |our |my )?(?P<s>[\w' /-]{{3,60}}?)\s*{_IS}\s+(?P<v>[^,;.]{{1,60}})[.]?$", re.IGNORECASE),
    re.compile(r"(?P<s>[^,，。;；:：]{2,24}?)(?:现在|以后)?改?由(?P<v>[^,，。;；]{1,12}?)(?:来)?(?:负责|管理|维护|值班|接手)"),
    re.compile(r"(?P<v>[^,，。;；是的]{1,6}?)负责(?P<s>[^,，。;；]{2,24})$"),
    re.compile(
        r"(?!在)(?P<s>[^,，。;；:：]{2,24}?)\s*(?:[:：]|现在|以后)?\s*(?:是|为|改为|改成|换成|改用|定为|定在|设为|调整为|改到|放在|使用|采用|用|：|(?<=[\u3400-\u9fff]):)"
        r"\s*(?P<v>[^,，。;；]{1,24})[。]?$"
    ),
)


_NOW = re.compile(r"^(?:now|currently|现在)\s*", re.IGNORECASE)
_FROM = re.compile(r"\bfrom .*$", re.IGNORECASE)


def _slot(text: str) -> tuple[frozenset[str], str, str] | None:
    """Return (what it is the value of, value, `who` or `what`) for `the X is V` and its like, None for another form."""
    for pattern, relation in zip(_SLOTS, ("who", "what", "who", "who", "what")):
        match = pattern.match(text)
        if match is None:
            continue
        about = _FROM.sub("", match["s"])
        subject = _topic(_numbers(about)[1], set()) | _names(about)[0] | _numbers(about)[0]
        if subject:
            return frozenset(subject), _NOW.sub("", match["v"].strip()), relation
    return None


def slot_text(text: str) -> dict[str, str]:
    """Return {what it is the value of: value} for a text of the form `the X is V`, else {}."""
    for pattern in _SLOTS:
        match = pattern.match(" ".join(text.split()))
        if match is not None and shape(match["v"]) != "phrase":
            return {re.sub(r"[\s:：]+", " ", match["s"]).strip().lower()[:60]: _NOW.sub("", match["v"].strip())}
    return {}


def shape(value: str) -> str:
    """Return what kind of value a text is: number, day, name, word (one of its kind), or phrase (not one value)."""
    numbers, rest = _numbers(value)
    left = [word for word in tokens(_STOP_ZH.sub(" ", rest)) if word not in _stop()]
    if numbers:
        return "day" if numbers <= set(_DAYS) else "number" if len(left) <= 2 else "phrase"
    names = _names(value)[0]
    if re.search(r"\b(?:than|as|like|for|when|if|because)\b|比|因为|如果", value):
        return "phrase"
    if names and len(value.split()) <= 4:
        return "name"
    if _CJK.search(value):
        return "name" if len(value) <= 6 and not value.endswith(("的", "了")) else "phrase"
    # `blue` and `green` cannot both be; `encrypted` and `compressed` can.
    words = value.split()
    if len(words) == 1 and value[0].isupper():
        return "name"
    return "word" if len(words) == 1 and not re.search(r"(?:ed|ing|able|ible|ful|less|ous|ive)$", words[0]) else "phrase"
