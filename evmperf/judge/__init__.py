"""Judging runs: same, better, worse, cannot tell or not comparable, and why; A/B."""

import os

# Its matrices are small: threads would cost more than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
