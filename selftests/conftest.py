"""The project's own tests need no board; run them with `pytest selftests`."""

import hypothesis

# The same examples on every machine and every day: a red selftest is a change, not a dice roll.
hypothesis.settings.register_profile(
    "selftests", derandomize=True, database=None, deadline=None, max_examples=150
)
hypothesis.settings.load_profile("selftests")
