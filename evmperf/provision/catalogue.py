"""A lab's own list of releases: which image a board of a machine gets for a release's name.

The file that EVMPERF_RELEASES names, in YAML:

    "11.01":
      am64xx-evm:
        image: https://files.example.com/am64x/tisdk-default-image-am64xx-evm.rootfs.wic.xz
        sha256: 0f3c...
"""

import difflib
import os
from dataclasses import dataclass
from pathlib import Path

from evmperf.boards import yamlfile
from evmperf.model.errors import UsageError
from evmperf.provision import download

VARIABLE = "EVMPERF_RELEASES"


@dataclass(frozen=True)
class ImageSource:
    """Where an image comes from, with its checksum and release if the list names them."""

    where: str
    sha256: str = ""
    release: str = ""


def find(given: str, machine: str) -> ImageSource:
    """The file, URL or release that `--image` means for this machine; raises UsageError."""
    if download.is_url(given) or Path(given).expanduser().is_file():
        return ImageSource(given)
    path = os.environ.get(VARIABLE, "")
    if not path:
        raise UsageError(
            f"there is no image {given}: it is neither a file nor a URL, and {VARIABLE} names no list of "
            f"releases (docs/provisioning.md)"
        )
    releases = load(Path(path))
    if given not in releases:
        near = difflib.get_close_matches(given, releases, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(releases) or 'none'}"
        raise UsageError(f"{path} has no release {given}; {hint}")
    machines = releases[given]
    if machine not in machines:
        raise UsageError(
            f"{path} has no image of release {given} for the machine {machine or '(none)'}, which "
            f"the board file names as image.machine; there are {', '.join(machines)}"
        )
    entry = machines[machine]
    return ImageSource(entry["image"], entry.get("sha256", "").lower(), given)


def load(path: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Read a list of releases; raises UsageError that names the file and the entry."""
    data = yamlfile.read(path)
    if not isinstance(data, dict):
        raise UsageError(f"{path} must map releases to machines")
    found: dict[str, dict[str, dict[str, str]]] = {}
    for release, machines in data.items():
        if not isinstance(machines, dict):
            raise UsageError(f"{path}: release {release} must map machines to images")
        for machine, entry in machines.items():
            where = f"{path}: release {release}, machine {machine}"
            if not isinstance(entry, dict) or not isinstance(entry.get("image"), str):
                raise UsageError(f"{where}: write image: FILE or URL")
            if more := sorted(set(entry) - {"image", "sha256"}):
                raise UsageError(f"{where}: unknown word {more[0]!r}; known are image and sha256")
            if not download.is_url(entry["image"]):
                # Paths are relative to the list.
                entry["image"] = str(path.parent / entry["image"])
            found.setdefault(str(release), {})[str(machine)] = entry
    return found
