"""mdmem review: pairs of memories that somebody has to decide about."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say


@click.group("review", invoke_without_command=True)
@json_option
@click.pass_context
@examples("mdmem review", "mdmem review --json", "mdmem review settle mem-4k2j7q supersede")
def command(ctx: click.Context, as_json: bool) -> None:
    """List the pairs of memories that may contradict or repeat each other.

    The write decision keeps both sides of a pair that it cannot judge by rules. `mdmem review settle` says what holds. Tasks
    that a session seems to have finished or blocked are listed too, with the command that says so.
    """
    if ctx.invoked_subcommand is not None:
        return
    from mdmem.learn.opinion import SAYS
    from mdmem.learn.reflect import proposals
    from mdmem.learn.review import doubts

    store = open_store(ctx)
    found, tasks = doubts(store), proposals(store)

    def human() -> None:
        if not found and not tasks:
            say("Nothing waits for review.")
        for row in tasks:
            say(f"task: {clean(row['title'])}: {clean(row['text'])}")
            say(f"  mdmem task {row['change']} {row['task']}")
        for pair in found:
            say(f"{pair.link}: {clean(pair.why)}")
            for word, one in (("newer", pair.note), ("older", pair.other)):
                say(f"  {word} {(one.created or '')[:10]}  {clean(' '.join(one.body.split())[:160])}  [{one.id}]")
            if pair.advice:
                say(f"  the language model says: {SAYS.get(pair.advice, pair.advice)}")
        if found:
            say(f"Settle one: mdmem review settle {found[0].note.id} supersede | reject | merge | keep-both | unrelated")

    emit({"pairs": [pair.as_dict() for pair in found], "tasks": tasks}, as_json, human)


@command.command("settle")
@click.argument("reference", metavar="NOTE")
@click.argument("answer", metavar="ANSWER")
@click.option("--with", "with_", metavar="NOTE", default="", help="Only the pair with this other note.")
@json_option
@click.pass_context
@examples(
    "mdmem review settle mem-4k2j7q supersede",
    "mdmem review settle mem-4k2j7q keep-both --with mem-8xw2aa --json",
)
def settle_command(ctx: click.Context, reference: str, answer: str, with_: str, as_json: bool) -> None:
    """Settle what waits about a note.

    ANSWER is supersede (the newer takes the place of the older), reject (the older stays, the newer is superseded),
    merge (the newer's text is added to the older), keep-both (both hold and stay linked) or unrelated (the link goes).
    """
    from mdmem.learn.review import ANSWERS, settle

    done = settle(open_store(ctx, need="write"), reference, answer, with_)
    emit(done, as_json, lambda: say(f"Settled: {ANSWERS[answer]} [{', '.join(done['others'])}]"))
    if done["reason"]:
        note(f"note: saved, not committed yet: {done['reason']}")
