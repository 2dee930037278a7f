"""Tests that take longer than CI has time for: skipped unless an option of pytest asks for them."""

from __future__ import annotations

import pytest


def add_option(parser: pytest.Parser, option: str) -> None:
    """Give pytest the option that asks for them."""
    parser.addoption(option, action="store_true", help="also those that are too long for CI")


def skip_unless_asked(config: pytest.Config, items: list[pytest.Item], option: str, marker: str) -> None:
    """Skip the tests with this marker unless the option was given."""
    if config.getoption(option, default=False):
        return
    for item in items:
        if item.get_closest_marker(marker):
            item.add_marker(pytest.mark.skip(reason=f"too long for CI: give {option}"))
