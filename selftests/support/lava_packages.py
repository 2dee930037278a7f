"""LAVA's own schemas, device templates and test shell: its Debian packages, unpacked only."""

import copy
import fcntl
import shutil
import sys
import types

from evmperf_virtual.debian import DebianArchive
from evmperf_virtual.steps import BuildSteps

from evmperf.commands.lava.devices import DEVICE_TYPES
from evmperf.measure.runs import folders
from selftests.support.lavalab import SUITE

PACKAGES = ("lava-common", "lava-server", "lava-dispatcher")


def unpacked():
    """The root of the unpacked packages, fetched once into the cache."""
    folder = folders.cache_dir() / "lava"
    steps = BuildSteps(folder / "logs", print)
    final = folder / "packages"
    with (folder / "packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.is_dir():
            work = folder / "packages.new"
            shutil.rmtree(work, ignore_errors=True)
            archive = DebianArchive(steps, folder / "apt", SUITE, "amd64")
            archive.unpack(PACKAGES, work)
            work.rename(final)
    return final


class Checker:
    """LAVA's two schemas for jobs and its one for devices; each method returns what is wrong."""

    def __init__(self, root, patch):
        patch.syspath_prepend(str(root / "usr/lib/python3/dist-packages"))
        settings = types.SimpleNamespace(EXTRA_CONTEXT_VARIABLES=[])
        # All that the schema takes from Django.
        patch.setitem(sys.modules, "django", types.SimpleNamespace(VERSION=(3, 2)))
        patch.setitem(sys.modules, "django.conf", types.SimpleNamespace(settings=settings))
        import jinja2
        from lava_common.schemas import device, validate
        from lava_scheduler_app import schema
        from voluptuous import Invalid

        self.shell = root / "usr/lib/python3/dist-packages/lava_dispatcher/lava_test_shell"
        self._validate, self._device, self._server, self._invalid = (validate, device, schema, Invalid)
        self._folders = [DEVICE_TYPES, root / "usr/share/lava-server/device-types"]
        self.templates = jinja2.Environment(loader=jinja2.FileSystemLoader(self._folders))

    def with_types(self, folder):
        """The same with a folder of device types more."""
        found = copy.copy(self)
        loader = type(self.templates.loader)([folder, *self._folders])
        found.templates = self.templates.overlay(loader=loader)
        return found

    def strict(self, job):
        """As `lava-schema.py job --strict`."""
        return self._said(self._validate, job, strict=True)

    def submission(self, job):
        """As the server does when a job is submitted."""
        return self._said(self._server.validate_submission, job)

    def device(self, dictionary):
        """As `lava-schema.py device`, and as the server does."""
        return self._said(self._device.validate, dictionary) or self._said(
            self._server.validate_device, dictionary
        )

    def _said(self, check, *what, **how):
        try:
            check(*what, **how)
        except (self._invalid, self._server.SubmissionException) as error:
            return str(error)
        return ""
