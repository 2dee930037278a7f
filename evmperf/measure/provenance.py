"""Facts about a board and its software that travel with every number, and the addresses of a run.

GitLab's variables: https://docs.gitlab.com/ci/variables/predefined_variables/
"""

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from evmperf import __version__
from evmperf.benchmarks.tools import control
from evmperf.boards import yamlfile
from evmperf.model.facts import Facts

_CARD = ("device", "type", "name", "cid", "sectors_512")
LABEL = "facts"
"""Name of the step that gathers the facts."""


_ASKED = yamlfile.own("measure/provenance.yaml")
"""Shell text, and words by program."""
DISTRIBUTIONS: Sequence[str] = _ASKED["distributions"]


def script(tools: Iterable[str]) -> str:
    """The step that gathers all facts, the versions of `tools` among them."""
    return f"{_ASKED['facts']}\n{tool_script(tools)}"


def tool_script(tools: Iterable[str]) -> str:
    """The step that gathers the versions of the installed `tools`."""
    arguments = {tool: _ASKED["arguments"].get(tool, "--version") or "" for tool in sorted(set(tools))}
    probes = [f"version {tool} {argument}".rstrip() for tool, argument in arguments.items()]
    return "\n".join([_ASKED["version"], *probes, "true"])


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
            "temperatures_millicelsius": {
                zone: degrees
                for zone, _, value in (
                    s.rpartition(" ") for s in files.get("temperatures", "").splitlines(True)
                )
                if (degrees := control.millicelsius(value)) is not None
            },
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


RESULTS = "EVMPERF_RESULTS_URL"
"""The address below which the lab serves the folder of results."""


def addresses(results: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The addresses of a run in the folder `results`; {} at a desk.

    A GitLab job serves its artifacts below its own address until they expire. A lab that serves
    its results itself sets EVMPERF_RESULTS_URL.
    """
    job, project = environment.get("CI_JOB_URL", ""), environment.get("CI_PROJECT_DIR", "")
    served = environment.get(RESULTS, "")
    if job and project and not served and results.absolute().is_relative_to(project):
        inside = results.absolute().relative_to(project).as_posix()
        served = f"{job}/artifacts/file/{inside}"
    by_kind = {"job": job, "pipeline": environment.get("CI_PIPELINE_URL", ""), "results": served.rstrip("/")}
    return {name: address for name, address in by_kind.items() if address}


def assignments(text: str) -> dict[str, str]:
    """os-release(5): NAME=value, optionally quoted."""
    pairs = re.findall(r"""^([A-Z_]+)=["']?(.*?)["']?$""", text, re.MULTILINE)
    return dict(pairs)


def _number(text: str) -> int | None:
    match = re.search(r"\d+", text)
    return int(match.group()) if match else None
