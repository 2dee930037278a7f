"""Bisections on a virtual EVM take longer than CI has time for; the long ones wait to be asked."""

from selftests.support import on_request

OPTION = "--all-bisections"


def pytest_addoption(parser):
    on_request.add_option(parser, OPTION)


def pytest_collection_modifyitems(config, items):
    on_request.skip_unless_asked(config, items, OPTION, "long_bisection")
