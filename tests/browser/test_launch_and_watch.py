"""From the form to the receipt in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.fakes.provider import FakeProvider, Request

RUN_MS = 90_000
ROWS = 24


def _sums() -> bytes:
    return "".join(f'{{"question": "What is {n} + 1?", "answer": "{n + 1}"}}\n' for n in range(ROWS)).encode()


def _answer(request: Request) -> str:
    """Right but for every fourth question."""
    found = re.search(r"What is (\d+) \+ 1", request.prompt)
    n = int(found.group(1)) if found else 0
    return str(n + 1) if n % 4 else str(n + 7)


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    """An OpenAI-compatible endpoint that is right three times out of four."""
    with FakeProvider(answers=_answer, latency_s=0.05) as running:
        yield running


def _upload(page: Page) -> None:
    page.goto("/")
    page.get_by_text("Upload", exact=True).click()
    page.set_input_files("#files", {"name": "sums.jsonl", "mimeType": "text/plain", "buffer": _sums()})
    page.get_by_label("What to measure, in your words").fill("Small sums, exact number")


def _ended(page: Page) -> None:
    expect(page.locator("#run-status")).to_have_attribute("data-status", "ok", timeout=RUN_MS)


def test_the_score_on_the_page_is_the_score_of_the_api(page: Page, provider: FakeProvider) -> None:
    _upload(page)
    page.get_by_text("Endpoint", exact=True).click()
    page.get_by_label("Base URL").fill(provider.base_url)
    page.get_by_label("Model name").fill("fake-1")
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}/$"))
    _ended(page)  # by the stream alone: nothing here reloads the page

    run_id = page.url.rstrip("/").rsplit("/", 1)[1]
    told = page.request.get(f"/v1/runs/{run_id}").json()
    expect(page.locator("[data-accuracy]")).to_have_text(f"{100 * told['score']['accuracy']:.1f}%", timeout=10_000)
    assert told["score"]["accuracy"] == 0.75
    assert (told["tasks"]["passed"], told["tasks"]["failed"]) == (18, 6)
    expect(page.locator("#run-counts [data-count=p]")).to_have_text("18")
    expect(page.locator("#run-counts [data-count=f]")).to_have_text("6")

    # The map: the keyboard finds the first failure after the first task and opens it.
    page.locator("[data-heatmap]").focus()
    page.keyboard.press("n")
    expect(page.locator("[data-heat-says]")).to_have_text("Task 4: fail")
    page.keyboard.press("Enter")
    drawer = page.locator("#task-drawer")
    expect(drawer.get_by_role("heading", name="Task 4")).to_be_visible()
    task = page.request.get(f"/v1/runs/{run_id}/tasks/4").json()
    assert task["score"] == 0
    expect(drawer.locator(".verdict__score")).to_have_text("0")
    expect(drawer).to_contain_text("What is 4 + 1?")
    expect(drawer).to_contain_text("11")
    page.keyboard.press("Escape")
    expect(drawer).not_to_be_visible()

    page.goto(f"/runs/{run_id}/receipt/")
    expect(page.locator(".receipt")).to_contain_text("18 passed, 6 failed, 0 errored of 24")


def test_a_control_is_called_a_control_wherever_it_shows(page: Page) -> None:
    _upload(page)
    page.get_by_text("Control", exact=True).click()
    page.get_by_role("button", name="Launch").click()
    _ended(page)
    expect(page.locator("[data-accuracy]")).to_have_text("100.0%", timeout=10_000)
    expect(page.locator("#run-status")).to_contain_text("control")
    page.goto("/runs/")
    expect(page.locator("tr", has_text="control/oracle").first.locator(".tag--control")).to_be_visible()


def test_a_refused_launch_keeps_what_was_typed_and_names_the_field(page: Page) -> None:
    _upload(page)
    page.get_by_text("Endpoint", exact=True).click()
    page.get_by_label("Base URL").fill("not a url")
    page.get_by_label("Model name").fill("fake-1")
    page.get_by_role("button", name="Launch").click()
    expect(page.get_by_role("alert").first).to_contain_text("model.base_url")
    expect(page.get_by_label("Model name")).to_have_value("fake-1")
    expect(page.get_by_label("What to measure, in your words")).to_have_value("Small sums, exact number")
    expect(page.get_by_text("kept from before")).to_be_visible()


def test_a_page_works_without_a_script(page: Page, stack: object, session_state: dict[str, object]) -> None:
    browser = page.context.browser
    assert browser is not None
    context = browser.new_context(
        java_script_enabled=False,
        storage_state=session_state,
        base_url=page.url or None,
        viewport={"width": 360, "height": 740},
    )
    plain = context.new_page()
    plain.goto(f"{getattr(stack, 'url', '')}/")
    plain.get_by_text("Control", exact=True).click()
    plain.get_by_label("What to measure, in your words").fill("Nothing that is there")
    plain.get_by_role("button", name="Launch").click()
    expect(plain.locator("#run-status, #launch-error").first).to_be_visible()
    context.close()
