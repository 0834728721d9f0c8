"""The dashboard's API asked by chance: no crash, nothing read or written outside of the store, every refusal in words."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mdmem.store import Store
from mdmem.web.answers import KEEPS, READS
from tests.examples import examples
from tests.injected import count

from .conftest import Site, clash, furnish

CANARY = "canary-91c2 outside of the store"
ODD = [
    "../canary.md", "memories/../../canary.md", "/etc/passwd", "memories/link.md", "memories/folder/canary.md", ".git/config",
    ".mdmem.toml", "C:\\canary.md", "%2e%2e/canary.md", "a\x00b", "-rf", "--output=x", "HEAD", "HEAD:memories", "\u202e",
    "Deploy day", "Database", "project", "memory", "", " ", "1", "-1", "99999999999", "²", "both", "x" * 3000, "[[" * 200,
]  # fmt: skip
WORDS = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
PARAMETERS = ["q", "note", "rev", "limit", "depth", "kind", "type", "rel", "around", "mode", "token", "__proto__"]
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["note", "keep", "field", "x"]), inner),
    max_leaves=5,
)
KEEP = st.sampled_from(KEEPS) | WORDS
SETTINGS = settings(max_examples=examples(120), suppress_health_check=list(HealthCheck))


def outside(store: Store) -> dict[str, bytes]:
    """Return every file beside the store and in HOME, but what is mdmem's own state there."""
    tops = (store.root.parent, Path(os.environ["HOME"]))
    files = [path for top in tops for path in top.rglob("*") if path.is_file()]
    own = (store.root, store.data_dir)
    return {str(path): path.read_bytes() for path in files if not any(one in path.parents for one in own)}


@pytest.fixture
def site(store: Store, serve: Callable[[Store], Site], monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("MDMEM_EMBEDDING_BACKEND", "off")
    furnish(store, 6)
    clash(store)
    (store.root.parent / "canary.md").write_text(CANARY)
    (store.root / "memories/link.md").symlink_to(store.root.parent / "canary.md")
    (store.root / "memories/folder").symlink_to(store.root.parent)
    return serve(store)


def fine(site: Site, status: int, data: Any, allowed: set[int]) -> None:
    text = json.dumps(data)
    assert status in allowed, (status, text[:300])
    assert CANARY not in text and "root:x:" not in text and "[core]" not in text
    if status != 200:
        assert data["error"]["code"] and data["error"]["message"]
    assert not list((site.store.data_dir / "log").glob("crash-*"))


def test_questions(site: Site) -> None:
    before = outside(site.store)
    notes = {path: path.read_bytes() for path in site.store.root.rglob("*.md") if not path.is_symlink()}

    @SETTINGS
    @given(st.sampled_from(sorted(READS)), st.lists(st.tuples(st.sampled_from(PARAMETERS), WORDS), max_size=4))
    @example("note", [("note", "memories/link.md")])
    @example("note", [("note", "memories/folder/canary.md")])
    @example("diff", [("note", "Database"), ("rev", "--output=x")])
    @example("timeline", [("note", "../canary.md")])
    @example("graph", [("around", "/etc/passwd"), ("depth", "²")])
    def run(name: str, parameters: list[tuple[str, str]]) -> None:
        count("examples in web/test_fuzz.py")
        words = "&".join(f"{key}={quote(value)}" for key, value in parameters)
        status, data, _ = site.ask(f"/api/{name}?{words}")
        fine(site, status, data, {200, 400, 404, 409})

    run()
    for path in ("/../canary.md", "/%2e%2e/canary.md", "//etc/passwd", "/static/../server.py", "/app.js/../../answers.py"):
        assert site.ask(path)[0] == 404
    assert outside(site.store) == before
    assert {path: path.read_bytes() for path in notes} == notes


def test_the_answer_that_writes(site: Site) -> None:
    before = outside(site.store)

    @SETTINGS
    @given(ANY | st.fixed_dictionaries({"note": WORDS, "keep": KEEP}, optional={"field": WORDS | ANY}))
    @example({"note": "memories/link.md", "keep": "1"})
    @example({"note": "memories/folder/canary.md", "keep": "deleted"})
    @example({"note": "../canary.md", "keep": "deleted"})
    def run(asked: Any) -> None:
        count("examples in web/test_fuzz.py")
        status, data, _ = site.ask("/api/resolve", "POST", json.dumps(asked).encode())
        fine(site, status, data, {200, 400, 404, 409})

    run()
    assert outside(site.store) == before


def test_heads_that_are_not_ours(site: Site) -> None:
    """Whoever does not come from the page with its token learns nothing and changes nothing."""
    own = site.server
    good = {"Host": f"127.0.0.1:{own.port}", "Origin": f"http://127.0.0.1:{own.port}", "X-Mdmem-Token": own.token}
    strange = st.sampled_from(
        ["", "null", "evil.example", "http://evil.example", f"127.0.0.1:{own.port}.evil.example", "127.0.0.1", "localhost:1"]
    ) | st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)

    @SETTINGS
    @given(st.sampled_from(sorted(good)), strange, st.booleans())
    def run(name: str, value: str, writes: bool) -> None:
        count("examples in web/test_fuzz.py")
        headers = {**good, name: value}
        if writes:
            path = next((site.store.root / "memories").glob("deploy-day-*")).name
            asked = {"note": f"memories/{path}", "keep": "1"}
            status, data, _ = site.ask("/api/resolve", "POST", asked, headers=headers)
        else:
            status, data, _ = site.ask("/api/overview", headers=headers)
        if name == "Origin" and value == "" and not writes:
            assert status == 200  # a page's own GET has none
        else:
            assert status in (401, 403), (name, value, status)
            assert "Deploy" not in json.dumps(data)

    run()
    assert len(site.ask("/api/conflicts")[1]["notes"]) == 1
