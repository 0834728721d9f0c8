"""The local dashboard."""
