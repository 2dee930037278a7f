"""Judging runs: same, better, worse, cannot tell or not comparable, and why; A/B and bisection."""
