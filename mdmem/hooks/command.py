"""The command of a hook entry; it lives where the installers are."""

from mdmem.install.command import hook_argv

__all__ = ["hook_argv"]
