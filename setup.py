"""Puts the project's folders of data into the wheel, where `evmperf.model.places` finds them."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDERS = ["env", "strategies", "tests", "baselines", "lava-jobs", "dashboards"]
FOLDERS += ["docs"]
GENERATED = ["grafana", "alerting"]
"""What `make dashboards` writes."""


class BuildWithProject(build_py):
    """build_py, and the folders beside the packages."""

    def run(self):
        """Build; an editable install reads the folders where they are."""
        super().run()
        if not self.editable_mode:
            for name in FOLDERS:
                shutil.copytree(
                    Path(__file__).parent / name,
                    Path(self.build_lib) / "evmperf" / "project" / name,
                    dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__", "*.pyc", "pictures", *GENERATED),
                )


setup(cmdclass={"build_py": BuildWithProject})
