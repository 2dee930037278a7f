"""Real guides, consoles and outputs to test with, which are not part of the project: they may not
be there. Each test that needs some has the mark of `needs`, whose reason pytest's summary lists.
"""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def place(part):
    """The nearest shared/PART beside the checkout or above; where it would be if there is none."""
    if part == "seeds" and (given := os.environ.get("EVMPERF_SEEDS")):
        return Path(given)
    places = [parent / "shared" / part for parent in ROOT.parents]
    return next((path for path in places if path.is_dir()), places[0])


def needs(part):
    """The mark of tests that are skipped where shared/PART is not."""
    reason = f"shared/{part} is not beside the checkout"
    return pytest.mark.skipif(not place(part).is_dir(), reason=reason)


def files():
    """All seed guides; none where they are not."""
    return sorted(place("seeds").glob("*.txt"))


def real(folder, pattern):
    """Files of shared/real/FOLDER; none where they are not."""
    return sorted(place(f"real/{folder}").glob(pattern))
