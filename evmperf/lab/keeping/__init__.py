"""Who holds which board: one keeper process a host, which every session asks before it acts.

A session holds its board through the keeper (`claim`), which holds the Labgrid place for it
(`places`), or a lock on this machine for a board without a coordinator (`locks`).
"""
