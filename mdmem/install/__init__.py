"""Puts mdmem into the programs around it and takes it out again: settings files, git hooks, MCP, AGENTS.md."""
