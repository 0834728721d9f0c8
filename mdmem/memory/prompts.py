"""Which prompts deserve a search of the memory at all: rules for English and Chinese. Imports only `re`."""

from __future__ import annotations

import re

# Where a prompt came from when no person typed it (Claude Code's `source`).
MACHINE_SOURCES = frozenset({"system", "loop_wakeup", "schedule_wakeup", "poll_event"})

# Texts that the program itself puts into the place of a prompt.
_MACHINE = re.compile(
    r"\s*(?:<(?:task-notification|command-name|command-message|local-command-\w+|system-reminder|bash-(?:input|stdout|stderr)"
    r"|user-memory-input|ide_\w+|teammate-message)\b|\[Request interrupted|Caveat: The messages below"
    r"|This session is being continued)"
)

# Asking for the past by name overrides every rule but those for machines and commands.
_FORCED = re.compile(
    r"\b(?:remember(?:ed)?|recall|last (?:time|week|month|session|year)|previously|earlier (?:we|you|i|decision)|"
    r"(?:did|do|have|had) we (?:decide|agree|choose|settle|say|discuss)\w*|as (?:we )?(?:discussed|decided|agreed)|"
    r"what (?:was|were|did) (?:we|i|you|our|my)|like before|our (?:decision|convention|policy|agreement)s?|my preference)\b"
    r"|记得|记不记得|还记|回忆|之前|上次|以前|上回|先前|早先|当时|我们(?:的)?(?:决定|约定|说过|讨论过|定的|定过|选的|选了)"
    r"|(?:说|提|讨论|决定|约定)过|按照?(?:惯例|约定|老规矩)|老规矩",
    re.IGNORECASE,
)

_WORDS_EN = (
    "hi|hello|hey|yo|thanks?|thank you|thx|ty|cheers|ok|okay|k|yes|yep|yeah|yup|no|nope|nah|sure|great|good|nice|cool|perfect|"
    "awesome|excellent|wonderful|lovely|fine|alright|right|correct|exactly|done|continue|go|go on|go ahead|proceed|next|stop|"
    "wait|please|pls|lgtm|ship it|looks good|sounds good|"
    "good morning|good afternoon|good evening|good night|morning|bye|goodbye|"
    "see you|later|do it|try again|again|retry|keep going|carry on|never ?mind|got it|i see|understood|makes sense|"
    "good job|well done|nice work|great work|works|it works|that works|all good|no problem|you too|haha+|lol|hmm+|wow|oops|"
    "how are you|how are you doing|what'?s up|have a (?:nice|good|great) (?:day|evening|weekend|one|night)|there|claude|"
    "you|very|much|so|a lot|that'?s|it'?s|all|for now|then|now|everyone|team|let'?s|and|but|too|again|for|the|help|"
    "your|was|is|really|helpful|with|this|that|today|just|it|to|we|can|i|am|i'm|ready|commit|push"
)
_WORDS_ZH = (
    "你好|您好|嗨|哈喽|早上好|早安|早|下午好|晚上好|晚安|谢谢|多谢|感谢|辛苦了|辛苦|好的|好|行|可以|嗯+|对的|对|是的|是|不是|不用了|不用|不|没错|"
    "没事|没问题|继续|接着|下一步|下一个|开始|开始吧|停|等等|等一下|再试一次|再来一次|再来|重试|明白了|明白|知道了|了解|收到|懂了|完美|"
    "太好了|很好|不错|厉害|棒|真棒|太棒了|赞|哈+|呵呵|再见|拜拜|回见|吧|了|的|啊|呀|哦|噢|喔|呢|吗|嘛|啦|你|您|大家|请|就这样|这样|"
    "搞定|完成|完成了|干得好|干得漂亮|非常|很|太|都|那就|那|先|做吧|执行|提交|确认|同意|通过|哎|唉|今天|最近|怎么样|忙|在吗|在"
)
_CHATTER = re.compile(rf"(?:(?:{_WORDS_EN})(?![a-z'])|{_WORDS_ZH}|[\W_])+", re.IGNORECASE)

_COMMAND = re.compile(r"\s*(?:/[a-z][\w:-]*(?:\s|$)|[!#])", re.IGNORECASE)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_WORD = re.compile(r"[^\W_][\w.+#/-]*")
_FENCE = re.compile(r"^(```|~~~).*?(?:^\1\s*$|\Z)", re.DOTALL | re.MULTILINE)
_OPENING = re.compile(r"<([a-zA-Z][\w-]{0,40})[^<>]{0,200}>")

# Characters kept of a prompt.
KEPT = 4000
# A prompt with less than this to search for is left alone: words of a spaced script, or CJK characters.
FEWEST_WORDS = 3
FEWEST_CJK = 4
# Characters of a prompt that are searched for; what follows is pasted material more often than a question.
LONGEST = 1200


def from_machine(prompt: str, source: object = None) -> bool:
    """Return whether no person wrote this prompt."""
    return (isinstance(source, str) and source in MACHINE_SOURCES) or _MACHINE.match(prompt) is not None


def keepable_prompt(prompt: str, source: object = None) -> str:
    """Return what the spool keeps of a prompt, redacted; '' when no person wrote it."""
    if from_machine(prompt, source):
        return ""
    from mdmem.memory.spool import keepable

    return keepable(prompt.strip(), KEPT)


def forced(prompt: str) -> bool:
    """Return whether the prompt asks for the past by name."""
    return _FORCED.search(searchable(prompt)) is not None


def worth_searching(prompt: str) -> bool:
    """Return whether a person's prompt deserves a search: no command, greeting or acknowledgement, and not too short."""
    if _COMMAND.match(prompt):
        return False
    if forced(prompt):
        return True
    text = searchable(prompt)
    if not text or _CHATTER.fullmatch(text):
        return False
    cjk = len(_CJK.findall(text))
    words = len(_WORD.findall(_CJK.sub(" ", text)))
    return cjk >= FEWEST_CJK or words >= FEWEST_WORDS or (cjk >= 2 and words >= 1)


def searchable(prompt: str) -> str:
    """Return the part of a prompt that says what it is about: pasted blocks left out, at most LONGEST characters."""
    text = without_tagged(_FENCE.sub(" ", prompt[: 4 * LONGEST]))
    return " ".join(text.split())[:LONGEST]


def without_tagged(text: str) -> str:
    """Return `text` without `<x>…</x>` blocks, which hold pasted or generated material; linear in its length."""
    kept: list[str] = []
    at = 0
    unclosed: set[str] = set()
    for opening in _OPENING.finditer(text):
        if opening.start() < at or opening[1] in unclosed:
            continue
        closing = f"</{opening[1]}>"
        end = text.find(closing, opening.end())
        if end < 0:
            unclosed.add(opening[1])
            continue
        kept.append(text[at : opening.start()])
        at = end + len(closing)
    return " ".join([*kept, text[at:]])
