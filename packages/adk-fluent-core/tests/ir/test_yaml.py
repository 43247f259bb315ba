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
        ("[" * 1500, "not YAML"),
        ("just text", "the document: it is no pipeline"),
        ("", "the document: it is no pipeline"),
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


@pytest.mark.parametrize(
    "text", ["\x85", "a\u2028b", "\u2029", "\ufeff", "\ud800", "=", "1e4", "on"]
)
def test_text_is_read_as_it_was_written(text: str) -> None:
    node = ir.AgentNode("a", description=text)
    assert ir.from_yaml(ir.to_yaml(node)) == node


def test_settings_of_a_middleware_are_written_by_hand() -> None:
    text = (
        "format: adk-fluent-ir\n"
        "version: 1\n"
        "nodes:\n"
        "- kind: AgentNode\n"
        "  data:\n"
        "    name: a\n"
        "- kind: MiddlewareNode\n"
        "  data:\n"
        "    name: a_scoped\n"
        "    stack:\n"
        "    - $: MiddlewareRef\n"
        "      name: retry\n"
        "      config:\n"
        "        max_attempts: 5\n"
        "        tools:\n"
        "        - search\n"
        "        backoff: {base: 0.5, names: [a, null, true]}\n"
        "  children:\n"
        "    body: 0\n"
    )
    node = ir.from_yaml(text)
    assert isinstance(node, ir.MiddlewareNode)
    config = {
        "max_attempts": 5,
        "tools": ("search",),
        "backoff": {"base": 0.5, "names": ["a", None, True]},
    }
    assert node.stack == (ir.MiddlewareRef("retry", config),)
    assert ir.from_yaml(ir.to_yaml(node)) == node


@pytest.mark.parametrize(
    "config", ["5", "[a]", "{1: a}", "{since: 2026-01-01}", "{names: {2: a}}", "{a: !!set {b}}"]
)
def test_other_settings_are_refused(config: str) -> None:
    text = ir.to_yaml(Agent("a").middleware(ir.MiddlewareRef("retry", {"a": 0})).to_ir())
    assert ":\n        a: 0\n" in text
    with pytest.raises(IRFormatError, match="config"):
        ir.from_yaml(text.replace("\n        a: 0\n", f" {config}\n"))


@pytest.mark.parametrize("value", [b"x", {1}, {1: 2}, object(), [repr], ir.MiddlewareRef("retry")])
def test_settings_that_no_file_can_hold_are_not_written(value: object) -> None:
    node = Agent("a").middleware(ir.MiddlewareRef("retry", {"a": [value]})).to_ir()
    with pytest.raises(IRFormatError, match="settings with a"):
        ir.to_yaml(node)


class Named:
    """A middleware that a name and settings are enough for, or not."""

    def __init__(self, reference: ir.MiddlewareRef | None) -> None:
        self.reference = reference

    def __middleware_ref__(self) -> ir.MiddlewareRef | None:
        return self.reference

    async def before_model(self, ctx: object, request: object) -> None: ...


def test_an_object_that_knows_its_reference_is_written_as_one() -> None:
    reference = ir.MiddlewareRef("retry", {"max_attempts": 5})
    inner = Agent("a").middleware(Named(reference), scope="agent")
    by_name = Agent("a").middleware(reference, scope="agent")
    live, named = (
        (each >> Agent("b")).middleware(middleware).to_ir()
        for each, middleware in ((inner, Named(reference)), (by_name, reference))
    )
    assert ir.from_yaml(ir.to_yaml(live)) == named
    assert ir.registry_of(live) == {}
    config = ir.ExecutionConfig(middlewares=[Named(reference)])
    assert isinstance(live, ir.AppNode)
    again = ir.from_yaml(ir.to_yaml(live.replace(execution=config)))
    assert isinstance(again, ir.AppNode)
    assert again.execution is not None
    assert again.execution.middlewares == (reference,)
    for written in (live, live.replace(execution=config)):
        assert ir.content_hash(ir.from_yaml(ir.to_yaml(written))) == ir.content_hash(written)


def test_a_hash_tells_apart_what_a_file_tells_apart() -> None:
    def hash_with(reference: ir.MiddlewareRef | None) -> str:
        return ir.content_hash(Agent("a").middleware(Named(reference)).to_ir())

    references = [
        None,
        ir.MiddlewareRef("retry"),
        ir.MiddlewareRef("cache"),
        ir.MiddlewareRef("retry", {"max_attempts": 5}),
        ir.MiddlewareRef("retry", {"max_attempts": 6}),
        ir.MiddlewareRef("retry", {"tools": ("search",)}),
    ]
    assert len({hash_with(each) for each in references}) == len(references)
    assert hash_with(references[3]) == hash_with(ir.MiddlewareRef("retry", {"max_attempts": 5}))
    assert hash_with(references[5]) == hash_with(ir.MiddlewareRef("retry", {"tools": ["search"]}))


def test_an_object_that_has_no_reference_stays_a_live_object() -> None:
    node = Agent("a").middleware(Named(None)).to_ir()
    assert ir.from_yaml(ir.to_yaml(node), registry=ir.registry_of(node)) == node
    with pytest.raises(IRFormatError, match="the registry does not have it"):
        ir.from_yaml(ir.to_yaml(node))
