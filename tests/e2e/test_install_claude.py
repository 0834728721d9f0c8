"""What the installer writes, run by the real Claude Code against a server on loopback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdmem.install.claude import install_hooks
from tests.e2e.claude import Box
from tests.e2e.messages_api import MessagesApi

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_h13_the_entries_run_in_exec_form_with_the_payload_on_stdin(tmp_path: Path) -> None:
    """The interpreter is a recorder in a folder with a space, a quote and a dollar sign in its name."""
    odd = tmp_path / "a b's $HOME"
    odd.mkdir()
    recorder = odd / "python"
    recorder.write_text(f'#!/bin/sh\nfor last; do :; done\ncat > "{tmp_path}/seen-$last-$$"\n')
    recorder.chmod(0o755)
    with MessagesApi() as api:
        box = Box(tmp_path / "box", api)
        install_hooks(box.project / ".claude" / "settings.local.json", python=str(recorder))
        box.claude("hello")
    seen = {path.name.split("-")[1]: json.loads(path.read_text()) for path in tmp_path.glob("seen-*")}
    assert {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"} <= set(seen)
    for event, payload in seen.items():
        assert payload["hook_event_name"] == event
    assert seen["UserPromptSubmit"]["prompt"] == "hello"
