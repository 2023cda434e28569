"""Fixtures of the live tests."""

import pytest

from live_cars import drive, stepped

__all__ = ["drive", "stepped"]


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()
