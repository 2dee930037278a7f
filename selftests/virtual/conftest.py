"""Benches of their own for the tests: own state folder, free ports, the user's image."""

import contextlib

import pytest
from benchlab import processes
from evmperf_virtual import image
from evmperf_virtual.client import LabClient, all_benches

from selftests.support.stamps import Heard


@pytest.fixture(scope="session")
def built_image():
    """The image that all tests share; made if it is not there."""
    return image.build("virtual", progress=print)


@pytest.fixture(scope="session")
def state(tmp_path_factory):
    """A state folder for the tests only, so that a bench in use is left alone."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_STATE", str(folder))
        yield folder


@pytest.fixture
def make_bench(state, built_image):
    """Start benches on free ports; afterwards nothing may be left of any of them."""

    def make(name="unit", **options):
        bench = LabClient(name)
        assert bench.start(**{"serial_port": 0, "power_port": 0, **options})
        return bench

    try:
        yield make
    finally:
        for bench in all_benches():
            if bench.name != "shared":
                bench.stop()
    assert not processes(state), "a process is left behind"
    assert not [bench for bench in all_benches() if bench.running and bench.name != "shared"]


@pytest.fixture(scope="module")
def shared_bench(state, built_image):
    """One bench for tests that never switch it on."""
    bench = LabClient("shared")
    bench.start(serial_port=0, power_port=0)
    yield bench
    bench.stop()


@pytest.fixture
def bench(make_bench):
    return make_bench()


@pytest.fixture
def console(bench):
    with contextlib.closing(Heard(bench)) as heard:
        yield heard
