"""Questions asked of the relation graph: blockers, diff, reconcile, pictures."""
