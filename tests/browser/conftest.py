"""A real browser on a whole Benchwright: embedded servers, worker, sandboxes and all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.stack import CHROMIUM_FLAGS, Stack, chromium


@pytest.fixture(scope="session")
def chrome() -> Iterator[Browser]:
    """The system's Chromium, headless."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def session_state(stack: Stack, chrome: Browser) -> dict[str, object]:
    """The cookies of a person who came in by the one-time link."""
    context = chrome.new_context()
    page = context.new_page()
    page.goto(stack.url + stack.sign_in_path())
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{stack.url}/")
    state = context.storage_state()
    context.close()
    return dict(state)


@pytest.fixture
def page(stack: Stack, chrome: Browser, session_state: dict[str, object]) -> Iterator[Page]:
    """A signed-in page. An error in its console (a blocked inline script, a thrown error) fails the test."""
    context = chrome.new_context(
        storage_state=session_state, base_url=stack.url, viewport={"width": 1280, "height": 900}
    )
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"thrown: {error}"))
    page.on(
        "console", lambda message: faults.append(message.text) if "Content Security Policy" in message.text else None
    )
    yield page
    context.close()
    assert not faults
