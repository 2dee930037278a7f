"""The boot strategies for board files that import this file; new ones import evmperf.lab.strategy."""

from evmperf.lab.strategy import BootStrategy, K3BootStrategy

__all__ = ["BootStrategy", "K3BootStrategy"]
