"""The analytical store: the runs of all labs as columns, made of the spools (docs/store.md)."""
