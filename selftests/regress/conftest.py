"""Bisections on a virtual EVM take longer than CI has time for; the long ones wait to be asked."""

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--all-bisections", action="store_true", help="also those that are too long for CI"
    )


def pytest_collection_modifyitems(config, items):
    if config.getoption("--all-bisections", default=False):
        return
    for item in items:
        if item.get_closest_marker("long_bisection"):
            item.add_marker(pytest.mark.skip(reason="too long for CI: give --all-bisections"))
