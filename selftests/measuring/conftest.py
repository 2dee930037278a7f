"""A virtual EVM of each module's own to measure and to break: that of its VARIANT, or `virtual`."""

import pytest

from selftests.support import virtualbench


def pytest_addoption(parser):
    parser.addoption(
        "--all-rows", action="store_true", help="measure every row of every table, not one of each"
    )


@pytest.fixture(scope="session")
def own_state(tmp_path_factory):
    """A state folder of our own, so that a bench in use is not disturbed."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_STATE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def own_bench(own_state, request):
    """A running bench with the power off."""
    variant = getattr(request.module, "VARIANT", "virtual")
    with virtualbench.running(variant, f"own-{variant}") as bench:
        yield bench


@pytest.fixture(scope="module")
def env_file(own_bench, tmp_path_factory):
    """A board file for that bench."""
    return virtualbench.board_file(own_bench, own_bench.status().variant, tmp_path_factory.mktemp("env"))


@pytest.fixture(scope="module")
def bench(env_file):
    """evmperf's bench on that board."""
    with virtualbench.reached(env_file) as bench:
        yield bench
