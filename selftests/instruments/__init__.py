"""Programs that measure evmperf itself, and no tests: README.md lists them."""
