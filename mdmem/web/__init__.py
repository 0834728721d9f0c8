"""The local dashboard: a page on loopback, and the same page as one file."""
