"""The project's own tests need no board; run them with `pytest selftests`."""

import hypothesis
import pytest

# The same examples on every machine and every day: a red selftest is a change, not a dice roll.
hypothesis.settings.register_profile(
    "selftests", derandomize=True, database=None, deadline=None, max_examples=150
)
hypothesis.settings.load_profile("selftests")


@pytest.fixture(autouse=True, scope="session")
def _own_history(tmp_path_factory):
    """No test adds to the history of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_HISTORY", str(tmp_path_factory.mktemp("history")))
        yield
