"""mdmem trust: allow a store to be written, injected and pushed to."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import emit, json_option, place, say


@click.command("trust")
@json_option
@click.pass_context
@examples("mdmem trust", "mdmem -C ~/work/team-notes trust")
def command(ctx: click.Context, as_json: bool) -> None:
    """Trust the store that you are in, on this machine.

    A store that mdmem neither made nor cloned here is only read. Trusting it allows mdmem to write notes to it,
    to put them before an agent and to push. The choice is kept on your side, by the store's id and remote.
    """
    from mdmem.locate import trust
    from mdmem.setup import ensure_identity, without_links

    store = open_store(ctx)
    if store.location.hindrance is not None:
        raise store.location.hindrance
    already = store.trusted
    without_links(store.location)
    store_id = ensure_identity(store.location)
    trust(store_id, store.location.remote, store.location.git.top)
    data = {"store": str(store.root), "id": store_id, "remote": store.location.remote, "trusted": True, "already": already}
    emit(data, as_json, lambda: say(f"{'Already trusted' if already else 'Trusted'}: {place(store.root)}"))
