"""What holds for every built-in: it can be copied and sent elsewhere, and says what it is."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from typing import TYPE_CHECKING, Any, cast

import pytest
from kit import NAMES, NEEDED, made

from adk_fluent import Agent
from adk_fluent._middlewares import made_middleware
from adk_fluent.errors import IRFormatError, MissingLayerError, UsageError
from adk_fluent.extend import registered_middlewares
from adk_fluent.ir import (
    AppNode,
    MiddlewareRef,
    content_hash,
    from_json,
    from_yaml,
    to_json,
    to_yaml,
)
from adk_fluent.middleware import (
    MemoryStore,
    RetryMiddleware,
    cache,
    circuit_breaker,
    model_fallback,
    pii_filter,
    retry,
    structured_log,
    summarization,
    timeout,
    tool_approval,
)
from adk_fluent.middleware import __all__ as public
from adk_fluent.middleware._layer import LAYER
from adk_fluent.middleware._order import UNSOUND
from adk_fluent.middleware._places import ALIASES, MIDDLEWARES
from adk_fluent.middleware._targets import AGENTS, TOOLS
from adk_fluent.protocol import Middleware, fresh, hooks_of

if TYPE_CHECKING:
    from collections.abc import Callable

by_name = pytest.mark.parametrize("name", NAMES)


@by_name
def test_it_has_a_class_and_a_short_name_and_hooks(name: str) -> None:
    middleware = made(name)
    is_one: bool = isinstance(middleware, Middleware)
    assert is_one
    assert type(middleware).__name__ in public
    assert name in public
    assert hooks_of(middleware)
    assert made(name).name == name


@by_name
def test_a_copy_is_one_too(name: str) -> None:
    middleware = made(name)
    for other in (copy.copy(middleware), copy.deepcopy(middleware), fresh(middleware)):
        assert type(other) is type(middleware)
        assert repr(other) == repr(middleware)


@by_name
def test_it_can_be_sent_to_another_process(name: str) -> None:
    middleware = made(name)
    other = pickle.loads(pickle.dumps(middleware))
    assert repr(other) == repr(middleware)
    assert hooks_of(other) == hooks_of(middleware)


@by_name
def test_its_text_shows_options_and_nothing_else(name: str) -> None:
    text = repr(made(name))
    assert " object at 0x" not in text
    assert text.startswith(type(made(name)).__name__ + "(")


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_an_alias_names_the_same(alias: str, name: str) -> None:
    middleware = made_middleware(MiddlewareRef(alias))
    assert type(middleware) is type(made(name))
    assert (
        registered_middlewares()[alias].config_schema
        == registered_middlewares()[name].config_schema
    )
    assert middleware.__middleware_ref__() == MiddlewareRef(name)


def test_names_are_those_of_the_places_wherever_they_stand() -> None:
    assert {name for *pair, _ in UNSOUND for name in pair} <= {*MIDDLEWARES}
    assert {*TOOLS, *AGENTS} <= {*MIDDLEWARES}
    assert {*MIDDLEWARES, *ALIASES, *(cls for _, cls in MIDDLEWARES.values())} <= {*public}
    assert {entry.name for entry in LAYER.entries("names")} <= {*public}


# --- in files ------------------------------------------------------------------------------------


def written_and_read(middleware: Any) -> Any:
    node = Agent("a").middleware(middleware).to_ir()
    again = from_yaml(to_yaml(node))
    assert from_json(to_json(node)) == again
    assert isinstance(again, AppNode)
    (reference,) = again.middlewares
    assert isinstance(reference, MiddlewareRef)
    assert from_yaml(to_yaml(again)) == again
    return made_middleware(reference)


@by_name
def test_a_file_holds_its_settings(name: str) -> None:
    middleware = made(name)
    assert repr(written_and_read(middleware)) == repr(middleware)
    assert repr(written_and_read(copy.deepcopy(middleware))) == repr(middleware)


@pytest.mark.parametrize(
    "middleware",
    [
        retry(max_attempts=5, tools=["search"]),
        structured_log(logger="runs", content=False),
        pii_filter(strategy={"email": "mask"}, patterns={"order": "X[0-9]+"}, kinds=["email"]),
        timeout(tool={"search": 2}, run=60),
        tool_approval(tools=["pay"], message="Sure?"),
        model_fallback(models=["gemini-2.5-flash", "gemini-2.5-pro"]),
    ],
    ids=lambda each: each.name,
)
def test_settings_are_the_same_when_they_are_read(middleware: Any) -> None:
    again = written_and_read(middleware)
    for option in middleware.DESC.config_schema["properties"]:
        assert str(getattr(again, option)) == str(getattr(middleware, option))


def test_an_object_is_written_by_name() -> None:
    text = to_yaml(Agent("a").middleware(retry(max_attempts=5)).to_ir())
    assert "- $: MiddlewareRef\n      name: retry\n      config:\n        max_attempts: 5\n" in text


def hash_with(middleware: Any) -> str:
    return content_hash(Agent("a").middleware(middleware).to_ir())


@by_name
def test_its_settings_are_part_of_the_hash(name: str) -> None:
    node = Agent("a").middleware(made(name)).to_ir()
    assert content_hash(from_yaml(to_yaml(node))) == content_hash(node) == hash_with(made(name))


def test_other_settings_have_another_hash() -> None:
    assert hash_with(retry(max_attempts=5)) == hash_with(retry(max_attempts=5))
    assert hash_with(retry(max_attempts=5)) == hash_with(
        MiddlewareRef("retry", {"max_attempts": 5})
    )
    assert len({hash_with(retry(max_attempts=each)) for each in (2, 5, 6)}) == 3


def said(name: str, args: dict[str, Any]) -> str:
    return name


class Mine(RetryMiddleware):
    """One of somebody's own, which has inherited its name."""


class Model:
    """What generates text."""

    model = "mine"

    async def generate_content_async(self, request: Any, stream: bool = False) -> Any: ...


def changed() -> Any:
    middleware = retry()
    middleware.retry_if = bool
    return middleware


@pytest.mark.parametrize(
    "middleware",
    [
        retry(random=lambda: 0.0),
        cache(store=MemoryStore()),
        circuit_breaker(failure_if=bool),
        tool_approval(message=said),
        summarization(model=Model()),
        Mine(),
        changed(),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_holds_a_live_object_stays_one(middleware: Any) -> None:
    assert middleware.__middleware_ref__() is None
    text = to_yaml(Agent("a").middleware(middleware).to_ir())
    with pytest.raises(IRFormatError):
        from_yaml(text)


SECRET: Any = {"api_key": "s3cret"}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("model_fallback", {"models": [SECRET]}),
        ("model_fallback", {"models": SECRET}),
        ("summarization", {"model": SECRET}),
        ("tool_emulator", {"model": SECRET}),
        ("retry", {"tools": SECRET}),
    ],
)
def test_an_error_shows_plain_values_only(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        registered_middlewares()[name].factory(**options)
    assert "s3cret" not in str(caught.value)
    assert "dict" in str(caught.value)


class SaysSecrets:
    def __repr__(self) -> str:
        return "s3cret"


@pytest.mark.parametrize(
    "make",
    [
        lambda: cache(store=cast("Any", SaysSecrets())),
        lambda: MemoryStore(max_entries=cast("Any", SaysSecrets())),
        lambda: structured_log(path=cast("Any", SaysSecrets())),
        lambda: pii_filter(patterns={"s3cret!": "x"}),
        lambda: tool_approval(tools=["s3cret", "transfer_to_agent"]),
    ],
)
def test_an_error_does_not_ask_a_value_what_it_says_of_itself(make: Callable[[], Any]) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert "s3cret" not in str(caught.value)


@by_name
def test_an_option_that_there_is_not_is_refused_with_the_one_that_was_meant(name: str) -> None:
    needed = NEEDED.get(name, {})
    kind = cast("Any", type(made(name)))
    (option, *_) = [each.name for each in dataclasses.fields(kind) if each.init]
    with pytest.raises(UsageError, match=f"{name} has no option '{option}x'(.|\n)*{option!r}"):
        kind(**needed, **{f"{option}x": 1})
    with pytest.raises(UsageError, match=f"{name} takes its options by name"):
        kind(5, **needed)


@pytest.mark.parametrize(("option", "meant"), [("retry_iff", "retry_if"), ("clok", "clock")])
def test_live_objects_are_among_the_options(option: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean '{meant}'"):
        cast("Any", retry)(**{option: 1})


def test_an_option_that_is_needed_is_asked_for() -> None:
    with pytest.raises(
        UsageError, match=r"needs the option 'models'(.|\n)*: model_fallback\(models"
    ):
        cast("Any", model_fallback)()
    with pytest.raises(
        UsageError, match=r"needs the option 'models'(.|\n)*: model_fallback\(models"
    ):
        made_middleware(MiddlewareRef("model_fallback"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tools": "pay"}, "'pay'\n  help: give True or False, or a list, such as ['pay']"),
        ({"tools": {"pay"}}, "type set\n  help: give True or False, or a list"),
        ({"tools": ["pay", 3]}, "3\n  help: give a text"),
        ({"models": "no"}, "'no'\n  help: give True or False"),
        ({"max_attempts": "3"}, "'3'\n  help: give a whole number"),
        ({"max_attempts": 0}, "0\n  help: input should be greater than or equal to 1"),
    ],
)
def test_an_error_says_what_would_have_been_right(options: Any, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        retry(**options)
    config = {name: value for name, value in options.items() if not isinstance(value, set)}
    if config:
        with pytest.raises(UsageError, match=re.escape(says)):
            made_middleware(MiddlewareRef("retry", config))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: pii_filter(strategy=cast("Any", "no")), "'placeholder', or a dict"),
        (lambda: pii_filter(strategy=cast("Any", {"email": "no"})), "'no'\n  help: give 'redact'"),
        (lambda: timeout(tool=cast("Any", "5")), "'5'\n  help: give a number, or a dict"),
        (lambda: timeout(tool={"a": -1}), "-1\n  help: input should be greater than 0"),
    ],
)
def test_of_an_option_that_may_be_two_things_the_one_that_was_meant_is_said(
    make: Callable[[], Any], says: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        make()


def test_an_error_shows_a_plain_value() -> None:
    with pytest.raises(UsageError, match="-1"):
        retry(max_attempts=-1)


@pytest.mark.parametrize("module", ["adk_fluent.middleware", "adk_fluent.telemetry"])
def test_an_import_of_a_misspelt_name_says_which_was_meant(module: str) -> None:
    with pytest.raises(ImportError, match=r"did you mean 'otel_enrichment'\?") as caught:
        exec(compile(f"from {module} import otel_enrichmnt", "desk.py", "exec"), {"__name__": "d"})
    assert "where: desk.py:1" in str(caught.value)


def test_a_middleware_of_an_absent_layer_says_where_it_was_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adk_fluent._registry.found", dict)
    source = "from adk_fluent.middleware import recorder"
    with pytest.raises(MissingLayerError) as caught:
        exec(compile(source, "desk.py", "exec"), {"__name__": "desk"})
    assert caught.value.location == "desk.py:1"
