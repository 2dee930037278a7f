"""What a lab's machines have in common: SSH."""

import pytest

from selftests.support.sshd import Sshd


@pytest.fixture
def sshd(tmp_path):
    """An sshd on loopback that a test may stop."""
    folder = tmp_path / "sshd"
    folder.mkdir()
    sshd = Sshd(folder)
    yield sshd
    sshd.stop()
