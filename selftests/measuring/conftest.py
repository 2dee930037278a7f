"""A virtual EVM of our own to measure and to break."""

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


@pytest.fixture(scope="session")
def virtual_bench(own_state):
    """A running bench with the power off."""
    with virtualbench.running("virtual") as bench:
        yield bench


@pytest.fixture(scope="session")
def env_file(virtual_bench, tmp_path_factory):
    """A board file for that bench."""
    return virtualbench.board_file(virtual_bench, "virtual", tmp_path_factory.mktemp("env"))


@pytest.fixture(scope="module")
def bench(env_file):
    """evmperf's bench on that board; one a module, since sessions of others power-cycle the same board."""
    with virtualbench.reached(env_file) as bench:
        yield bench


@pytest.fixture(scope="module")
def own_bench(own_state, request):
    """A running bench of the module's own, of its VARIANT, with the power off."""
    with virtualbench.running(request.module.VARIANT, f"own-{request.module.VARIANT}") as bench:
        yield bench


@pytest.fixture(scope="module")
def own_env_file(own_bench, request, tmp_path_factory):
    """A board file for that bench."""
    return virtualbench.board_file(own_bench, request.module.VARIANT, tmp_path_factory.mktemp("env"))
