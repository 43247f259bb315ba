"""What checks, pictures and estimates say of remote agents, without asking any."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from remote_kit import card

from adk_fluent import Agent, RemoteAgent
from adk_fluent.a2a import AuthConfig, RetryConfig
from adk_fluent.backends.dry_run import Count, dry_run
from adk_fluent.contracts import Severity, check_a2a_contracts, check_all
from adk_fluent.ir import RemoteAgentNode, to_json

ENDPOINT = "https://pay.example.com"
BEARER: Any = "baerer"


class Order(BaseModel):
    order: str
    amount: int
    note: str = ""


def of_card(**fields: Any) -> Any:
    return card("https://pay.example.com", **fields)


def found(remote: RemoteAgent) -> list[str]:
    return [each.code for each in check_a2a_contracts(Agent("a") >> remote)]


@pytest.mark.parametrize(
    ("code", "wrong", "right"),
    [
        (
            "RMT001",
            lambda: RemoteAgent("p", endpoint=ENDPOINT, inputs="order", input_schema=Order),
            lambda: RemoteAgent("p", endpoint=ENDPOINT, input_schema=Order),
        ),
        (
            "RMT002",
            lambda: RemoteAgent("p", card=of_card(), capabilities=("refund", "fly")),
            lambda: RemoteAgent("p", card=of_card(), capabilities=("refund", "pay")),
        ),
        (
            "RMT003",
            lambda: RemoteAgent("p", endpoint=ENDPOINT, outputs="r", fallback=Agent("b")),
            lambda: RemoteAgent(
                "p", endpoint=ENDPOINT, outputs="r", fallback=Agent("b") >> Agent("c").writes("r")
            ),
        ),
        (
            "RMT003",
            lambda: RemoteAgent(
                "p", endpoint=ENDPOINT, outputs="r", fallback=Agent("b").writes("r") // Agent("c")
            ),
            lambda: RemoteAgent(
                "p", endpoint=ENDPOINT, outputs="r", fallback=Agent("b") | Agent("c")
            ),  # which is not known
        ),
        (
            "RMT004",
            lambda: RemoteAgent("p", endpoint=ENDPOINT, auth=AuthConfig("bearer")),
            lambda: RemoteAgent("p", endpoint=ENDPOINT, auth=AuthConfig("none")),
        ),
        (
            "RMT004",
            lambda: RemoteAgent("p", endpoint=ENDPOINT, auth=AuthConfig("oauth2", "HERE")),
            lambda: RemoteAgent(
                "p", endpoint=ENDPOINT, auth=AuthConfig("oauth2", "HERE", token_url="https://t")
            ),
        ),
        (
            "RMT004",
            lambda: RemoteAgent(
                "p",
                endpoint=ENDPOINT,
                auth=AuthConfig("oauth2", "HERE", token_url="http://t.example.com"),
            ),
            lambda: RemoteAgent(
                "p",
                endpoint=ENDPOINT,
                auth=AuthConfig("oauth2", "HERE", token_url="http://127.0.0.1/token"),
            ),
        ),
        (
            "RMT004",
            lambda: RemoteAgent("p", endpoint=ENDPOINT, auth=AuthConfig(BEARER, "HERE")),
            lambda: RemoteAgent("p", endpoint=ENDPOINT, auth=AuthConfig("bearer", "HERE")),
        ),
        (
            "RMT004",
            lambda: RemoteAgent(
                "p", endpoint=ENDPOINT, auth=AuthConfig("api_key", "HERE", header="X Key:")
            ),
            lambda: RemoteAgent(
                "p", endpoint=ENDPOINT, auth=AuthConfig("api_key", "HERE", header="X-Key")
            ),
        ),
        (
            "RMT007",
            lambda: RemoteAgent("p", endpoint="http://pay.example.com"),
            lambda: RemoteAgent("p", endpoint="http://[::1]:9"),
        ),
        (
            "RMT005",
            lambda: RemoteAgent("p", endpoint=ENDPOINT, auth=AuthConfig("bearer", "NOT_HERE")),
            lambda: RemoteAgent("p", endpoint=ENDPOINT, auth=AuthConfig("bearer", "HERE")),
        ),
        (
            "RMT005",
            lambda: RemoteAgent(
                "p", card=of_card(securityRequirements=[{"schemes": {"b": {"list": []}}}])
            ),
            lambda: RemoteAgent(
                "p",
                card=of_card(securityRequirements=[{"schemes": {"b": {"list": []}}}]),
                auth=AuthConfig("bearer", "HERE"),
            ),
        ),
    ],
)
def test_each_finding_and_the_nearest_pipeline_without_it(
    code: str, wrong: Any, right: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERE", "s3cret")
    assert found(wrong()) == [code]
    assert found(right()) == []
    (finding,) = check_a2a_contracts(wrong())
    expected = Severity.WARNING if code == "RMT005" else Severity.ERROR
    assert finding.severity is expected
    assert "s3cret" not in str(finding)


MALFORMED = [
    "",
    "{",
    "3",
    "null",
    "[]",
    "{}",
    "[" * 100_000,
    '{"skills": 3}',
    '{"skills": [3]}',
    '{"skills": [{"id": []}]}',
    '{"skills": [{"tags": 3}]}',
    '{"skills": [{"tags": [[]]}]}',
    '{"securityRequirements": 3}',
    '{"security": 3}',
    '{"name": "\\ud800"}',
    '{"url": "https://[x"}',
    '{"url": "https://x:99999"}',
    '{"url": "http://pay.example.com"}',
    '{"url": "https://u:p@pay.example.com"}',
]


@pytest.mark.parametrize("text", MALFORMED)
def test_every_malformed_card_is_a_finding(text: str) -> None:
    node = RemoteAgentNode("p", endpoint="", card=text, capabilities=("refund",))
    codes = [each.code for each in check_a2a_contracts(node)]
    assert codes[0] == "RMT006"
    assert set(codes) <= {"RMT006", "RMT002"}
    assert dry_run(node).remotes == {"p": Count(1, 1)}


def test_a_finding_can_be_allowed() -> None:
    wrong = RemoteAgent("p", endpoint=ENDPOINT, auth=AuthConfig("bearer", "NOT_HERE"))
    assert [each.code for each in wrong.check()] == ["RMT005"]
    assert list(wrong.allow("RMT005").check()) == []


def test_inputs_that_nobody_wrote_are_found() -> None:
    report = check_all(RemoteAgent("p", endpoint=ENDPOINT, input_schema=Order), inputs={"order"})
    codes = [(each.code, each.message) for each in report.diagnostics]
    assert [code for code, _ in codes] == ["FLW001"]
    assert "amount" in codes[0][1]


def test_it_is_drawn_and_estimated() -> None:
    remote = RemoteAgent(
        "pay", endpoint=ENDPOINT, retry=RetryConfig(max_attempts=3), fallback=Agent("by_hand", "m")
    )
    assert "pay.example.com" in remote.to_mermaid()
    report = dry_run(remote)
    assert report.absent == {}
    assert report.remotes == {"pay": Count(1, 3)}
    assert report.model_calls == Count(0, 1)


def test_nothing_secret_is_in_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "s3cret")
    remote = RemoteAgent("pay", card=of_card(), auth=AuthConfig("bearer", "HERE"))
    for text in (repr(remote.to_ir()), to_json(remote.to_ir()), str(remote.explain())):
        assert "s3cret" not in text
        assert "HERE" in text or "pay" in text
