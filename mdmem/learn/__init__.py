"""What the memory learns: write decision, extraction from sessions, consolidation, review."""
