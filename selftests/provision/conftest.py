"""Tests that boot a virtual EVM more often than CI has time for wait to be asked for."""

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--all-provisioning", action="store_true", help="also those that are too long for CI"
    )


def pytest_collection_modifyitems(config, items):
    if config.getoption("--all-provisioning", default=False):
        return
    for item in items:
        if item.get_closest_marker("long_provisioning"):
            item.add_marker(pytest.mark.skip(reason="too long for CI: give --all-provisioning"))
