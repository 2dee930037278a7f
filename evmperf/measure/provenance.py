"""Facts about a board and its software that travel with every number."""

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from evmperf import __version__
from evmperf.model.facts import Facts

_VERSION_ARGUMENT = {
    **dict.fromkeys(["mpstat", "mkfs.ext2", "mkfs.ext3", "mkfs.ext4", "netperf", "netserver", "ip"], "-V"),
    **{"mkfs.vfat": "--help", "cyclictest": "--help", "openssl": "version"},
}
_MUTE = {"bw_mem", "runDhrystone", "runWhetstone", "runLinpack", "runNBench.sh", "stream_c"}
"""Programs that start to measure when called for their version."""

DISTRIBUTIONS = frozenset((
    "alpine", "arch", "archarm", "armbian", "buildroot", "debian", "fedora", "opensuse-leap", "raspbian",
    "ubuntu",
))  # fmt: skip
"""os-release's ID of systems whose version is their own, no SDK's."""

_VERSION = r"""
version() { # PROGRAM [ARGUMENT that makes it tell its version]
  p=$(command -v $1) || return 0
  v=; [ $# = 1 ] || v=$("$@" 2>&1 </dev/null | head -n 1)
  case "$v" in "" | *invalid* | *unrecognized* | *[Uu]nknown* | *[Uu]sage*)
    v="sha256 $(sha256sum <$p | cut -c 1-16)";;
  esac
  echo "$v" >"$OUT/tool_$1"
}""".strip()
"""The version of a program, or its checksum if it has none."""

_CARD = ("device", "type", "name", "cid", "sectors_512")
LABEL = "facts"
"""Name of the step that gathers the facts."""

SCRIPT = r"""
cd "$OUT"
uname -r >kernel; uname -v >kernel_version; uname -m >machine
cat /sys/kernel/realtime >realtime 2>/dev/null
cat /etc/os-release >os_release 2>/dev/null
cat /etc/evmperf-release >image_release 2>/dev/null
cat /proc/cmdline >command_line
tr -d '\0' </proc/device-tree/model >model 2>/dev/null
tr -d '\0' </proc/device-tree/serial-number >serial_number 2>/dev/null
grep MemTotal /proc/meminfo >memory
sha256sum /sys/firmware/fdt >device_tree 2>/dev/null
nproc >cpus
for f in /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor \
         /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq; do
  [ -r $f ] && cat $f >$(basename $f)
done
for z in /sys/class/thermal/thermal_zone*; do
  [ -r $z/temp ] && echo "$(cat $z/type) $(cat $z/temp)"
done >temperatures
for d in /sys/block/mmcblk*; do
  [ -r $d/device/cid ] && echo "$(basename $d) $(cat $d/device/type) $(cat $d/device/name) \
$(cat $d/device/cid) $(cat $d/size)"
done >cards
for d in /sys/class/nvme/nvme*; do
  [ -r $d/model ] && echo "$(basename $d) $(cat $d/model)"
done >nvme
for d in /sys/bus/spi/devices/*/spi-nor; do
  [ -r $d/jedec_id ] && echo "$(cat $d/partname) $(cat $d/jedec_id)"
done >spi_nor
awk '$2=="/"{print $1, $3, $4}' /proc/mounts >root
"""
"""Shell text of a step (see evmperf.measure.shellstep) that leaves one file a fact."""


def script(tools: Iterable[str]) -> str:
    """The step that gathers all facts, the versions of `tools` among them."""
    return f"{SCRIPT.strip()}\n{tool_script(tools)}"


def tool_script(tools: Iterable[str]) -> str:
    """The step that gathers the versions of the installed `tools`."""
    asked = {tool: "" if tool in _MUTE else _VERSION_ARGUMENT.get(tool, "--version") for tool in set(tools)}
    probes = [f"version {tool} {argument}".rstrip() for tool, argument in sorted(asked.items())]
    return "\n".join([_VERSION, *probes, "true"])


def tools(files: Mapping[str, str]) -> dict[str, str]:
    """Versions by tool from the files of `tool_script`."""
    return {name.removeprefix("tool_"): v.strip() for name, v in files.items() if name.startswith("tool_")}


def parse(files: Mapping[str, str]) -> Facts:
    """Facts from the step's files; facts that a board does not show are absent.

    Memory in KiB, frequency in kHz, temperatures in thousandths of a degree Celsius, sizes of
    cards in 512-byte sectors, as the kernel gives them; the keys say so.
    """
    text = {name: content.strip() for name, content in files.items()}
    os_release = assignments(text.get("os_release", ""))
    rt = text.get("realtime") == "1" or "PREEMPT_RT" in text.get("kernel_version", "")
    same = ("kernel", "kernel_version", "machine", "model", "serial_number", "command_line", "root")
    return Facts.from_dict(
        {
            **{name: text.get(name, "") for name in same},
            **{name: text.get(name, "").splitlines() for name in ("nvme", "spi_nor")},
            "os": "RT-linux" if rt else "Linux",  # the guides' names
            "root_file_system": os_release.get("PRETTY_NAME", ""),
            "image": assignments(text.get("image_release", "")).get("BUILD_ID", ""),
            "device_tree_sha256": text.get("device_tree", "").split(" ")[0],
            "memory_kib": _number(text.get("memory", "")),
            "cpus": _number(text.get("cpus", "")),
            "governor": text.get("scaling_governor", ""),
            "frequency_khz": _number(text.get("scaling_cur_freq", "")),
            "temperatures_millicelsius": _pairs(text.get("temperatures", "")),
            "cards": [dict(zip(_CARD, c.split(), strict=False)) for c in text.get("cards", "").splitlines()],
            "tools": tools(files),
        }
    )


def release(facts: Facts, files: Mapping[str, str]) -> str:
    """The SDK release as the image states it, see `release_of`."""
    return release_of(facts.image, assignments(files.get("os_release", "")))


def release_of(build_id: str, os_release: Mapping[str, str]) -> str:
    """The release of an image or a running board: BUILD_ID, else VERSION_ID of os-release, unless
    that is the version of a distribution that knows no SDK; else "".
    """
    sdk = os_release.get("ID", "") not in DISTRIBUTIONS
    return build_id or os_release.get("BUILD_ID", "") or (sdk and os_release.get("VERSION_ID", "")) or ""


def project() -> Facts:
    """Version and revision of evmperf itself; a changed checkout is marked `-dirty`."""
    facts = Facts(evmperf=__version__)
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return facts
    if described.returncode == 0:
        facts.evmperf_revision = described.stdout.strip()
    return facts


def assignments(text: str) -> dict[str, str]:
    """os-release(5): NAME=value, optionally quoted."""
    found = re.findall(r"""^([A-Z_]+)=["']?(.*?)["']?$""", text, re.MULTILINE)
    return dict(found)


def _number(text: str) -> int | None:
    match = re.search(r"\d+", text)
    return int(match.group()) if match else None


def _pairs(text: str) -> dict[str, int]:
    pairs = (line.rsplit(" ", 1) for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
