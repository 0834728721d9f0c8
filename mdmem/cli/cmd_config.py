"""mdmem config: read and write the user's settings."""

from __future__ import annotations

from typing import Any

import click

from mdmem.cli.opening import examples
from mdmem.cli.output import emit, json_option, say
from mdmem.config import DEFAULTS, Config, load_config


def _config(ctx: click.Context) -> Config:
    from mdmem.errors import MdmemError
    from mdmem.locate import find

    try:
        root = find((ctx.find_root().obj or {}).get("directory")).root
    except MdmemError:
        root = None
    return load_config(root)


@click.group("config")
@examples("mdmem config list", "mdmem config get recall.limit", "mdmem config set recall.decay_window off")
def command() -> None:
    """Show and change your settings.

    They are kept in config.toml in your configuration folder; comments and order in it are kept.
    """


@command.command("list")
@json_option
@click.pass_context
@examples("mdmem config list", "mdmem config list --json")
def list_(ctx: click.Context, as_json: bool) -> None:
    """List every setting, its value and where the value comes from."""
    config = _config(ctx)
    data = {name: {"value": config.get(name), "source": config.source(name), "default": DEFAULTS[name]} for name in DEFAULTS}

    def human() -> None:
        width = max(map(len, data))
        for name, row in data.items():
            origin = "" if row["source"] == "default" else f"  ({row['source']})"
            say(f"{name:<{width}}  {shown(row['value'])}{origin}")

    emit(data, as_json, human)


@command.command("get")
@click.argument("name")
@json_option
@click.pass_context
@examples("mdmem config get recall.limit", "mdmem config get default_store --json")
def get(ctx: click.Context, name: str, as_json: bool) -> None:
    """Print one setting."""
    config = _config(ctx)
    value = config.get(name)
    emit({"name": name, "value": value, "source": config.source(name)}, as_json, lambda: say(shown(value)))


@command.command("set")
@click.argument("name")
@click.argument("value")
@json_option
@examples("mdmem config set default_store ~/memory", "mdmem config set recall.decay_window off")
def set_(name: str, value: str, as_json: bool) -> None:
    """Set one setting in your configuration file."""
    from mdmem.config_edit import set_value

    path, stored = set_value(name, value)
    emit({"name": name, "value": stored, "file": str(path)}, as_json, lambda: say(f"{name} = {shown(stored)}"))


@command.command("unset")
@click.argument("name")
@json_option
@examples("mdmem config unset recall.limit", "mdmem config unset default_store --json")
def unset(name: str, as_json: bool) -> None:
    """Go back to the default of one setting."""
    from mdmem.config_edit import set_value

    path, _ = set_value(name, None)
    emit({"name": name, "value": DEFAULTS[name], "file": str(path)}, as_json, lambda: say(f"{name} is back to its default"))


def shown(value: Any) -> str:
    """Return a value as a person reads it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
