"""A headless Chromium, and the rules of accessibility to hold pages against."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

_AXE = Path(__file__).parents[1] / "npm/node_modules/axe-core/axe.min.js"
_CHROMIUM = Path("/usr/bin/chromium")


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's; `make browser` brings it. There is no skipping."""
    assert _CHROMIUM.exists(), "these tests need Chromium: make browser"
    with sync_playwright() as playwright:
        # Root, as in CI, has no sandbox.
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def violations(page: Page) -> list[str]:
    """What axe finds wrong, a line each."""
    assert _AXE.exists(), "these tests need axe-core: make browser"
    page.add_script_tag(path=_AXE)
    found: dict[str, Any] = page.evaluate("axe.run()")
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:200]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]
