"""How fast evmperf itself is, each figure beside a reference taken in the same run.

`make bench`, or `python -m selftests.speed [NAME...]`. A benchmark, not a test: it always ends
well, and the table says which goals were met.
"""
