"""mdmem quickstart: a store, a first memory, and what to do next."""

from __future__ import annotations

from pathlib import Path

import click

from mdmem.cli.opening import examples
from mdmem.cli.output import emit, json_option, note, place, say


@click.command("quickstart")
@click.argument("directory", default="~/mdmem", required=False)
@json_option
@examples("mdmem quickstart", "mdmem quickstart ~/notes/memory")
def command(directory: str, as_json: bool) -> None:
    """Make a store, use it by default, keep a first memory in it and find it again.

    The store is made in ~/mdmem unless you name another folder. Running it again changes nothing.
    """
    from mdmem.config import load_config
    from mdmem.config_edit import set_value
    from mdmem.memory.remember import Memory, remember
    from mdmem.recall.query import Query
    from mdmem.recall.recall import recall
    from mdmem.setup import init
    from mdmem.store import Store

    made = init(Path(directory))
    if not load_config().get("default_store"):
        set_value("default_store", str(made.root))
    store = Store.open(made.root, need="write")
    text = "mdmem keeps its memories as markdown files in a git repository, so any editor can open them."
    kept = remember(store, Memory("fact", text, tags=["mdmem"], scope="shared"))
    found = recall(store, Query("how does mdmem keep memories", limit=1, mode="keyword"))
    data = {**made.as_dict(), "remembered": kept.as_dict(), "recalled": [hit.as_dict() for hit in found.results]}

    def human() -> None:
        say(f"{'Already there' if made.already else 'Made'}: a store at {place(made.root)}")
        say("It is used wherever no other store is nearer.")
        say(f"Kept a first memory: {kept.path}")
        say("Found it again by words.")
        say("")
        say("Now you:")
        say('  mdmem remember decision "We deploy on Thursdays" --tags deploy')
        say('  mdmem recall "when do we deploy"')
        say("  mdmem install claude-code        # an agent remembers without being told")
        say("  mdmem remote add origin URL && mdmem sync   # a second machine")

    emit(data, as_json, human)
    for text in made.notices:
        note(f"note: {text}")
