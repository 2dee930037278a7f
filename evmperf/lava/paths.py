"""Where LAVA's files are: in the repository, and of a lab that runs."""

from pathlib import Path

from evmperf.model.places import project
from evmperf.runs import folders

JOBS = project("lava-jobs")
TEMPLATES = JOBS / "templates"
DEVICE_TYPES = JOBS / "device-types"
LAB = JOBS / "lab"
HOST_PACKAGES = LAB / "host-packages.txt"


def lab_state() -> Path:
    """The folder of the running lab (absolute), which may not exist."""
    return folders.state_dir().absolute() / "lava-lab"
