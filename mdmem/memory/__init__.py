"""What happens to a memory: remember, set, forget, lifecycle, capture, consolidate."""
