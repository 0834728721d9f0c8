"""This device's name: made once, kept, and made again when its file is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdmem.config import data_home
from mdmem.identity import device_name, plain


def test_it_is_made_once() -> None:
    first = device_name()
    assert first and plain(first) == first and device_name() == first


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"\n\n", b"\0" * 64])
def test_a_damaged_file_gives_a_new_name_that_is_kept(data: bytes) -> None:
    path = data_home() / "device"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    name = device_name()
    assert name and device_name() == name and path.read_text().strip() == name


def test_a_link_to_nowhere_is_replaced_and_a_folder_gets_in_nobodys_way(tmp_path: Path) -> None:
    path = data_home() / "device"
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "nowhere")
    assert device_name() == device_name() and not (tmp_path / "nowhere").exists()
    path.unlink()
    path.mkdir()
    assert device_name() and device_name() == device_name()
