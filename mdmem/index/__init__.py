"""Derived search state: catalog, edges, text, vectors, refresh. All of it can be deleted."""
