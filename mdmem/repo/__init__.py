"""Git: the runner, history, merge, sync, leases. The only place that runs git."""
