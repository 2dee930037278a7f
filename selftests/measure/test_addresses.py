"""Where a run says it can be looked at later."""

import pytest

from evmperf.measure.provenance import addresses
from evmperf.model.run import Run

JOB = "https://gitlab.lab/lab/evmperf/-/jobs/7"
GITLAB = {"CI_JOB_URL": JOB, "CI_PIPELINE_URL": "https://gitlab.lab/lab/evmperf/-/pipelines/3"}


@pytest.mark.parametrize(
    ("given", "report"),
    [
        ({}, ""),  # at a desk
        ({**GITLAB, "CI_PROJECT_DIR": "{}"}, f"{JOB}/artifacts/file/results/am64x-1/report.html"),
        ({**GITLAB, "CI_PROJECT_DIR": "{}/project"}, ""),  # results elsewhere are no artifacts
        (
            {**GITLAB, "CI_PROJECT_DIR": "{}", "EVMPERF_RESULTS_URL": "https://lab/results/"},
            "https://lab/results/am64x-1/report.html",
        ),
    ],
    ids=["desk", "job", "elsewhere", "served"],
)
def test_a_run_is_found_where_its_lab_or_its_job_has_it(tmp_path, given, report):
    found = addresses(tmp_path / "results", {name: text.format(tmp_path) for name, text in given.items()})
    assert Run("am64x-1", "am64x", "full", addresses=found).report == report
    pages = [GITLAB[name] for name in ("CI_JOB_URL", "CI_PIPELINE_URL") if name in given]
    assert [found[name] for name in ("job", "pipeline") if name in found] == pages
