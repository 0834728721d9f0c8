"""What text becomes in the index, and that a query becomes the same."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whoosh.lang import porter2

from mdmem.index.analyzer import LIMIT, fold, tokens
from mdmem.index.stem import stem as quick_stem
from tests.examples import examples


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("kk-task-20260428-deploy-blocker", "kk-task-20260428-deploy-blocker"),
        ("kk-task-20260428-deploy-blocker", "20260428"),
        ("released v1.2.3 today", "1.2.3"),
        ("released v1.2.3 today", "v1.2.3"),
        ("mdmem-v1.2.3.tar.gz", "1.2.3"),
        ("we use node.js here", "node.js"),
        ("we use node.js here", "Node"),
        ("written in C++ and C#", "C++"),
        ("written in C++ and C#", "c#"),
        ("see #123", "#123"),
        ("see #123", "123"),
        ("a snake_case name", "snake_case"),
        ("a snake_case name", "snake"),
        ("camelCaseName", "camelcasename"),
        ("camelCaseName", "camel"),
        ("the HTTPServer class", "server"),
        ("src/mdmem/index.py", "index.py"),
        ("src/mdmem/index.py", "mdmem"),
        ("C:\\Users\\bob\\notes.md", "notes.md"),
        ("ERR_CONN_RESET", "err_conn_reset"),
        ("error[E0382]: borrow", "E0382"),
        ("mail john.doe@example.com", "john.doe@example.com"),
        ("mail john.doe@example.com", "example.com"),
        ("at 0xDEADBEEF", "0xdeadbeef"),
        ("commit 3f2a9c1d", "3f2a9c1d"),
        ("passed --no-verify", "--no-verify"),
        ("edit .gitignore", ".gitignore"),
        ("utf8", "utf8"),
        ("utf-8", "utf"),
        ("don't panic", "dont"),
        ("the user's file", "user"),
        ("decided 2026-05-18", "2026-05-18"),
        ("decided 2026-05-18", "2026-05"),
        ("使用PostgreSQL数据库", "postgresql"),
        ("使用PostgreSQL数据库", "数据库"),
        ("书", "书"),
        ("deploy🚀done", "🚀"),
        ("ＡＢＣ", "abc"),
        ("Straße", "strasse"),
        ("running tests", "run test"),
    ],
)
def test_identifiers_and_words_are_found_by_exact_form_and_part(text: str, query: str) -> None:
    assert set(tokens(query)) & set(tokens(text))
    assert tokens(query)[0] in tokens(text)


def test_n14_combining_marks_keep_a_word_whole() -> None:
    assert tokens("अनीता") == ["अनीता"]
    assert tokens("#अनीता")[-1] == "अनीता"


@pytest.mark.parametrize("text", ["테스트_맥", "데이터베이스를", "résumé Ångström", "hyvää yötä", "й ё Ё", "が ぱ", "ἄνθρωπος"])
def test_n4_nfc_and_nfd_give_the_same_terms(text: str) -> None:
    composed = tokens(unicodedata.normalize("NFC", text))
    assert composed and composed == tokens(unicodedata.normalize("NFD", text))


def test_i6_cyrillic_greek_and_thai_are_cut_into_words() -> None:
    assert tokens("Привет, мир!") == ["привет", "мир"]
    assert tokens("ΚΑΛΗΜΕΡΑ Κόσμε") == tokens("καλημερα κοσμε") == ["καλημερα", "κοσμε"]
    assert {"สวัสดี", "ครับ"} <= set(tokens("สวัสดี ครับ"))
    # Without a space a part of the run still matches.
    assert set(tokens("กรุงเทพ")) & set(tokens("ทำงานที่กรุงเทพมาก"))


def test_chinese_words_of_one_and_more_characters_match() -> None:
    assert tokens("部署流程") == ["部", "部署", "署", "署流", "流", "流程", "程"]


def test_query_operators_are_words() -> None:
    assert tokens('cats AND (dogs OR NOT "mice")') == tokens("cats and dogs or not mice")


@pytest.mark.parametrize(
    "unit",
    ["a", "a.", "a-", "aB", "'", "中", "a'b", "#", "--", "+", "a+++", "é", "e\u0301", "\u0301", "ก่", "1.2.", "_", "/a/b", "A1"],
)
def test_hostile_input_is_linear_and_terms_are_short(unit: str) -> None:
    start = time.process_time()
    found = tokens(unit * (300_000 // len(unit)))
    assert time.process_time() - start < 5
    assert all(len(term) <= LIMIT for term in found)


@given(st.text(max_size=200))
def test_any_text_gives_terms_that_can_be_written(text: str) -> None:
    for term in tokens(text):
        assert term
        term.encode()
        assert len(term) <= LIMIT


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=60))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert tokens(unicodedata.normalize("NFD", text)) == tokens(unicodedata.normalize("NFC", text))
    assert isinstance(fold(text), str)


def test_irregular_forms_meet_their_base() -> None:
    assert tokens("bought took children went indices") == tokens("buy take child go index")
    assert tokens("Bought") == tokens("buying")


def test_no_irregular_form_has_two_bases_and_no_base_is_a_form() -> None:
    from mdmem.index.irregular import _FORMS, BASE

    forms = [form for group in _FORMS.replace("\n", "|").split("|") if group for form in group.split()[1:]]
    doubled = {form for form in forms if forms.count(form) > 1}
    assert not doubled - {"come", "run", "become", "overcome"}
    assert not {base for base in BASE.values() if BASE.get(base, base) != base}


ENDINGS = [
    *(end for end, *_ in (*porter2.s2_triples, *porter2.s3_triples)),
    *porter2.s4_delete_list,
    *("sion", "tion", "ed", "ing", "eed", "eedly", "edly", "ingly", "s", "ies", "ied", "y", "e", "ll", ""),
]


@given(st.text("aeiouybcdglmnrstywx", max_size=8), st.sampled_from(ENDINGS), st.sampled_from(["", "s", "ly", "ed", "e"]))
@settings(max_examples=examples(2000), deadline=None)
def test_the_quick_stemmer_is_whooshs(start: str, end: str, more: str) -> None:
    assert quick_stem(start + end + more) == porter2.stem(start + end + more)


KEPT = sorted(porter2.exceptional_early_exit_post_1a)


@pytest.mark.parametrize("word", [*porter2.exceptional_forms, *KEPT, "generate", "communism"])
def test_the_quick_stemmer_knows_the_exceptions(word: str) -> None:
    assert quick_stem(word) == porter2.stem(word)
