"""The gate in other languages, and the lines of password files; what only looks alike stays. All values are made up."""

from __future__ import annotations

import pytest

from mdmem.notes.redact import redact, scan

SECRET = (
    "mot de passe : Tr0ub4dor&3x",
    "Le mot de passe du serveur est Soleil2024!",
    "mot de passe : « azerty-42-Lune »",
    "**Mot de passe** : `k9$mQ2vv`",
    "mot_de_passe = 'q7Wd9xk2'",
    "MDP: h4Rb0r-77x",
    "Das Kennwort lautet Zq8#mmkr1",
    "Kennwort für staging: Zq8mmkr1x",
    "la contraseña es Verano2025$",
    "contrasena = xk29dmQa7",
    "senha: L4ranja#99",
    "A senha é L4ranja#99",
    "wachtwoord: Fi3ts-op-Dijk7",
    "lösenord är Sn0boll#81",
    "hasło: Zm1enna#77",
    "пароль: Zq8mmkr1x",
    "localhost:5432:billing:app:Tr0ub4dor3x",
    "db.example.org:5432:*:app:k9mQ2vvz",
    "*:*:*:postgres:k9mQ2vvz",
    "10.0.0.7:5432:billing:app:a\\:b\\\\c9Q",
    "x\n  pg-main:5433:billing:app:hunter-two-9\ny",
)
PARTS = ("Tr0ub", "2024", "Lune", "k9", "q7W", "h4R", "Zq8", "2025", "xk29", "L4r", "Fi3", "Sn0", "Zm1", "c9Q", "hunter")
PLAIN = (
    "mot de passe oublié",
    "Le mot de passe est trop court",
    "mot de passe : obligatoire",
    "Le mot de passe expire après 90 jours.",
    "mot de passe : <votre mot de passe>",
    "mot de passe : ********",
    "mot de passe : voir le coffre",
    "Das Kennwort ist abgelaufen",
    "Kennwort: siehe Tresor",
    "la contraseña es obligatoria",
    "senha: obrigatória",
    "A senha é fraca",
    "wachtwoord vergeten?",
    "пароль забыт",
    "le mdp sera changé demain",
    "mdp = read_mdp(path)",
    "MDPI: a publisher",
    "src/main.c:10:5:note:declared",
    "main.py:120:4:error:undefined",
    "12:30:45:10:20",
    "a:b:c:d:e",
    "http://example.org:8080:x:y:z is odd",
    "2026-11-30T09:00:00 x",
    "::1:2:3:4",
    "hostname:port:database:username:password",
    "localhost:5432:billing:app:<password>",
    "localhost:5432:billing:app:${PGPASSWORD}",
    "root:x:0:0:root:/root:/bin/bash",
    "00:1a:2b:3c:4d",
)


@pytest.mark.parametrize("text", SECRET)
def test_a_password_in_another_language_or_in_a_password_file_is_taken_out(text: str) -> None:
    assert [finding.kind for finding in scan(text)] == ["password"], text
    kept = redact(text).text
    assert not any(value in kept for value in PARTS), kept


@pytest.mark.parametrize("text", PLAIN)
def test_what_only_looks_alike_stays(text: str) -> None:
    assert redact(text).text == text
