"""What is taken out of recordings, and what stays."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent.debug._diff import first_difference
from adk_fluent.debug._redaction import REDACTED, Redaction
from adk_fluent.errors import UsageError
from adk_fluent.protocol import Redactor

NOTHING: set[str] = set()


def scrubbed(data: Any, redaction: Redaction | None = None) -> Any:
    redaction = redaction or Redaction()
    return redaction.scrub(data, redaction.secrets(data))


def test_what_stands_under_the_key_of_a_credential_is_taken_out_wherever_it_recurs() -> None:
    data = {
        "args": {"password": "hunter2'x", "pin": 12},
        "told": "[a] called `login` with {'password': \"hunter2'x\"}",
        "json": '{"q": "hunter2\'x"}',
        "otp": 123456,
        "list": ["code 123456", 123456, 7],
    }
    clean = scrubbed(data)
    assert "hunter2" not in repr(clean)
    assert "123456" not in repr(clean)
    assert clean["args"] == {"password": REDACTED, "pin": 12}
    assert clean["list"][2] == 7


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "ghp_abcdefghijklmnopqrstuvwxyz012345",
        "xoxb-1234567890-abcdefgh",
        "AKIAIOSFODNN7EXAMPLE",
        "hf_abcdefghijklmnopqrstuvwxyz01234567",
        "xai-abcdefghijklmnopqrstuvwxyz01234567",
        "whsec_abcdefghijklmnopqrstuvwxyz01",
        "SG.abcdefghijklmnopqrst.abcdefghijklmnopqrstabcdefghijklmnopqrst",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_credentials_in_prose_are_taken_out(secret: str) -> None:
    assert scrubbed(f"use {secret} for it") == f"use {REDACTED} for it"


def test_bearer_tokens_and_named_keys_in_prose_are_taken_out() -> None:
    assert scrubbed("Authorization: Bearer abc123.def456") == f"Authorization: Bearer {REDACTED}"
    assert scrubbed("api_key=abcdef1 rest") == f"api_key={REDACTED} rest"
    assert scrubbed("postgres://ann:pa55@db/x") == f"postgres://{REDACTED}@db/x"


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Basic {}==",
        "'authorization': 'token {}'",
        "GOOGLE_API_KEY={}",
        "export AWS_SECRET_ACCESS_KEY='{}'",
        "get https://host/path?a=1&token={}",
        "url=https://host/path?refresh_token={}&a=1",
        "Cookie: theme=dark; session={}; lang=en",
        "get https://host/path?key={}&a=1",
        "get https://host/path?X-Amz-Signature={}",
        "https://{}@host/path",
        "redis://:{}@host/0",
        "postgres://ann:p@ss@{}@host/x",
        "curl -s -u ann:{} https://host",
        "tool --password {}",
        "<db:password>{}</db:password>",
        "'password' => '{}'",
        "[('x-api-key', '{}')]",
        '[["user-agent", "x"], ["authorization", "Basic {}"]]',
        "headers=[(b'authorization', b'Basic {}')]",
        '{{"deep": "{{\\"cfg\\": \\"{{\\\\\\"password\\\\\\": \\\\\\"{}\\\\\\"}}\\"}}"}}',
    ],
)
def test_what_is_given_to_the_name_of_a_credential_in_a_text_is_taken_out(text: str) -> None:
    canary = "cnry-7f3b9d2e"
    clean = scrubbed({"said": text.format(canary)})
    assert canary not in repr(clean)
    assert REDACTED in repr(clean)


@pytest.mark.parametrize(
    "text",
    [
        "bearer certificates",
        "the password is required",
        "task-force of 12",
        "a://b",
        "a token: something that stands for a word",
        "max_tokens=1234567, page_token: none",
        "cookie: chocolate and oats",
        "see https://host:8080/keyboard?sort=ascending",
        "ssh://git@host and https://host:8080/a@b",
        "the options --token and --verbose",
        "('token', 'words')",
        "if token > lowest: curl https://host",
        "hf_search_models_by_task_name, npm_config_registry_settings_path",
        "xai-explainability-methods-survey-2024 SG.Singapore-Office.regional-account-managers",
    ],
)
def test_plain_prose_stays(text: str) -> None:
    assert scrubbed(text) == text


def test_headers_as_names_and_values_are_taken_out() -> None:
    clean = scrubbed([{"name": "x-api-key", "value": "k-12345"}, "again k-12345"])
    assert "k-12345" not in repr(clean)


def test_headers_as_pairs_are_taken_out() -> None:
    clean = scrubbed({"headers": [["x-api-key", "k-12345"], ["accept", "json"]], "s": "k-12345"})
    assert clean == {"headers": [["x-api-key", REDACTED], ["accept", "json"]], "s": REDACTED}


def test_a_credential_in_an_address_is_taken_out() -> None:
    clean = scrubbed({"password": "p/ss word", "urls": ["/?a=p%2Fss+word", "/p%2Fss%20word"]})
    assert clean["urls"] == [f"/?a={REDACTED}", f"/{REDACTED}"]


def test_a_long_chain_of_names_is_read_once() -> None:
    text = "&".join(f"name{number}=value" for number in range(3_000))
    assert scrubbed(f"{text}&token=abc1234") == f"{text}&token={REDACTED}"


def test_properties_of_a_schema_are_no_credentials() -> None:
    schema = {"properties": {"password": {"type": "string"}}, "said": "a string"}
    assert scrubbed(schema) == schema


def test_a_function_of_ones_own_is_heeded_also_for_what_recurs() -> None:
    redaction = Redaction(Redactor(keys={"iban"}))
    clean = scrubbed({"iban": "DE8937", "told": "pay DE8937"}, redaction)
    assert clean == {"told": f"pay {REDACTED}"}
    assert scrubbed("ann", Redaction(lambda data: str(data).upper())) == "ANN"


@pytest.mark.parametrize("wrong", ["secret", 3, Redactor])
def test_redact_is_a_function_or_has_one(wrong: Any) -> None:
    with pytest.raises(UsageError, match="redact="):
        Redaction(wrong)


def test_what_was_redacted_is_like_anything_when_it_is_compared() -> None:
    assert first_difference({"a": f"x {REDACTED} y"}, {"a": "x hunter2 y"}) is None
    assert first_difference({"a": REDACTED}, {"a": {"b": 1}}) is None
    assert first_difference({"a": f"x {REDACTED}"}, {"a": "y hunter2"}) is not None


def test_the_first_difference_is_named_by_its_path() -> None:
    found = first_difference({"a": [{"b": 1}, {"c": 2}]}, {"a": [{"b": 1}, {"c": 3}]})
    assert found is not None
    assert (found.path, found.recorded, found.now) == (".a[1].c", 2, 3)
    assert first_difference({"a": 1}, {"a": 1.0}) is None
    assert first_difference({"a": 1}, {"a": True}) is not None
    more = first_difference({"a": [1]}, {"a": [1, 2]})
    assert more is not None
    assert more.path == ".a[1]"
