"""A lab of two scripted boards on loopback, whose environment is this process's, too."""

import pytest

from selftests.support.placelab import PlaceLab


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = PlaceLab(tmp_path_factory.mktemp("lab"), {"one": {"board": "fake"}, "two": {"board": "fake"}})
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LG_COORDINATOR", "EVMPERF_LOCKS", "EVMPERF_STATE"):
            patch.setenv(name, lab.environment[name])
        patch.setenv("LG_HOSTNAME", "here")
        patch.setenv("LG_USERNAME", "me")
        lab.environment |= {"LG_HOSTNAME": "here", "LG_USERNAME": "me"}
        yield lab
    lab.close()
