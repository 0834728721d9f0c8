"""mdmem: a memory for coding agents, kept in a git repository of markdown files."""

__version__ = "0.1.0"
