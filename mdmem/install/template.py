"""Finds the installers' templates: beside the package in a checkout, inside it once installed."""

from __future__ import annotations

from pathlib import Path

from mdmem.errors import NotFound


def template(name: str) -> str:
    """Return the text of a template; raises NotFound when the installation lacks it."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "hook_templates", package.parent / "hooks"):
        try:
            return (folder / name).read_text("utf-8")
        except OSError:
            continue
    raise NotFound(f"the template {name} is missing from this installation", hint="install mdmem again")
