"""The addresses of a run: its CI job and its results.

GitLab's variables: https://docs.gitlab.com/ci/variables/predefined_variables/
"""

from collections.abc import Mapping
from pathlib import Path

RESULTS = "EVMPERF_RESULTS_URL"
"""The address below which the lab serves the folder of results."""


def of_run(results: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The addresses of a run in the folder `results`; {} at a desk.

    A GitLab job serves its artifacts below its own address until they expire. A lab that serves
    its results itself sets EVMPERF_RESULTS_URL.
    """
    job, project = environment.get("CI_JOB_URL", ""), environment.get("CI_PROJECT_DIR", "")
    served = environment.get(RESULTS, "")
    if job and project and not served and results.absolute().is_relative_to(project):
        inside = results.absolute().relative_to(project).as_posix()
        served = f"{job}/artifacts/file/{inside}"
    found = {"job": job, "pipeline": environment.get("CI_PIPELINE_URL", ""), "results": served.rstrip("/")}
    return {name: address for name, address in found.items() if address}
