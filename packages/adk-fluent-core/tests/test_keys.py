"""Texts without the secrets of the environment."""

from __future__ import annotations

import pytest

from adk_fluent._keys import secrets, without_keys


@pytest.fixture(autouse=True)
def _none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in secrets().values():
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    "name",
    [
        "GOOGLE_API_KEY",
        "GEMINI_API_KEY",
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "CLIENT_SECRET",
        "DB_PASSWORD",
        "db_password",
    ],
)
def test_secrets_are_named_instead(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, " s3cr3t-value\n")
    assert without_keys("not s3cr3t-value, nor s3cr3t-value!") == f"not [{name}], nor [{name}]!"


@pytest.mark.parametrize(
    ("name", "value"), [("SHORT_TOKEN", "1234567"), ("EMPTY_TOKEN", ""), ("TOKENS", "longer-value")]
)
def test_other_variables_stay(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert secrets() == {}
    assert without_keys(f"it is {value} {name}") == f"it is {value} {name}"


def test_the_longest_is_found_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "abcdefgh")
    monkeypatch.setenv("B_TOKEN", "abcdefgh-and-more")
    assert without_keys("abcdefgh-and-more abcdefgh") == "[B_TOKEN] [A_TOKEN]"
