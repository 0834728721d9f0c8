"""Which prompts are searched for at all."""

from __future__ import annotations

import time

import pytest

from mdmem.memory.prompts import forced, from_machine, searchable, worth_searching

CHATTER = """hi|hello there|ok|okay, thanks|thank you so much!|yes please|yep|no|lgtm|looks good, ship it|go ahead|continue|
great work|try again|good morning|bye for now|你好|您好!|谢谢|好的,谢谢你|好的|继续|嗯嗯|没问题|辛苦了|明白了|
太好了,继续吧|下一步|再见|哈哈哈|👍|...|?|how are you doing today?|what's up|nice, that works"""

WORTH = """which database do we use|fix the flaky login test|为什么登录会失败|我们用的是哪个数据库|deploy 到生产的步骤|
add retry to the upload client|解释一下缓存策略|the API returns 500 after the upgrade"""

FORCED = """remember?|last time|之前呢|上次|记得吗|what did we decide|as discussed|老规矩|what was our convention|我们说过的"""


@pytest.mark.parametrize("prompt", [p.strip() for p in CHATTER.split("|")])
def test_chatter_is_left_alone(prompt: str) -> None:
    assert not worth_searching(prompt)


@pytest.mark.parametrize("prompt", [p.strip() for p in WORTH.split("|")])
def test_questions_and_chores_are_searched(prompt: str) -> None:
    assert worth_searching(prompt)


@pytest.mark.parametrize("prompt", [p.strip() for p in FORCED.split("|")])
def test_asking_for_the_past_forces_a_search(prompt: str) -> None:
    assert forced(prompt) and worth_searching(prompt)


@pytest.mark.parametrize("prompt", ["/compact", "/mdmem:recall it", "!git status", "# remember", "fix it", "ls", "改一下"])
def test_commands_and_scraps_are_not(prompt: str) -> None:
    assert not worth_searching(prompt)


@pytest.mark.parametrize("source", ["system", "loop_wakeup", "schedule_wakeup", "poll_event"])
def test_h27_machine_sources(source: str) -> None:
    assert from_machine("check the build", source)
    assert not from_machine("check the build", "user")
    assert not from_machine("check the build")


def test_machine_texts() -> None:
    assert from_machine("<task-notification>\n<id>1</id></task-notification>")
    assert from_machine("<command-name>/clear</command-name>")
    assert from_machine("[Request interrupted by user]")
    assert not from_machine("<div> is not closed, why?")


def test_pasted_blocks_are_not_the_question() -> None:
    text = "why does this fail?\n```\nTraceback: boom\n```\n<log>line\nline</log>\nit worked on Monday"
    assert searchable(text) == "why does this fail? it worked on Monday"


@pytest.mark.parametrize("part", ["a", "ok ", "<a>", "```\n", "_", "记", "no, ", "(", "```x```"])
def test_hostile_prompts_take_no_time(part: str) -> None:
    prompt = part * (2_000_000 // len(part))
    start = time.process_time()
    worth_searching(prompt)
    from_machine(prompt)
    assert time.process_time() - start < 0.5
