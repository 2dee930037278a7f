"""Debian packages of any suite and architecture, unpacked without installing them.

apt itself does the work, with a state directory of its own, the host's proxy settings and
keyring, and the host's mirror: signatures are checked as for the host's own packages.

mmdebstrap, which builds the LAVA lab's root, does not replace this: it cannot omit a dependency of
another package, and it fetches neither single packages nor sources.
"""

import fnmatch
import os
import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self
from urllib.parse import urlparse

from evmperf.model.errors import LabError
from evmperf_virtual.steps import BuildSteps

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def mirror(steps: BuildSteps) -> str:
    """Return the base URI of the Debian archive that this host's apt uses."""
    if own := os.environ.get("EVMPERF_DEBIAN_MIRROR"):
        return own
    what, command = "Reading the host's apt sources", ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    found = steps.run([*command, "Component: main", "Origin: Debian", "Label: Debian"], what, "apt").split()
    if not found:
        # On a host that never ran `apt-get update` no source has an origin.
        listed = steps.run([*command, "--no-release-info", "Component: main"], what, "apt").split()
        found = [uri for uri in listed if Path(urlparse(uri).path).name == "debian"]
    if not found:
        raise LabError(
            "This host's apt sources name no Debian archive; set EVMPERF_DEBIAN_MIRROR to the URI "
            "of a Debian mirror and build again."
        )
    return found[0]


class DebianArchive:
    """One suite and architecture of the Debian archive, its index (of binary or source packages) fetched and
    checked. apt's files are in `folder`, which goes at the end of a `with`.
    """

    def __init__(
        self,
        steps: BuildSteps,
        folder: Path,
        suite: str,
        architecture: str = "arm64",
        component: str = "main",
        *,
        sources: bool = False,
    ) -> None:
        self._steps = steps
        self._folder = folder
        self._log = f"apt-{suite}-{architecture}"
        for sub in ("state/lists/partial", "cache/archives/partial", "etc"):
            (folder / sub).mkdir(parents=True, exist_ok=True)
        (folder / "state/status").touch()
        options = {
            "Dir::State": folder / "state",
            "Dir::State::status": folder / "state/status",
            "Dir::Cache": folder / "cache",
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": folder / "etc",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            "APT::Default-Release": "",
            "APT::Install-Recommends": "false",
            # The unprivileged user of a root's apt cannot read a cache under /root.
            "APT::Sandbox::User": "root" if os.geteuid() == 0 else "",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        }
        self._options = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        # The mirror goes into apt's own throw-away folder only, never into an image.
        (folder / "etc/evmperf.sources").write_text(
            f"Types: {'deb-src' if sources else 'deb'}\nURIs: {mirror(steps)}\n"
            f"Suites: {suite}\nComponents: {component}\nSigned-By: {KEYRING}\n"
        )
        # Without -e a failed signature is a warning for apt, which then uses its old index.
        command = ["apt-get", *self._options, "-eany", "update"]
        steps.run(command, f"Fetching the package index of Debian {suite}", self._log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if not failed:
            shutil.rmtree(self._folder)

    def resolve(self, names: list[str], leave_out: list[str]) -> list[str]:
        """The named packages and what they depend on, less the patterns in `leave_out`."""
        command = ["apt-get", *self._options, "--simulate", "install", *names]
        output = self._steps.run(command, "Choosing Debian packages", self._log)
        chosen = re.findall(r"^Inst ([^:\s]+)", output, re.MULTILINE)
        left_out = {name for pattern in leave_out for name in fnmatch.filter(chosen, pattern)}
        return [name for name in chosen if name not in left_out]

    def unpack(self, names: Iterable[str], target: Path) -> dict[str, str]:
        """Download packages, which apt checks, unpack their files into `target`, return their versions."""
        target.mkdir(parents=True, exist_ok=True)
        debs = self._folder / "debs"
        debs.mkdir(exist_ok=True)
        download = ["apt-get", *self._options, "download", *names]
        self._steps.run(download, "Downloading Debian packages", self._log, cwd=debs)

        def extract(file: Path) -> tuple[str, str]:
            what = f"Unpacking {file.name}"
            self._steps.run(["dpkg-deb", "--extract", file, target], what, self._log)
            name, version = self._steps.run(["dpkg-deb", "--show", file], what, self._log).split()
            return name, version

        # base-files first: its links of a merged /usr decide where the others' files go.
        first = set(debs.glob("base-files_*.deb"))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            groups = (first, set(debs.glob("*.deb")) - first)
            versions = dict(pair for group in groups for pair in pool.map(extract, group))
        shutil.rmtree(debs)
        return versions

    def unpack_source(self, source: str, target: Path, *members: str) -> None:
        """Unpack a source's upstream tarball, or `members` of it, into `target` without the top folder."""
        command = ["apt-get", *self._options, "--download-only", "--tar-only", "source", source]
        self._steps.run(command, f"Downloading the source of {source}", self._log, cwd=self._folder)
        tarballs = sorted(self._folder.glob(f"{source}_*.orig.tar.*[!c]"))
        if not tarballs:
            raise LabError(f"apt brought no source of {source}; see {self._steps.log_dir}/{self._log}.log.")
        target.mkdir()
        # Not tarfile, which needs five times as long.
        tar: list[str | Path] = ["tar", "--extract", "--no-same-owner", "--strip-components=1"]
        tar += ["--file", tarballs[0], "-C", target, *members]
        self._steps.run(tar, f"Unpacking the source of {source}", self._log)
