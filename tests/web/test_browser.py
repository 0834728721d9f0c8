"""The page in a real browser: headless Chromium, driven by Playwright. Pictures go to SHOTS, else to a temporary folder.

pytest --e2e tests/web/test_browser.py      (Debian: apt install chromium; pip install playwright)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mdmem.memory.conflicts import conflicted
from mdmem.store import Store
from mdmem.web.page import export

from .conftest import Site, clash, furnish

pytestmark = pytest.mark.e2e
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
VIEWS = ("overview", "search?q=database&mode=keyword", "graph", "blockers", "conflicts", "devices", "note/Database")
SIZES = {"desktop": (1280, 900), "phone": (375, 740)}


@pytest.fixture
def browser(own_home: Path) -> Iterator[Any]:
    """Chromium without a window."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine (Debian: apt install chromium)")
    api = pytest.importorskip("playwright.sync_api", reason="no playwright (pip install playwright)")
    with api.sync_playwright() as play:
        with play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as found:
            yield found


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """The folder of pictures."""
    folder = Path(os.environ.get("SHOTS") or tmp_path / "shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def opened(browser: Any, url: str, size: str = "desktop", **options: Any) -> tuple[Any, list[str]]:
    """Return (page, what went wrong in it: errors, refused loads, requests to elsewhere)."""
    wide, high = SIZES[size]
    page = browser.new_context(viewport={"width": wide, "height": high}, **options).new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    start = url.split("#")[0]
    page.on("request", lambda request: None if request.url.startswith(start) else wrong.append(f"request: {request.url}"))
    page.goto(url)
    page.wait_for_selector("main h1")
    return page, wrong


def go(page: Any, view: str) -> None:
    page.evaluate("view => { location.hash = '#/' + view }", view)
    page.wait_for_function("view => location.hash === '#/' + view && !document.querySelector('main[aria-busy]')", arg=view)
    page.wait_for_selector("main h1")


def test_the_graph_zooms_filters_and_opens_a_note(store: Store, serve: Callable[[Store], Site], browser: Any) -> None:
    furnish(store, 12)
    page, wrong = opened(browser, serve(store).server.url)
    go(page, "graph")
    before = page.evaluate("document.querySelector('canvas').toDataURL()")
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function("was => document.querySelector('canvas').toDataURL() !== was", arg=before)
    box = page.query_selector("canvas").bounding_box()
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    was = page.evaluate("document.querySelector('canvas').toDataURL()")
    page.mouse.wheel(0, 300)
    page.wait_for_function("was => document.querySelector('canvas').toDataURL() !== was", arg=was)
    page.select_option("select[name=type]", "person")
    page.wait_for_function("() => location.hash.includes('type=person') && !document.querySelector('main[aria-busy]')")
    page.wait_for_selector("text=Around this note")
    assert {one.inner_text() for one in page.query_selector_all("ul .badge")} >= {"person"}
    page.get_by_text("Around this note").first.click()
    page.wait_for_function("() => location.hash.includes('around=') && !document.querySelector('main[aria-busy]')")
    page.get_by_role("link", name="Part").first.click()
    page.wait_for_function("() => location.hash.startsWith('#/note/')")
    assert wrong == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_at_every_width(
    store: Store, serve: Callable[[Store], Site], browser: Any, shots: Path, size: str, scheme: str
) -> None:
    furnish(store, 40)
    clash(store)
    language = "zh-CN" if size == "phone" and scheme == "dark" else "en-US"
    page, wrong = opened(browser, serve(store).server.url, size, color_scheme=scheme, locale=language, reduced_motion="reduce")
    assert "token" not in page.url
    for view in VIEWS:
        go(page, view)
        name = view.split("?")[0].split("/")[0]
        page.screenshot(path=str(shots / f"{name}-{size}-{scheme}.png"), full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is wider than the window"
    assert page.evaluate("document.documentElement.lang") == ("zh-Hans" if language == "zh-CN" else "en")
    assert wrong == []


def test_text_of_notes_never_becomes_markup(store: Store, serve: Callable[[Store], Site], browser: Any) -> None:
    furnish(store)
    page, wrong = opened(browser, serve(store).server.url)
    for view in (*VIEWS, "search?q=elsewhere&mode=keyword"):
        go(page, view)
        assert page.query_selector("main img, main script") is None and page.title() != "owned"
    page.get_by_role("link", name="Evil").first.click()
    page.wait_for_selector("pre.text")
    text = page.inner_text("main")
    assert "<img src=x" in text and page.title() != "owned"
    assert "\u202e" not in text and "\x1b" not in text and "\u202e" not in page.title()
    assert wrong == []


def test_keyboard_alone(store: Store, serve: Callable[[Store], Site], browser: Any) -> None:
    furnish(store)
    page, wrong = opened(browser, serve(store).server.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    go(page, "graph")
    page.focus("canvas")
    for key in ("+", "ArrowLeft", "-", "n"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.startsWith('#/note/')")
    page.select_option("#language", "zh")
    page.wait_for_function("document.querySelector('nav a').textContent === '概览'")
    assert wrong == []


def test_a_conflict_is_settled_by_a_click(store: Store, serve: Callable[[Store], Site], browser: Any) -> None:
    clash(store)
    page, wrong = opened(browser, serve(store).server.url)
    go(page, "conflicts")
    assert [mark.inner_text() for mark in page.query_selector_all("mark")][-2:] == ["Fridays.", "Mondays."]
    for left in (2, 1, 0):
        page.get_by_role("button", name="Keep this").first.click()
        page.wait_for_function("left => document.querySelectorAll('.sides').length === left", arg=left)
    assert conflicted(store) == [] and wrong == []


def test_the_timeline_shows_a_diff(store: Store, serve: Callable[[Store], Site], browser: Any) -> None:
    furnish(store)
    page, wrong = opened(browser, serve(store).server.url)
    go(page, "note/Database")
    page.get_by_text("Show the change").first.click()
    page.wait_for_selector(".diff .add")
    assert "PostgreSQL" in page.inner_text(".diff") and wrong == []


def test_no_token_no_data(store: Store, serve: Callable[[Store], Site], browser: Any) -> None:
    furnish(store)
    page, _ = opened(browser, serve(store).server.url.split("#")[0])
    assert page.inner_text("h1") == "No access" and "Database" not in page.inner_text("body")


def test_the_exported_file_works_without_a_server(store: Store, browser: Any, tmp_path: Path, shots: Path) -> None:
    furnish(store)
    clash(store)
    file = tmp_path / "memory.html"
    export(store, file)
    page, wrong = opened(browser, file.as_uri(), offline=True)
    for view in VIEWS:
        go(page, view)
        if view in ("overview", "graph"):
            page.screenshot(path=str(shots / f"export-{view}.png"), full_page=True)
    go(page, "search?q=ledger")
    assert "PostgreSQL 16" in page.inner_text("main")
    assert page.title() != "owned" and wrong == []


def test_ten_thousand_notes_stay_smooth(store: Store, serve: Callable[[Store], Site], browser: Any, shots: Path) -> None:
    for number in range(10_000):
        text = f'---\nkind: entity\ntype: part\ntitle: Part {number}\npart_of: "[[Part {number // 12}]]"\n---\nPart.\n'
        path = store.root / "entities" / f"part-{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    store.index.refresh(embed_budget_s=0.0)
    page, wrong = opened(browser, serve(store).server.url)
    page.set_default_timeout(120_000)
    go(page, "graph")
    frames = page.evaluate(
        """() => new Promise((done) => { const times = []; let last = performance.now();
        const next = (now) => { times.push(now - last); last = now;
        times.length < 60 ? requestAnimationFrame(next) : done(times) };
        requestAnimationFrame(next) })"""
    )
    page.screenshot(path=str(shots / "graph-10000.png"), full_page=False)
    assert "800" in page.inner_text("main") and wrong == []
    print(f"median frame {sorted(frames)[len(frames) // 2]:.1f} ms")
    assert sorted(frames)[len(frames) // 2] < 100, frames  # milliseconds a frame, without a graphics card
