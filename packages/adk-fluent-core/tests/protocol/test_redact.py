from __future__ import annotations

import copy
from types import MappingProxyType
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.protocol import SECRET_KEYS, Redactor

redact = Redactor().redact

PLAIN = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "note", *SECRET_KEYS]), below, max_size=3)
    ),
)


@pytest.mark.parametrize(
    "key", ["token", "Token", "api_key", "apiKey", "API-Key", "client_secret", "__password__"]
)
def test_keys_are_recognised_however_they_are_spelt(key: str) -> None:
    assert Redactor().hides(key)
    assert redact({key: "s3cr3t", "kept": 1}) == {"kept": 1}


@pytest.mark.parametrize("key", ["tokens", "token_url", "user", "", "key", 3, None, ("token",)])
def test_other_keys_are_left_alone(key: Any) -> None:
    assert not Redactor().hides(key)
    assert redact({key: "kept"}) == {key: "kept"}


@pytest.mark.parametrize(
    "key",
    [
        *("authorization", "Authorization", "proxy-authorization", "authorization_header"),
        *("cookie", "Cookie", "cookies", "set-cookie", "Set-Cookie", "x-api-key", "X-Api-Key"),
        *("secret", "secrets", "secret_key", "aws_secret_access_key", "AWSSecretAccessKey"),
        *(
            "access_key",
            "auth_token",
            "sessionToken",
            "session.token",
            "user:token",
            "bearer_token",
        ),
        *("OPENAI_API_KEY", "APIKey", "api_keys", "api_key_2", "apiKeyValue", "token2", "token_1"),
        *("db_password", "dbPassword", "PGPASSWORD", "passwd", "MYSQL_PWD", "pwd", "passphrase"),
        *(
            "credentials",
            "credentials_json",
            "aws_credentials",
            "jwt",
            "bearer",
            "dsn",
            "SENTRY_DSN",
        ),
        *("cvv", "cvv2", "private_key_pem", "ssh_key", "connection_string", "x-amz-security-token"),
    ],
)
def test_keys_that_end_in_the_name_of_a_credential_hide(key: str) -> None:
    assert Redactor().hides(key)


@pytest.mark.parametrize(
    "key",
    [
        *("max_tokens", "maxOutputTokens", "total_token_count", "token_count", "prompt_tokens"),
        *(
            "tokenizer",
            "tokens_used",
            "page_token",
            "next_page_token",
            "nextPageToken",
            "eos_token",
        ),
        *("time_to_first_token", "cost_per_token", "token_url", "tokenEndpoint", "secretary"),
        *(
            "primary_key",
            "foreign_key",
            "cache_key",
            "keyboard",
            "monkey",
            "author",
            "authorizationUrl",
        ),
        *("cookies_enabled", "password_policy", "session_id", "secretName", "credential_key"),
        *(
            "auth_type",
            "rawAuthCredential",
            "exchanged_auth_credential",
            "thought_signature",
            "2",
            "_",
        ),
    ],
)
def test_keys_that_only_resemble_one_do_not(key: str) -> None:
    assert not Redactor().hides(key)


def test_a_key_as_long_as_may_be_takes_no_time() -> None:
    assert Redactor().hides("a_" * 500_000 + "token")
    assert not Redactor().hides("a_" * 500_000)


def test_it_looks_everywhere() -> None:
    data = {"a": [{"token": {"deep": 1}}, ({"b": {"idToken": "x"}},)], "c": {"d": "token"}}
    assert redact(data) == {"a": [{}, [{"b": {}}]], "c": {"d": "token"}}
    assert redact(MappingProxyType({"password": "x", "n": 1})) == {"n": 1}


def test_headers_may_be_a_list_of_pairs() -> None:
    headers = [("Accept", "*/*"), ("Authorization", "Bearer s3cr3t"), ["X-Api-Key", "s3cr3t"]]
    assert redact({"headers": headers}) == {"headers": [["Accept", "*/*"]]}
    assert redact((("Cookie", {"a": 1}),)) == []


def test_headers_may_be_names_and_values() -> None:
    headers = [
        {"name": "Authorization", "value": "Bearer s3cr3t"},
        {"key": "DB_PASSWORD", "value": "s3cr3t", "type": "text"},
        {"name": "Accept", "value": "*/*"},
        {"name": "token", "id": 3},
    ]
    assert redact(headers) == [
        {"name": "Authorization"},
        {"key": "DB_PASSWORD", "type": "text"},
        {"name": "Accept", "value": "*/*"},
        {"name": "token", "id": 3},
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["password", "email"],
        [["password", "email"], "x"],
        [["token", 1, 2], ["cookie", 3, 4]],
        [[{"a": 1}, 2], [None, 3]],
        [],
    ],
)
def test_other_lists_are_left_alone(words: Any) -> None:
    assert redact({"words": words}) == {"words": words}


def test_what_is_no_container_stays_what_it_is() -> None:
    thing = object()
    assert redact(thing) is thing
    assert redact("token") == "token"
    assert redact([thing]) == [thing]


def test_whoever_knows_other_keys_names_them() -> None:
    mine = Redactor({*SECRET_KEYS, "pin"})
    assert mine.redact({"PIN": 1, "token": 2, "x": 3}) == {"x": 3}
    assert Redactor({"pin"}).redact({"pin": 1, "token": 2}) == {"token": 2}
    assert Redactor({"pin"}).redact({"card_pin": 1, "pins": 2, "spin": 3}) == {"pins": 2, "spin": 3}
    assert Redactor({"pagetoken", "md5"}).redact({"page_token": 1, "MD5": 2, "n": 3}) == {"n": 3}


@given(PLAIN)
def test_nothing_secret_is_left_and_nothing_else_is_lost(value: Any) -> None:
    before = copy.deepcopy(value)
    assert redact(value) == expected(value)
    assert value == before
    assert redact(redact(value)) == redact(value)


def expected(value: Any) -> Any:
    if isinstance(value, dict):
        rows = cast("dict[str, Any]", value).items()
        return {key: expected(each) for key, each in rows if key not in SECRET_KEYS}
    return [expected(each) for each in cast("list[Any]", value)] if type(value) is list else value


def test_depth_and_sharing_are_no_trouble() -> None:
    deep: Any = {"token": 1}
    for _ in range(20_000):
        deep = [deep]
    made = redact(deep)
    while made != [{}]:
        (made,) = made
    shared: Any = {"token": 1, "n": 2}
    for _ in range(500):  # 2 ** 500 places
        shared = [shared, shared]
    first, second = redact(shared)
    assert first is second
    loop: list[Any] = []
    loop.append(loop)
    assert redact(loop)[0][0][0]
