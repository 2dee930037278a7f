"""Who holds which board: a place through Labgrid's own client session, or locks on this machine."""
