"""mdmem remember: keep a memory."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store, stdin_text
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.errors import UsageError


@click.command("remember")
@click.argument("type_", metavar="TYPE")
@click.argument("text", metavar="TEXT|-")
@click.option("--title", "-t", default="", help="Title; the first sentence by default.")
@click.option("--tags", default="", help="Tags, comma-separated.")
@click.option("--scope", default="", help="shared, local, agent:NAME, project:NAME or user:NAME.")
@click.option("--category", default="", help="A grouping of your own.")
@click.option("--supersedes", metavar="NOTE", default="", help="The note that this one replaces.")
@click.option("--importance", type=click.FloatRange(0, 1), default=None, help="From 0 to 1.")
@click.option("--pinned", is_flag=True, help="Always put before the agent at session start; never fades.")
@click.option("--fact-key", default="", help="What this is the current value of, such as `database`.")
@click.option("--expires", metavar="DATE", default="", help="Leave it out of recall from that date on.")
@click.option("--apart", is_flag=True, help="A note of its own, whatever is there already.")
@click.option("--no-llm", is_flag=True, help="Leave a doubt to mdmem review; ask no language model.")
@click.option("--store", "store_name", metavar="NAME", default="", help="The store of [[stores]] that it goes to.")
@click.option("--commit", "by_name", is_flag=True, help="Commit it also inside a code repository.")
@json_option
@click.pass_context
@examples(
    'mdmem remember decision "We stay with PostgreSQL 16 until the next LTS" --tags database,infra',
    'mdmem remember preference "Answer in Chinese, code comments in English" --scope user:mei',
    "git log -1 --format=%B | mdmem remember event - --title 'What the last commit did'",
)
def command(
    ctx: click.Context,
    type_: str,
    text: str,
    title: str,
    tags: str,
    scope: str,
    category: str,
    supersedes: str,
    importance: float | None,
    pinned: bool,
    fact_key: str,
    expires: str,
    apart: bool,
    no_llm: bool,
    store_name: str,
    by_name: bool,
    as_json: bool,
) -> None:
    """Keep one memory as a markdown file, and commit it.

    TYPE is a word such as decision, preference, profile, pattern, case, event, fact, context or procedure; types of
    your own are fine. Secrets are taken out first. It is compared with the memories of its scope: one that says the same is not
    kept twice, one that it replaces is marked as superseded, and what may contradict or repeat it waits in `mdmem review`.
    Where you have configured a language model, it is asked about such a doubt (llm.patience seconds at most).
    """
    from mdmem.clock import parse_time, stamp
    from mdmem.federation import target
    from mdmem.memory.remember import Memory, remember

    store = open_store(ctx)
    scope = scope or store.default_scope
    name, store = target(store, scope, store_name)
    ctx.call_on_close(store.close)
    store.writable()
    if text == "-":
        text = stdin_text()
        if not text.strip():
            raise UsageError("stdin was empty", hint=f'mdmem remember {type_} "…"')
    extra = {
        "importance": "" if importance is None else f"{importance:g}",
        "pinned": "true" if pinned else "",
        "fact_key": fact_key,
        "expires": stamp(parse_time(expires, store.clock.now(), end=True)) if expires else "",
    }
    given = {key: value for key, value in extra.items() if value}
    memory = Memory(type_, text, title, tags.split(","), scope, category, supersedes, given, by_name, apart, not no_llm)
    result = remember(store, memory)

    def human() -> None:
        words = {"created": "Remembered", "unchanged": "Already known", "superseded": "Remembered, replacing the older one"}
        words |= dict.fromkeys(("merged", "joined"), "Added to what was known")
        words["contradicts"] = "Remembered, but something contradicts it"
        say(f"{words.get(result.action, result.action.capitalize())} [{memory.type}]: {clean(memory.title)}")
        say(f"  {name + ': ' if name else ''}{result.path}  [{result.id}]")
        if result.why:
            about = ", ".join(result.decided or result.review)
            say(f"  {clean(result.why)}" + (f": {about}" if about else ""))
        if result.review:
            say("  waits for review: mdmem review")
        for row in result.related:
            say(f"  see also: {clean(row['title'])}  [{clean(row['id'] or row['path'])}]")

    emit({**result.as_dict(), **({"store": name} if name else {})}, as_json, human)
    if result.failed:
        note(f"note: decided by rules alone: {clean(result.failed)}")
    if result.redacted:
        note(f"note: taken out before saving: {', '.join(result.redacted)}")
    if result.reason and memory.scope != "local":
        note(f"note: saved, not committed yet: {result.reason}")
