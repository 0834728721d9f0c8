"""mdmem completion: print the completion script of a shell."""

from __future__ import annotations

import click

from mdmem.cli.opening import examples
from mdmem.cli.output import say
from mdmem.errors import UsageError


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@examples('eval "$(mdmem completion bash)"', "mdmem completion fish > ~/.config/fish/completions/mdmem.fish")
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    root = ctx.find_root().command
    if kind is None:
        raise UsageError(f"no completion for {shell}")
    completion = kind(root, {}, "mdmem", "_MDMEM_COMPLETE")
    say(completion.source())
