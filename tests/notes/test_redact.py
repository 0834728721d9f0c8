"""The gate for secrets: what it gives back, and that it is safe to ask twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdmem.notes.redact import Finding, redact, scan
from tests.notes import redact_probes, redact_probes_more
from tests.notes.redact_probes import fill

CAUGHT = redact_probes.CAUGHT + redact_probes_more.CAUGHT
KEPT = redact_probes.KEPT + redact_probes_more.KEPT

KEY = "AKIA" + "A1B2C3D4E5F6G7H8"


def test_result_has_text_and_findings_without_the_value() -> None:
    text = f"one\ntwo {KEY} three\n"
    result = redact(text)
    assert result.text == "one\ntwo [redacted:aws-key] three\n"
    assert result.findings == [Finding("aws-key", 2, 8, 8 + len(KEY))]
    assert text[result.findings[0].start : result.findings[0].end] == KEY
    assert KEY not in repr(result) and KEY not in repr(result.findings)


def test_ordinary_text_is_the_same_object() -> None:
    text = "nothing to see here"
    assert redact(text).text is text
    assert redact("").findings == []


def test_scan_leaves_out_what_a_person_allowed() -> None:
    assert [f.line for f in scan(f"a {KEY} <!-- mdmem:allow-secret -->\nb {KEY}")] == [2]
    assert scan(f"<!-- mdmem:allow-secret -->\nb {KEY}") == []
    assert len(scan(f"see mdmem:allow-secret\nb {KEY}")) == 1
    assert redact(f"{KEY} mdmem:allow-secret").text == "[redacted:aws-key] mdmem:allow-secret"


def test_shared_probes(data_dir: Path) -> None:
    for probe in json.loads((data_dir / "privacy_probes.json").read_text("utf-8")):
        out = redact(probe["input"]).text
        assert not [gone for gone in probe["must_not_contain"] if gone in out], probe["id"]
        assert not [kept for kept in probe["must_keep"] if kept not in out], probe["id"]
        assert redact(out).text == out, probe["id"]


@pytest.mark.parametrize(("text", "gone", "kept"), CAUGHT, ids=[fill(case[0])[:40] for case in CAUGHT])
def test_p5_caught(text: str, gone: list[str], kept: list[str]) -> None:
    out = redact(fill(text)).text
    assert not [fill(part) for part in gone if fill(part) in out], out
    assert not [fill(part) for part in kept if fill(part) not in out], out
    assert redact(out).text == out


@pytest.mark.parametrize("text", KEPT, ids=[fill(text)[:40] for text in KEPT])
def test_kept(text: str) -> None:
    assert redact(fill(text)).text == fill(text)


def test_a_list_of_passwords_is_read_to_its_end_and_past_a_plain_word() -> None:
    """One item that is a word ended the reading of the list, and so did the hundredth."""
    kept = redact("passwords: [hunter2x, correct, Tr0ub4dor3]").text
    assert "correct" in kept and "hunter2x" not in kept and "Tr0ub4dor3" not in kept
    below = redact("passwords:\n  - correct\n  - hunter2x\n  - password: inner9Xk\n  - Tr0ub4dor3\n").text
    assert not any(word in below for word in ("hunter2x", "inner9Xk", "Tr0ub4dor3")) and "correct" in below
    many = [f"hunter{number}x" for number in range(150)]
    for text in ("passwords: [" + ", ".join(many) + "]", "passwords:\n" + "".join(f"- {word}\n" for word in many)):
        assert not any(word in redact(text).text for word in many)


@pytest.mark.parametrize(
    "text",
    [
        "Your password>8 characters please",
        'choose a password, "letters1 and digits"',
        "eyJhbGci.abcdefgh is a short text with a dot",
        "password: &hunter",
        "password: *ref",
        "secret_key: me@example.com",
        "secretkey = 'left-pad@1.2.3'",
        "monkey: 9fJ2kLmP0qRsTuVw",
        "passwords:\n- 12 characters\n- see docs/v2.md\n- sha256 only\n",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("postgres://u:p4ssW0rd9@h/x?y=postgres://v:q5ttX1se8@i/z", ("p4ssW0rd9", "q5ttX1se8")),
        ('setItem("token", "x7Kp92LmQ4")', ("x7Kp92LmQ4",)),
        ("the api token for x is a7Kp92LmQ4zz", ("a7Kp92LmQ4zz",)),
        ('password: "hunter2x9  \n', ("hunter2x9",)),
        ('"-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\\n-----END PRIVATE KEY-----\\n" + x', ("MIIE",)),
    ],
)
def test_what_is_a_secret_goes_whatever_stands_around_it(text: str, secrets: tuple[str, ...]) -> None:
    cleaned = redact(text).text
    assert not any(secret in cleaned for secret in secrets)
    assert redact(cleaned).text == cleaned
