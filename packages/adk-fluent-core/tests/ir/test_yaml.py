"""IR as YAML: what JSON can hold, YAML can; and what hostile documents get."""

from __future__ import annotations

import pytest
from hypothesis import given
from ir_strategies import graphs, laws

from adk_fluent import Agent, ir
from adk_fluent.errors import IRFormatError


@laws
@given(graphs())
def test_round_trip(root: ir.Node) -> None:
    text = ir.to_yaml(root)
    again = ir.from_yaml(text, registry=ir.registry_of(root))
    assert again == root
    assert ir.content_hash(again) == ir.content_hash(root)
    assert ir.to_yaml(again) == text


def test_people_can_read_it() -> None:
    assert ir.to_yaml((Agent("a", "m") >> Agent("b")).to_ir()) == (
        "format: adk-fluent-ir\n"
        "version: 1\n"
        "nodes:\n"
        "- kind: AgentNode\n"
        "  data:\n"
        "    name: a\n"
        "    model: m\n"
        "- kind: AgentNode\n"
        "  data:\n"
        "    name: b\n"
        "- kind: SequenceNode\n"
        "  data:\n"
        "    name: pipeline\n"
        "  children:\n"
        "    steps:\n"
        "    - 0\n"
        "    - 1\n"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "not YAML"),
        ("a: 1\n\tb: 2", "not YAML"),
        ("!!python/object/apply:os.system [exit]", "not YAML"),
        ("a: &a [x]\nb: [*a, *a]", "aliases"),
        ("[" * 5000, "not YAML"),
        ("just text", "the document"),
        ("", "the document"),
        (b"\xff\xfe\x00", "not YAML"),
        ("format: adk-fluent-ir\nversion: 1\nnodes: 2026-01-01", "nodes"),
    ],
)
def test_what_is_no_pipeline_is_refused(text: str | bytes, says: str) -> None:
    with pytest.raises(IRFormatError, match=says):
        ir.from_yaml(text)


def test_live_objects_need_permission() -> None:
    text = ir.to_yaml((Agent("a") >> repr_state).to_ir())
    with pytest.raises(IRFormatError, match="repr_state"):
        ir.from_yaml(text)


def repr_state(state: object) -> dict[str, str]:
    return {"text": repr(state)}


def test_a_reference_to_a_middleware_is_data() -> None:
    middleware = ir.MiddlewareRef("retry", {"max_attempts": 5, "tools": ["search"]})
    node = Agent("a").middleware(middleware).to_ir()
    again = ir.from_yaml(ir.to_yaml(node))
    assert isinstance(again, ir.AppNode)
    (read,) = again.middlewares
    assert isinstance(read, ir.MiddlewareRef)
    assert dict(read.config or {}) == {"max_attempts": 5, "tools": ["search"]}
