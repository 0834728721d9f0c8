"""mdmem lease: exclusive rights to edit a note, across machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, note, say
from mdmem.clock import seconds, stamp

if TYPE_CHECKING:
    from mdmem.repo.lease import Taken
    from mdmem.store import Store

ttl_option = click.option("--ttl", metavar="TIME", default="30s", show_default=True, help="How long it holds.")


@click.group("lease")
@examples("mdmem lease acquire mem-4k2j7q --ttl 5m", "mdmem lease release mem-4k2j7q", "mdmem lease list")
def command() -> None:
    """Take, renew, give back and list leases: exclusive rights to edit a note across machines.

    Offline, or where the remote takes no leases, a lease is a lock of this machine, and says so. Time is counted by each
    machine's own clock from when it first sees a lease, so a crash never locks a note for good.
    """


def _known(store: Store, reference: str) -> str:
    from mdmem.recall.select import note_by

    row = note_by(store, reference)
    return str(row["id"] or row["path"])


def _print(store: Store, taken: Taken, as_json: bool) -> None:
    lease = taken.lease
    data = {**lease.as_dict(store.clock.now()), "notice": taken.notice}
    emit(data, as_json, lambda: say(f"{clean(lease.id)} is yours until {stamp(lease.until)}"))
    if taken.notice:
        note(f"note: {clean(taken.notice)}")


@command.command("acquire")
@click.argument("reference", metavar="NOTE")
@ttl_option
@json_option
@click.pass_context
@examples("mdmem lease acquire mem-4k2j7q", "mdmem lease acquire project-apollo --ttl 10m")
def acquire(ctx: click.Context, reference: str, ttl: str, as_json: bool) -> None:
    """Take the lease of a note; exit code 5 while somebody else has it."""
    from mdmem.repo import lease

    store = open_store(ctx, need="write")
    taken = lease.acquire(store.git, _known(store, reference), str(store.identity), seconds(ttl), store.clock)
    _print(store, taken, as_json)


@command.command("renew")
@click.argument("reference", metavar="NOTE")
@ttl_option
@json_option
@click.pass_context
@examples("mdmem lease renew mem-4k2j7q", "mdmem lease renew mem-4k2j7q --ttl 10m")
def renew(ctx: click.Context, reference: str, ttl: str, as_json: bool) -> None:
    """Start the time of your lease anew; exit code 3 when you do not hold it."""
    from mdmem.repo import lease

    store = open_store(ctx, need="write")
    taken = lease.renew(store.git, _known(store, reference), str(store.identity), seconds(ttl), store.clock)
    _print(store, taken, as_json)


@command.command("release")
@click.argument("reference", metavar="NOTE")
@json_option
@click.pass_context
@examples("mdmem lease release mem-4k2j7q", "mdmem lease release project-apollo --json")
def release(ctx: click.Context, reference: str, as_json: bool) -> None:
    """Give your lease back."""
    from mdmem.repo import lease

    store = open_store(ctx, need="write")
    name = _known(store, reference)
    done = lease.release(store.git, name, str(store.identity), store.clock)
    words = "given back" if done else "was not leased"
    emit({"id": name, "released": done}, as_json, lambda: say(f"{clean(name)}: {words}"))


@command.command("list")
@json_option
@click.pass_context
@examples("mdmem lease list", "mdmem lease list --json")
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the leases as of the last sync; nothing is fetched."""
    from mdmem.recall.select import unreadable
    from mdmem.repo import lease

    store = open_store(ctx)
    now = store.clock.now()
    rows: list[dict[str, Any]] = []
    closed = unreadable(store)
    for entry in sorted(lease.observe(store.git, store.clock).values(), key=lambda entry: entry.id):
        if entry.id in closed:
            continue
        rows.append({**entry.as_dict(now), "mine": entry.holder == str(store.identity)})

    def human() -> None:
        for row in rows:
            state = "expired" if row["expired"] else f"until {row['until']}"
            say(f"{clean(row['id'])}  {clean(row['holder'])}  {state}{'  (this machine only)' if row['local'] else ''}")
        if not rows:
            say("No leases.")

    emit(rows, as_json, human)
