"""Pytest finds evmperf's plugin through this file; nothing else belongs here."""

pytest_plugins = [
    "pytest_evmperf.plugin",
    "pytest_evmperf.terminal",
    "pytest_evmperf.report",
    "pytest_evmperf.lava",
]
