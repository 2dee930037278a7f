"""A whole LAVA on this machine: server, worker, a lab host and a virtual EVM, on loopback only."""
