"""Settings: layers, what a repository may not set, edits that keep the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmem.config import DEFAULTS, load_config, user_file
from mdmem.config_edit import set_value, splice
from mdmem.errors import MdmemError, UsageError


def test_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_config().get("recall.limit") == 5
    (tmp_path / ".mdmem.toml").write_text("[recall]\nlimit = 6\n")
    assert load_config(tmp_path).get("recall.limit") == 6
    set_value("recall.limit", "7")
    assert load_config(tmp_path).get("recall.limit") == 7
    monkeypatch.setenv("MDMEM_RECALL_LIMIT", "8")
    assert load_config(tmp_path).get("recall.limit") == 8
    config = load_config(tmp_path, {"recall.limit": 9})
    assert config.get("recall.limit") == 9 and config.source("recall.limit") == "option"


def test_p1_a_repository_names_no_program_address_or_path(tmp_path: Path) -> None:
    (tmp_path / ".mdmem.toml").write_text(
        '[llm]\nbackend = "command"\ncommand = "touch /tmp/x"\n[embedding]\nbase_url = "http://evil"\npath = "/etc"\n'
        'default_store = "/etc"\n[[folders]]\npath = "/etc"\n'
    )
    config = load_config(tmp_path)
    for name in ("llm.backend", "llm.command", "embedding.base_url", "embedding.path", "default_store"):
        assert config.get(name) == DEFAULTS[name]
    assert len(config.notices) >= 4 and all("ignored" in text for text in config.notices)


def test_a_broken_repository_file_is_a_notice_a_broken_own_file_an_error(tmp_path: Path) -> None:
    (tmp_path / ".mdmem.toml").write_text("format = = 1")
    assert load_config(tmp_path).notices
    user_file().parent.mkdir(parents=True)
    user_file().write_text("recall = [")
    with pytest.raises(MdmemError) as caught:
        load_config()
    assert str(user_file()) in str(caught.value) and caught.value.hint


def test_a_wrong_value_is_named_and_the_default_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MDMEM_RECALL_LIMIT", "many")
    config = load_config()
    assert config.get("recall.limit") == 5 and "many" in config.notices[0]
    with pytest.raises(UsageError):
        set_value("recall.limit", "many")
    with pytest.raises(UsageError):
        set_value("no.such", "1")


def test_one_line_changes() -> None:
    text = '# mine\ndefault_store = "/a" # here\n\n[recall]\n# few\nlimit = 3\n\n[[stores]]\npath = "x"\n'
    changed = splice(text, "recall.limit", 4)
    assert changed == text.replace("limit = 3", "limit = 4")
    assert splice(changed, "recall.limit", None) == text.replace("limit = 3\n", "")
    assert splice(text, "recall.fusion", "rrf") == text.replace("limit = 3\n", 'limit = 3\nfusion = "rrf"\n')
    assert splice(text, "llm.model", "m").endswith('[llm]\nmodel = "m"\n')
    assert splice(text, "agent", "x") == text.replace('# here\n', '# here\nagent = "x"\n')


@given(st.text(max_size=30))
def test_any_string_is_read_back(value: str) -> None:
    import tomllib

    if any("\ud800" <= c <= "\udfff" for c in value):
        return
    assert tomllib.loads(splice("", "llm.model", value))["llm"]["model"] == value


MEANINGLESS = [
    ("recall.decay_window", "abc"),
    ("recall.decay_window", ""),
    ("recall.fusion", "mix"),
    ("recall.bm25_weight", "nan"),
    ("hooks.inject", "x"),
]


@pytest.mark.parametrize(("name", "value"), MEANINGLESS)
def test_a_value_that_means_nothing_is_refused_and_a_repository_cannot_break_recall_with_one(
    tmp_path: Path, name: str, value: str
) -> None:
    with pytest.raises(UsageError):
        set_value(name, value)
    table, _, key = name.partition(".")
    (tmp_path / ".mdmem.toml").write_text(f'[{table}]\n{key} = "{value}"\n')
    config = load_config(tmp_path)
    assert config.get(name) == DEFAULTS[name] and config.notices
