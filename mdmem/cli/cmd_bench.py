"""mdmem bench: how well recall finds, and how fast."""

from __future__ import annotations

from pathlib import Path

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import emit, json_option, say
from mdmem.cli.progress import progress
from mdmem.errors import UsageError

SYSTEMS = ("hybrid", "minmax", "rrf", "bm25", "keyword", "dense", "semantic", "grep")


@click.group("bench")
@examples("mdmem bench recall locomo10.json", "mdmem bench self")
def command() -> None:
    """Measure recall: on a file of questions with known answers, or on your own store."""


@command.command("recall")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--system", "systems", type=click.Choice([*SYSTEMS, "all"]), multiple=True, default=("hybrid",), help="May be given again."
)
@click.option("--decay", is_flag=True, help="Let age count, seen from the newest date in the file.")
@click.option("--direction", default="", metavar="ASKED-HELD", help="For pairs in two languages: zh-en and so on, or all.")
@click.option("--mixed", is_flag=True, help="For such pairs: notes of both languages in one store.")
@click.option("--captions", is_flag=True, help="LoCoMo: add the descriptions of shared pictures to the text.")
@click.option("--limit", type=click.IntRange(0), default=0, help="Only the first questions.")
@json_option
@examples(
    "mdmem bench recall locomo10.json",
    "mdmem bench recall longmemeval_s.json --limit 50 --json",
    "mdmem bench recall mine.json --system hybrid --system bm25 --system grep",
    "mdmem bench recall decisions.json --direction all --mixed",
)
def recall(
    file: Path, systems: tuple[str, ...], decay: bool, direction: str, mixed: bool, captions: bool, limit: int, as_json: bool
) -> None:
    """Make a throw-away store from FILE, ask its questions, and print recall@k and MRR in percent.

    Reads LoCoMo, LongMemEval, decision pairs in two languages, and {docs: [{id, text, title?, date?, group?}],
    questions: [{id, question, evidence: [id], group?}]}; a group is a scope. hybrid is what `mdmem recall` does; minmax and
    rrf are the bare fusions of bm25 and dense. Vectors are cached by content. One system prints one JSON object, several a
    list.
    """
    from mdmem.recall.bench import measure
    from mdmem.recall.bench_data import DIRECTIONS, load_dataset

    parts = [load_dataset(file, one, captions, mixed) for one in (DIRECTIONS if direction == "all" else (direction,))]
    chosen = SYSTEMS if "all" in systems else tuple(dict.fromkeys(systems))
    with progress("Measuring") as tell:
        found = [one for data in parts for one in measure(data, chosen, decay, limit, tell)]
    rows = [one.as_dict() for one in found]
    emit(rows[0] if len(rows) == 1 else rows, as_json, lambda: _table(rows))


@command.command("self")
@click.option(
    "--system",
    "systems",
    type=click.Choice(SYSTEMS[:-1]),
    multiple=True,
    default=("hybrid", "bm25", "dense"),
    help="May be given again.",
)
@click.option("--with", "settings", multiple=True, metavar="NAME=VALUE", help="Also hybrid with this recall setting.")
@json_option
@click.pass_context
@examples(
    "mdmem bench self",
    "mdmem bench self --system hybrid --system rrf --json",
    "mdmem bench self --system hybrid --with recall.mmr=on --with recall.bm25_weight=0.6",
)
def own(ctx: click.Context, systems: tuple[str, ...], settings: tuple[str, ...], as_json: bool) -> None:
    """Ask your own store for its notes by their titles and summaries.

    The words stand in the notes, so the figures are high: they are for comparing settings.
    """
    from mdmem.config import DEFAULTS
    from mdmem.recall.bench import measure_own

    changed = []
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in DEFAULTS or name.split(".")[0] not in ("recall", "rerank"):
            raise UsageError(f"--with cannot be {setting!r}", why="it names a setting of recall", hint="--with recall.mmr=on")
        changed.append((name, value))
    store = open_store(ctx)
    with progress("Measuring") as tell:
        found = measure_own(store, tuple(dict.fromkeys(systems)), tell, changed)
    rows = [one.as_dict() for one in found]
    emit(rows[0] if len(rows) == 1 else rows, as_json, lambda: _table(rows))


def _table(rows: list[dict[str, object]]) -> None:
    names = ("recall@1", "recall@5", "recall@10", "mrr", "p50_ms", "p95_ms")
    before, wide = None, 9
    for row in rows:
        if row["file"] != before:
            before = row["file"]
            say(f"{before}: {row['questions']} questions, {row['docs']} documents")
            wide = max(9, *(len(str(other["system"])) + 1 for other in rows))
            say("system".ljust(wide) + "".join(f"{name:>11}" for name in names))
        say(str(row["system"]).ljust(wide) + "".join(f"{row[name]!s:>11}" for name in names))
