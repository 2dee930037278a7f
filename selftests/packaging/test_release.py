"""What a release says of itself."""

import re
from pathlib import Path

import evmperf

ROOT = Path(__file__).parents[2]


def test_the_newest_release_of_the_changelog_is_this_version():
    releases = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert releases[0] == "Unreleased" or releases[0].startswith(f"{evmperf.__version__} (")
    dated = [release for release in releases if release != "Unreleased"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", release) for release in dated)
    numbers = [tuple(map(int, release.split()[0].split("."))) for release in dated]
    assert numbers == sorted(numbers, reverse=True)
    assert dated[0].startswith(f"{evmperf.__version__} (")
