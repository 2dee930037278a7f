"""The boot strategy that comes with evmperf, for board files wherever they are.

A board file imports this module by its name; strategies/k3boot.py itself has no name that holds
both in a checkout and in an installed evmperf, and Labgrid cannot import it twice.
"""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

from evmperf.model.places import project

_NAME = "k3boot"

if _NAME not in sys.modules:
    _spec = spec_from_loader(_NAME, SourceFileLoader(_NAME, str(project("strategies") / f"{_NAME}.py")))
    assert _spec
    assert _spec.loader
    _module = module_from_spec(_spec)
    _spec.loader.exec_module(_module)
    sys.modules[_NAME] = _module

K3BootStrategy = sys.modules[_NAME].K3BootStrategy
