"""The categories of what is worth keeping, with the words that show them; extended or replaced by the user's own files.

`$XDG_CONFIG_HOME/mdmem/learn/categories.toml` holds a table a category: type, cues (regular expressions), speakers,
confidence, importance; one that is named like one of ours adds its cues to ours, or takes its place with `replace = true`.
`noise.txt` beside it holds a regular expression a line for what is never kept; a first line `!replace` drops our own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mdmem.errors import MdmemError

# Our own categories, the first one that fits wins: name, type of note, speakers, confidence, importance, cues.
_OWN: tuple[tuple[str, str, tuple[str, ...], float, float, str], ...] = (
    (
        "profile", "profile", ("user",), 0.8, 0.7,
        r"\bI(?:'m| am) (?:the|our|in charge|responsible|based|new to|an? (?!bit|little|lot|fan|few))[\w -]*|"
        r"\bI (?:work|live|sit|maintain|own|lead|manage) |\bmy (?:name|role|team|time ?zone|editor|job|title|laptop|"
        r"machine|shell|"
        r"background|working hours)\b (?:is|are)|我(?:是|叫|负责|住在|在.{1,12}(?:工作|上班))|"
        r"我的(?:名字|时区|角色|职位|职责|团队|编辑器|电脑|工作时间)",
    ),
    (
        "event", "event", ("user",), 0.7, 0.5,
        r"(?=.*(?:\b(?:yesterday|today|tonight|last (?:night|week|month|\w+day)|this (?:morning|week)|on \w+day|days? ago)\b|"
        r"\d{4}-\d\d-\d\d|昨[天晚]|今[天早晚]|前天|上(?:个)?[周月]|刚才|[日号]))"
        r".*(?:\b(?:released|shipped|launched|went (?:down|live)|outage|incident|lasted|was down|crashed|signed|"
        r"published|rolled back|happened)\b|发布|上线|宕机|故障|事故|回滚|签约|中断|崩溃|报警|超时)",
    ),
    (
        "decision", "decision", ("user",), 0.8, 0.8,
        r"\b(?:we|I|team)(?:'ve| have| had)? (?:finally )?(?:decided|agreed|chose|settled|picked|approved|rejected)\b|"
        r"\blet'?s (?:use|go with|keep|stick|stay|switch|take|adopt|drop|move)\b|"
        r"\bwe(?:'ll| will|'re| are)? (?:now )?(?:use|using|go(?:ing)? with|stay|stick|keep|switch(?:ed|ing)?|moved|"
        r"moving|migrated|"
        r"dropped|no longer|only|standardi[sz]ed?|support|deploy|release|host|write|store)\b|\binstead of\b|"
        r"\b(?:the )?decision\b|"
        r"\b(?:are|is) (?:allowed )?only (?:allowed )?|\bonly (?:happens?|runs?|allowed|merge|deploy)\b|"
        r"决定|敲定|定(?:为|在|下来)|选(?:择|用|定)|采用|统一(?:用|使用)|改用|改成|改为|换成|就用|约定|(?:我们|都|一律)(?:使?用|改)|"
        r"不再|^(?:就)?用\s*[A-Za-z]|弃用|保留期|(?:先)?(?:调|提|降|升|固定|限制)(?:到|在|为)|只(?:有|做|支持|用|在|允许)|目标|不做|"
        r"\bwe (?:do not|don't|never|always|aim|plan|only)\b|\b(?:first|second|last), because\b|\b(?:gets?|is|are|"
        r"will be) (?:switched off|"
        r"retired|released|removed|dropped|frozen|due|signed off)\b|\bsigned off\b|\bnot more often\b",
    ),
    (
        "preference", "preference", ("user",), 0.8, 0.8,
        r"\bI(?:'d| would)? (?:really |strongly |usually |always |much )?(?:prefer|like|want|hate|dislike|don't like|"
        r"rather|can't stand|"
        r"don't want|love|insist|expect)\b|"
        r"\bplease (?:always|never|do ?n[o']t ever|use .* (?:everywhere|always|in all|for all))|"
        r"^(?:please )?(?:always|never)\b|"
        r"^(?:please )?(?:do not|don't) (?:ever )?(?:use|add|put|write|touch|commit|push|mock|log|print|call|ask|"
        r"guess|squash|rename)\b|"
        r"\beverywhere\b|\bno (?:emojis?|bullet|comments|abbreviations)\b|\bkeep (?:answers|it|replies|comments|"
        r"functions) \w+|"
        r"我(?:更|比较|一般|通常)?(?:喜欢|偏好|习惯|希望|讨厌|不喜欢)|以后|今后|请(?:始终|总是|一律|统一|不要)|不要(?:再|在|用|给|把)|"
        r"别(?:再|太|用|写|加|给)|永远不要|千万(?:别|不要)|禁止|尽量(?:用|不)|一律|不要(?:译|写|用|加|改)|统一(?:译|写|叫|命名)|语气|风格|"
        r"\b(?:docstrings?|comments|line length|indent\w*|quotes|imports|variable names|naming|tone|wording|headings)\b.*"
        r"\b(?:is|are|only|not|never|always|should|must|in|with)\b",
    ),
    (
        "pattern", "procedure", ("user",), 0.75, 0.7,
        r"\b(?:every|each|all|any)\b.*\b(?:must|needs?|has to|have to|should|requires?|gets?|go(?:es)? through)\b|"
        r"\b(?:must|has to|have to|needs? to) (?:always |never |be |not )?\w+|"
        r"\bto (?:deploy|release|build|test|run|publish|roll ?back|restore|set up|add)\b[^,]{0,40}, |"
        r"\b(?:before|after) (?:every|each|any|you|we|merging|deploying|releasing|pushing|committing)\b|\bfirst\b.*\bthen\b|"
        r"\bwhenever\b|\bfrom now on\b|\bnobody\b.*\bwithout\b|\bnever on\b|\bwe always\b|规矩|规则|放在.{1,20}(?:下|里)|"
        r"命名|每次|先.{1,30}(?:再|然后|后)|(?:之前|前)(?:要|必须|先|都)|(?:之后|后)(?:要|必须|先|都)|必须|"
        r"步骤|流程|都要",
    ),
    (
        "case", "case", ("user", "assistant"), 0.6, 0.6,
        r"\b(?:root cause|the (?:problem|issue|cause|bug|reason|culprit) (?:was|is)|turn(?:ed|s) out|(?:was|were|"
        r"is) caused by|"
        r"fixed (?:it |this )?by|(?:fix|solution|workaround) (?:was|is)|fixed it\b|ran out of|deadlock|raised the limit|"
        r"(?:fails?|failed|broke|crash\w*|happen\w*) because|no longer (?:fails|crashes|leaks)|that explains|"
        r"(?:solved|resolved|cured) "
        r"(?:it|that|this|the)|(?:came|comes) from|(?:are|is) gone (?:after|now|since)|was missing|back to (?:normal|where)|"
        r"(?:works|passes|stays \w+) (?:again|now|with|after)|stays? stable|now keeps|keeps the)\b|"
        r"原因(?:是|就是|在于)|根因|问题(?:出在|是|就是|在于)|已修复|修复方法|解决(?:办法|方法|了)|是因为|原来是|导致|出错是|后(?:全部)?通过|"
        r"恢复正常|就好了|已解决",
    ),
    (
        "entity", "fact", ("user",), 0.65, 0.55,
        r"^(?:the|our|my|all|this) [\w' /-]{2,50}? (?:is|are|was|runs?|lives?|listens?|belongs?|has|have|holds?|uses?|"
        r"expires?|points?|"
        r"starts?|ends?|sits|takes|costs|supports?|contains?|allows?|needs?|goes|go|stays?)\b|"
        r"^[A-Z][\w.+-]* (?:owns?|leads?|maintains?|reviews?|runs?|lives?|is|has|belongs?|holds?|handles?|takes over|"
        r"took over|"
        r"uses?|listens?)\b|(?:^|[,;:] |\band |\bso )(?:we|our|the|this|that|these|all|checkpoints|"
        r"[a-z]+ ?[a-z]*) (?:\w+ ){0,4}?"
        r"(?:is|are|has|have|train|takes?|goes?|go|runs?|live|sits?|belongs?|handles?|looks? after|holds?|needs?|"
        r"uses?|gets?|aims?)\b|"
        r"\b(?:done|made|run|owned|managed|maintained|reviewed|handled|hosted) by\b|\bas (?:owner|maintainer|"
        r"reviewer)\b|\b(?:owner|maintainer|contact|deadline|port|address|url|region|password policy|budget|quota|limit) "
        r"(?:of|for|is)\b|(?:由|归|外包给|交给).{1,12}(?:负责|管|维护|值班|做)|^.{2,6}也?(?:维护|管理).{2,20}$|.{2,20}(?:是|为|在|位于|属于|放在|部署在|存放在)\s*\S|负责",
    ),
)  # fmt: skip

_NOISE = (
    r"^(?:(?:error|warning|info|debug|traceback)\b\s*[:\[(]|at |\+\+\+|---|\$ |> |>>> |#!|diff --git|index [0-9a-f]{6,})",
    r"^(?:good to know|noted|understood|got it|makes sense|never ?mind|no worries|you'?re (?:right|welcome))\b",
    r"^(?:I'?ll|I will|I'm going to|let me|I can|I could|I have|I've|I am now|I'm now) (?:\w+ )?(?:look|check|see|try|"
    r"start|do|"
    r"run|read|fix|add|note|test|take|go|be|think|update|write|open|search)\b",
)


@dataclass(frozen=True)
class Category:
    """One kind of thing worth keeping: its note type, who may say it, how sure and how weighty it is by itself."""

    name: str
    type: str
    speakers: tuple[str, ...]
    confidence: float
    importance: float
    cues: re.Pattern[str]


@dataclass(frozen=True)
class Rules:
    """The categories in force, in order, and the patterns of noise."""

    categories: tuple[Category, ...]
    noise: tuple[re.Pattern[str], ...]

    def of(self, text: str, speaker: str) -> Category | None:
        """Return the first category whose cues stand in a sentence of this speaker."""
        for category in self.categories:
            if speaker in category.speakers and category.cues.search(text):
                return category
        return None

    def named(self, name: str) -> Category | None:
        """Return the category of a name."""
        return next((category for category in self.categories if category.name == name), None)


def load_rules() -> Rules:
    """Return our rules with the user's own files. Raises MdmemError for a file that cannot be read."""
    from mdmem.config import config_home, read_toml

    folder = config_home() / "learn"
    own = [Category(n, t, s, c, i, _pattern("ours", cues)) for n, t, s, c, i, cues in _OWN]
    for name, table in read_toml(folder / "categories.toml").items():
        if not isinstance(table, dict):
            raise MdmemError(f"categories.toml: {name} is not a table")
        _add(own, name, table)
    try:
        lines = (folder / "noise.txt").read_text("utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    noise = [] if lines and lines[0].strip() == "!replace" else list(_NOISE)
    noise += [line.strip() for line in lines if line.strip() and line.strip()[0] not in "#!"]
    return Rules(tuple(own), tuple(_pattern("noise.txt", line) for line in noise))


def _add(own: list[Category], name: str, table: dict[str, Any]) -> None:
    place = next((number for number, category in enumerate(own) if category.name == name), None)
    base = own[place] if place is not None else Category(name, "fact", ("user",), 0.7, 0.6, re.compile(r"(?!)"))
    cues = "|".join(f"(?:{cue})" for cue in table.get("cues", []))
    if place is not None and not table.get("replace"):
        cues = "|".join(part for part in (base.cues.pattern, cues) if part)
    made = Category(
        name,
        str(table.get("type", base.type)),
        tuple(str(who) for who in table.get("speakers", base.speakers)),
        float(table.get("confidence", base.confidence)),
        float(table.get("importance", base.importance)),
        _pattern("categories.toml", cues or r"(?!)"),
    )
    if place is None:
        own.insert(0, made)
    else:
        own[place] = made


def _pattern(where: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise MdmemError(f"{where} holds a pattern that cannot be read: {text[:60]!r}", why=str(error)) from error
