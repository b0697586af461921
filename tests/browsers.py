"""A browser for tests of pages: Chromium or Chrome, without a window, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HOW = "needs a browser: install chromium or google-chrome, or set CHROME=/path/to/one; and pip install playwright"


def find_browser() -> str | None:
    """The program: what CHROME names, else the first that is installed; None if there is none."""
    if named := os.environ.get("CHROME"):
        return named
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser; the test is skipped, with one line that says how to run it, where there is none."""
    program = find_browser()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        pytest.skip(HOW)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
