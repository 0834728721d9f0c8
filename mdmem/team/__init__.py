"""Agents working together: tasks, messages, sessions, agents, handoff."""
