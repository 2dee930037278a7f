"""LAVA labs of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from evmperf.commands.lava.server import TOKEN_VARIABLE, URL_VARIABLE
from selftests.support import lavalab as labs
from selftests.support.lavalab import Lab


@contextmanager
def started(tmp_path_factory: pytest.TempPathFactory, variant: str) -> Iterator[Lab]:
    """LAVA's server and worker, and two virtual EVMs, on free ports."""
    state = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_STATE", str(state))
        patch.setenv("XDG_CONFIG_HOME", str(state / "no-config"))
        for name in (URL_VARIABLE, TOKEN_VARIABLE):
            patch.delenv(name, raising=False)
        try:
            yield labs.up(print, variant)
        finally:
            labs.down()
