"""An interrupted command still prints its one JSON document."""

from __future__ import annotations

import json

import click
import pytest

from mdmem.cli.output import guarded


def test_ctrl_c_with_json_prints_one_document_and_exits_130(capsys: pytest.CaptureFixture[str]) -> None:
    @click.group()
    def group() -> None: ...

    @group.command()
    @click.option("--json", "as_json", is_flag=True)
    def slow(as_json: bool) -> None:
        raise KeyboardInterrupt

    assert guarded(group, ["slow", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "interrupted"
