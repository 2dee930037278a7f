"""The published guides to test with, which are not part of the project: they may not be there."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def folder():
    """EVMPERF_SEEDS, or the nearest shared/seeds beside the checkout or above; None if none."""
    if given := os.environ.get("EVMPERF_SEEDS"):
        return Path(given)
    found = (parent / "shared" / "seeds" for parent in ROOT.parents)
    return next((path for path in found if path.is_dir()), None)


def files():
    """All seed guides; none where they are not."""
    place = folder()
    return sorted(place.glob("*.txt")) if place else []


def real(folder, pattern):
    """Files of shared/real/FOLDER, which are not part of the project; none where they are not."""
    found = (parent / "shared" / "real" / folder for parent in ROOT.parents)
    place = next((path for path in found if path.is_dir()), None)
    return sorted(place.glob(pattern)) if place else []
