"""A page in a real, headless Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

BINARY = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(BINARY is None, reason="no Chromium on this machine (Debian: apt install chromium)")


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of playwright's."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BINARY, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Seen:
    """A tab, and everything that should not have happened in it."""

    page: Any
    faults: list[str] = field(default_factory=list)
    """Errors and warnings on the console, dialogs, and requests for anything but the page itself."""

    def shown(self) -> list[str]:
        """Ids in the list of trajectories."""
        found: list[str] = self.page.locator("#list .id").all_inner_texts()
        return found

    def count(self) -> str:
        """What the page says of how many there are."""
        return str(self.page.locator("#count").inner_text())


@contextmanager
def tab(browser: Any, url: str, **settings: Any) -> Iterator[Seen]:
    """The page, loaded and ready."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce", **settings)
    page = context.new_page()
    page.set_default_timeout(300_000)  # a backstop on a busy machine, no measure of speed
    seen = Seen(page)
    page.on("console", lambda message: seen.faults.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.faults.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (seen.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: request.url.startswith(url.partition("?")[0]) or seen.faults.append(request.url))
    page.goto(url)
    page.wait_for_selector("#list li")
    yield seen
    context.close()
