"""Which system a board runs, and whether it is the image that was put on it."""

import re
from collections.abc import Sequence
from pathlib import Path

from evmperf.lab.provision import identity
from evmperf.lab.provision.identity import SystemIdentity
from evmperf.measure import provenance
from evmperf.measure.bench import Shell
from evmperf.model.errors import LabError

_TIMEOUT_S = 30.0
_EXT_MAGIC = 0xEF53
_COMPARED = (
    (
        "U-Boot",
        "uboot",
        ": does the board start from another medium (eMMC boot partition, OSPI), as its boot-mode "
        "switches say?",
    ),
    ("kernel", "kernel", ""),
    ("build of the kernel", "kernel_version", ""),
    ("operating system", "name", ""),
    ("release", "release", ""),
    ("machine", "machine", ""),
    ("root partition", "root", ": does its U-Boot boot from another medium than boot.medium?"),
)
SCRIPT = Path(__file__).with_name("running.sh").read_text("utf-8")


class Running(SystemIdentity, frozen=True, kw_only=True):
    """A running system; `medium` is the serial number of its root's disk, `mounts` how often the root was
    mounted for writing on any host, None if unknown.
    """

    medium: str = ""
    mounts: int | None = None


def banner(console: Sequence[str]) -> str:
    """U-Boot's first line in what a board said, the last there is: "" if it said none."""
    return identity.banner("\n".join(reversed(console)).encode())


def ask(shell: Shell, console: Sequence[str]) -> Running:
    """Ask a board by its shell; `console` are the lines of its boot, for U-Boot's banner."""
    return parse(shell.run(SCRIPT, _TIMEOUT_S).text, banner(console))


def parse(text: str, uboot: str) -> Running:
    """Read what SCRIPT printed."""
    section = r"^=(\w+)\n(.*?)(?=^=\w+$|\Z)"
    parts = dict(re.findall(section, text.replace("\r", ""), re.MULTILINE | re.DOTALL))
    values = {name: value.strip() for name, value in parts.items()}
    # Where there is no lsblk, the kernel was told its root.
    told = re.search(r"\broot=PARTUUID=(\S+)", values.get("command_line", ""))
    mounts = re.fullmatch(rf"([0-9]{{1,5}})\s+[0-9]+\s+{_EXT_MAGIC}", values.get("superblock", ""))
    return Running(
        kernel=values.get("kernel", ""),
        kernel_version=values.get("kernel_version", ""),
        machine=values.get("machine", ""),
        build_id=provenance.assignments(values.get("own_release", "")).get("BUILD_ID", ""),
        os_release=provenance.assignments(values.get("os_release", "")),
        root=values.get("partuuid") or (told[1].lower() if told else ""),
        uboot=uboot,
        medium=" ".join(values.get("medium", "").split()),
        # s_mnt_count (Linux, Documentation/filesystems/ext4/super.rst), where it is ext4's.
        mounts=int(mounts[1]) if mounts else None,
    )


def check(says: SystemIdentity, runs: SystemIdentity, *, own_loader: bool = True) -> None:
    """Raise LabError if a known value differs from the image; `own_loader`: U-Boot is the image's."""
    # U-Boot first of all: an old loader explains everything after it.
    for what, name, hint in _COMPARED[0 if own_loader else 1 :]:
        asked, actual = getattr(says, name), getattr(runs, name)
        if asked and actual and asked.split() != actual.split():
            raise LabError(
                f"the board did not boot the image it was given: its {what} is {actual!r}, the "
                f"image's is {asked!r}{hint}"
            )
