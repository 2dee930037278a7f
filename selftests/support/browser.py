"""A headless Chromium, and the rules of accessibility to hold pages against."""

import contextlib
from pathlib import Path

from playwright.sync_api import sync_playwright

_AXE = Path(__file__).parents[1] / "npm/node_modules/axe-core/axe.min.js"
_CHROMIUM = Path("/usr/bin/chromium")


@contextlib.contextmanager
def chromium():
    """Debian's; `make browser` brings it. There is no skipping."""
    assert _CHROMIUM.exists(), "these tests need Chromium: make browser"
    with sync_playwright() as playwright:
        # Root, as in CI, has no sandbox.
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextlib.contextmanager
def offline(browser, within=""):
    """A function that opens an address without a network in a window of some size; it fails for a page that
    asks for anything but itself or what is `within` an address, and in the end for errors of scripts.
    """
    contexts, errors = [], []

    def opened(address, viewport, **options):
        context = browser.new_context(viewport=viewport, offline=True, **options)
        contexts.append(context)
        sheet = context.new_page()
        asked = []
        sheet.on("request", lambda request: asked.append(request.url))
        sheet.on("pageerror", lambda error: errors.append(str(error)))
        sheet.goto(address)
        assert all(url == address or (within and url.startswith(within)) for url in asked), asked
        return sheet

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


def violations(page):
    """What axe finds wrong, a line each."""
    assert _AXE.exists(), "these tests need axe-core: make browser"
    page.add_script_tag(path=_AXE)
    found = page.evaluate("axe.run()")
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:200]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]
