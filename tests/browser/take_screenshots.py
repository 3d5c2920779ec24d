"""Makes docs/screenshots/ from the running product: `python -m tests.browser.take_screenshots [FOLDER]`.

Starts a whole Benchwright, launches a run against an endpoint of its own, and photographs the launch form, the live run
and what is left when it has ended: light, dark and on a phone.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.fakes.provider import FakeProvider, Request
from tests.stack import CHROMIUM_FLAGS, ROOT, Stack, chromium

ROWS = 600
PROMPT = "Two-digit multiplication in words. Exact match on the final number."
MODES: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light", "device_scale_factor": 1.5},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark", "device_scale_factor": 1.5},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "light",
        "device_scale_factor": 2,
        "is_mobile": True,
    },
}


def rows() -> bytes:
    """The data set that the run uploads."""
    pairs = [(11 + n % 37, 12 + n % 53) for n in range(ROWS)]
    asked = "A box holds {} pens. How many pens are in {} boxes?"
    lines = [json.dumps({"question": asked.format(a, b), "answer": str(a * b)}) for a, b in pairs]
    return ("\n".join(lines) + "\n").encode()


def answer(request: Request) -> str:
    """A model that multiplies well, but not always."""
    found = re.search(r"holds (\d+) pens.*in (\d+) boxes", request.prompt)
    if not found:
        return "ok"
    a, b = int(found.group(1)), int(found.group(2))
    product = a * b if (a * 7 + b * 3) % 11 > 2 else a * b + 10
    return f"{b} boxes with {a} pens each make {b} × {a} = {product} pens.\n\nThe answer is {product}."


def fill(page: Page, base_url: str) -> None:
    """The form, ready to launch."""
    page.goto("/")
    page.get_by_text("Upload", exact=True).click()
    page.set_input_files("#files", {"name": "pens.jsonl", "mimeType": "application/jsonl", "buffer": rows()})
    page.get_by_label("What to measure, in your words").fill(PROMPT)
    page.get_by_text("Endpoint", exact=True).click()
    page.get_by_label("Base URL").fill(base_url)
    page.get_by_label("Model name").fill("demo-8b")
    expect(page.locator("#plan")).to_contain_text("ready", timeout=15_000)


def shoot(page: Page, folder: Path, name: str) -> None:
    """One picture, once fonts and pictures are there."""
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(250)
    page.screenshot(path=str(folder / f"{name}.png"))


def contexts(browser: Browser, stack: Stack) -> dict[str, BrowserContext]:
    """One signed-in context for each way of looking."""
    found = {}
    for mode, options in MODES.items():
        context = browser.new_context(base_url=stack.url, **options)
        page = context.new_page()
        page.goto(stack.sign_in_path())
        page.get_by_role("main").get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{stack.url}/")
        page.close()
        found[mode] = context
    return found


def take(folder: Path) -> None:
    """All pictures into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as state,
        FakeProvider(answers=answer, latency_s=0.6) as provider,
        Stack(Path(state)) as stack,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
        ways = contexts(browser, stack)
        pages = {mode: context.new_page() for mode, context in ways.items()}
        for mode, page in pages.items():
            fill(page, provider.base_url)
            shoot(page, folder, f"launch-{mode}")
        first = pages["light"]
        first.get_by_role("button", name="Launch").click()
        first.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}/$"))
        for page in pages.values():
            if page is not first:
                page.goto(first.url)
        for mode, page in pages.items():
            page.wait_for_selector("[data-accuracy]", timeout=120_000)
            shoot(page, folder, f"live-{mode}")
        for mode, page in pages.items():
            expect(page.locator("#run-status")).to_have_attribute("data-status", "ok", timeout=180_000)
            page.wait_for_timeout(800)
            shoot(page, folder, f"run-{mode}")
            page.goto(f"{first.url if page is first else page.url}receipt/")
            shoot(page, folder, f"receipt-{mode}")
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "screenshots")
