"""The pytest side of evmperf: options, fixtures, live progress and reports.

A package of its own because `evmperf` itself never imports pytest: the same runner serves LAVA.
"""
