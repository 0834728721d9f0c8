"""mdmem mcp: the server for MCP clients."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples


@click.command("mcp")
@click.pass_context
@examples("mdmem mcp", "mdmem -C ~/memory mcp", "claude mcp add mdmem -- mdmem mcp")
def command(ctx: click.Context) -> None:
    """Serve the store to an MCP client on stdin and stdout.

    `mdmem install mcp claude` (or codex, cursor, vscode) sets a client up.
    """
    from mdmem.mcp.server import serve

    ctx.exit(serve((ctx.find_root().obj or {}).get("directory")))
