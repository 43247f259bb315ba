"""Requests as middlewares see them: restored, told apart, and measured."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from adk_fluent.protocol import RequestSnapshot, estimate_tokens, request_data, request_key

if TYPE_CHECKING:
    from collections.abc import Callable

adk = pytest.mark.adk


def ask(*contents: Any, model: str | None = "gemini-2.5-flash", **config: Any) -> Any:
    """An LlmRequest; a text is something the user says."""
    from google.adk.models.llm_request import LlmRequest
    from google.genai import types

    said: list[Any] = [
        types.UserContent(each) if isinstance(each, str) else each for each in contents or ("hi",)
    ]
    return LlmRequest(
        model=model, contents=said, config=types.GenerateContentConfig.model_validate(config)
    )


def called(*calls: tuple[str, str | None], args: dict[str, Any] | None = None) -> Any:
    from google.genai import types

    parts = [
        types.Part(function_call=types.FunctionCall(name=name, id=id, args=args or {"x": 1}))
        for name, id in calls
    ]
    return types.Content(role="model", parts=parts)


def answered(*results: tuple[str, str | None, Any]) -> Any:
    from google.genai import types

    parts = [
        types.Part(
            function_response=types.FunctionResponse(name=name, id=id, response={"result": value})
        )
        for name, id, value in results
    ]
    return types.Content(role="user", parts=parts)


# --- the key: what is the same -------------------------------------------------------------------


@adk
def test_the_same_asked_again_has_the_same_key() -> None:
    assert request_key(ask("hi", temperature=0.5)) == request_key(ask("hi", temperature=0.5))
    assert len(request_key(ask())) == 64
    assert int(request_key(ask()), 16)


@adk
def test_ids_of_calls_do_not_count() -> None:
    """Every run has its own; some providers have none, and ADK takes its own away for Gemini."""

    def key(one: str | None, two: str | None) -> str:
        return request_key(
            ask(
                called(("look", one), ("look", two)),
                answered(("look", one, "A"), ("look", two, "B")),
            )
        )

    assert key("adk-1", "adk-2") == key("call_9", "call_8") == key(None, None) == key("b", "a")


@adk
def test_answers_without_an_id_are_those_of_the_calls_still_open() -> None:
    calls = called(("look", "1"), ("look", "2"))
    some = ask(calls, answered(("look", "1", "A"), ("look", None, "B")))
    each = ask(calls, answered(("look", "1", "A"), ("look", "2", "B")))
    assert request_key(some) == request_key(each)


@adk
def test_which_call_an_answer_belongs_to_counts() -> None:
    calls = called(("look", "1"), ("look", "2"))
    straight = ask(calls, answered(("look", "1", "A"), ("look", "2", "B")))
    crossed = ask(calls, answered(("look", "2", "A"), ("look", "1", "B")))
    assert request_key(straight) != request_key(crossed)


@adk
def test_an_answer_may_come_twice_or_to_no_call() -> None:
    """A long-running tool answers more than once; an old call may have been left out."""
    calls = called(("look", "1"), ("wait", "2"))
    once = ask(calls, answered(("wait", "2", "soon")), answered(("wait", "2", "now")))
    same = ask(
        called(("look", "8"), ("wait", "9")),
        answered(("wait", "9", "soon")),
        answered(("wait", "9", "now")),
    )
    assert request_key(once) == request_key(same)
    assert request_key(ask(answered(("look", "1", "A")))) == request_key(
        ask(answered(("look", "2", "A")))
    )


@adk
def test_what_does_not_bear_upon_the_answer_does_not_count() -> None:
    plain = request_key(ask())
    assert plain == request_key(ask(labels={"adk_agent_name": "clerk"}))
    assert plain == request_key(ask(http_options={"headers": {"x-request-id": "7"}, "timeout": 9}))
    assert plain == request_key(ask(tools=[], safety_settings=None, stop_sequences=[]))
    request = ask()
    request.cacheable_contents_token_count = 7
    assert plain == request_key(request)


@adk
def test_a_model_may_be_named_beside_the_request() -> None:
    assert request_key(ask(model=None), "gemini-2.5-flash") == request_key(ask())
    assert request_key(ask(model=None), "other") != request_key(ask())


@adk
def test_a_schema_is_the_same_as_a_class_and_in_another_process() -> None:
    """Hashes of texts differ in every process, and with them the order of sets."""
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from pydantic import BaseModel\n"
        "from google.adk.models.llm_request import LlmRequest\n"
        "from google.genai import types\n"
        "from adk_fluent.protocol import request_key\n"
        "class Trip(BaseModel):\n"
        "    city: str\n"
        "    days: int | None = None\n"
        "part = types.Part(function_response=types.FunctionResponse(\n"
        "    name='f', id='7', response={'tags': {'a', 'b', 'c', 'd'}, 'z': 1, 'y': 2}))\n"
        "print(request_key(LlmRequest(model='m', contents=[types.Content(parts=[part])],\n"
        "    config=types.GenerateContentConfig(response_schema=list[Trip]))))\n"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, *sys.path],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1
    assert len(keys.pop().strip()) == 64


# --- the key: what is not ------------------------------------------------------------------------

DIFFERENCES: dict[str, Callable[[], Any]] = {
    "the model": lambda: ask(model="gemini-2.5-pro"),
    "the text": lambda: ask("Hi"),
    "the turns": lambda: ask("hi", "hi"),
    "one part": lambda: ask("h", "i"),
    "the temperature": lambda: ask(temperature=0.5),
    "zero": lambda: ask(temperature=0.0),
    "the system instruction": lambda: ask(system_instruction="Be brief."),
    "the schema": lambda: ask(response_schema={"type": "STRING"}),
    "the seed": lambda: ask(seed=1),
    "the tools": lambda: ask(tools=[{"function_declarations": [{"name": "f"}]}]),
    "a built-in tool": lambda: ask(tools=[{"google_search": {}}]),
    "where it goes": lambda: ask(http_options={"base_url": "http://127.0.0.1:1"}),
    "the body": lambda: ask(http_options={"extra_body": {"top": 1}}),
    "a context cache": lambda: ask(cached_content="cachedContents/1"),
}


@adk
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_what_bears_upon_the_answer_counts(difference: str) -> None:
    assert request_key(DIFFERENCES[difference]()) != request_key(ask())


@adk
def test_all_these_differ_from_each_other() -> None:
    assert len({request_key(make()) for make in DIFFERENCES.values()}) == len(DIFFERENCES)


@adk
def test_the_conversation_a_service_keeps_counts() -> None:
    request = ask()
    request.previous_interaction_id = "interactions/1"
    assert request_key(request) != request_key(ask())


@adk
def test_who_says_something_counts() -> None:
    from google.genai import types

    assert request_key(ask(types.ModelContent("hi"))) != request_key(ask(types.UserContent("hi")))


@adk
def test_media_count_by_what_is_in_them() -> None:
    from google.genai import types

    def key(data: bytes, kind: str = "image/png") -> str:
        return request_key(ask(types.UserContent(types.Part.from_bytes(data=data, mime_type=kind))))

    assert key(b"\xff\x00") == key(b"\xff\x00")
    assert len({key(b"\xff\x00"), key(b"\xff\x01"), key(b"\xff\x00", "image/jpeg")}) == 3


@adk
def test_a_text_is_not_the_bytes_it_is_the_hash_of() -> None:
    from hashlib import sha256

    text = request_key(ask(answered(("f", None, sha256(b"x").hexdigest()))))
    assert text != request_key(ask(answered(("f", None, b"x"))))


@adk
def test_arguments_and_results_count() -> None:
    one = ask(called(("f", "1"), args={"x": 1}), answered(("f", "1", "A")))
    assert request_key(one) != request_key(
        ask(called(("f", "1"), args={"x": 2}), answered(("f", "1", "A")))
    )
    assert request_key(one) != request_key(
        ask(called(("f", "1"), args={"x": 1}), answered(("f", "1", "B")))
    )
    assert request_key(ask(called(("f", "1"), args={"x": None}))) != request_key(
        ask(called(("f", "1"), args={"y": None}))
    )


@adk
def test_classes_of_one_name_are_told_apart() -> None:
    from pydantic import create_model

    one: Any = create_model("Trip", city=(str, ...))
    other: Any = create_model("Trip", days=(int, ...))
    keys = {
        request_key(ask(response_schema=each))
        for each in (one, other, list[one], list[other], str, list[str])
    }
    assert len(keys) == 6


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: Any = None


@adk
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)),
        (timedelta(1), timedelta(2)),
        (Decimal("1.0"), Decimal("1.1")),
        (UUID(int=1), UUID(int=2)),
        (PurePosixPath("a"), PurePosixPath("b")),
        ({1, 2}, {1, 3}),
        ((1, 2), (2, 1)),
        (Point(1), Point(2)),
        (Point(1, Point(2)), Point(1, Point(3))),
        (True, 1),
        (None, "None"),
        ("\ud800", "\ud801"),
    ],
)
def test_tools_return_anything(one: Any, other: Any) -> None:
    from copy import deepcopy

    first = request_key(ask(answered(("f", None, one))))
    assert first == request_key(ask(answered(("f", None, deepcopy(one)))))
    assert first != request_key(ask(answered(("f", None, other))))


@adk
def test_an_enum_is_its_value() -> None:
    assert request_key(ask(answered(("f", None, Colour.RED)))) == request_key(
        ask(answered(("f", None, "red")))
    )


@adk
def test_fields_that_a_class_does_not_name_count() -> None:
    from pydantic import BaseModel, ConfigDict

    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")

    keys = {request_key(ask(answered(("f", None, Open.model_validate({"x": n}))))) for n in (1, 2)}
    assert len(keys) == 2


@adk
def test_a_live_object_has_no_key() -> None:
    """Its address would be the same as that of another one, later."""
    with pytest.raises(TypeError, match="nothing identifies a SimpleNamespace"):
        request_key(ask(answered(("f", None, SimpleNamespace(x=1)))))

    class Opaque:
        pass

    with pytest.raises(TypeError, match=r"Opaque.*no JSON Schema"):
        request_key(ask(response_schema=Opaque))


@adk
def test_a_live_client_among_the_http_options_does_not_matter() -> None:
    import httpx
    from google.genai import types

    request = ask()
    request.config.http_options = types.HttpOptions()
    request.config.http_options.httpx_client = httpx.Client()
    assert request_key(request) == request_key(ask())
    request.config.http_options.httpx_client.close()


@adk
def test_to_ask_for_the_key_changes_nothing() -> None:
    request = ask(called(("f", "1")), answered(("f", "1", {"a"})), temperature=0.5)
    before = request.model_copy(deep=True)
    request_key(request)
    assert request == before


# --- a snapshot ----------------------------------------------------------------------------------


def changed(request: Any) -> None:
    """What models and middlewares do to a request."""
    from google.genai import types

    request.model = "other"
    request.contents[0].parts[0].text = "changed"
    request.contents[0].parts.append(types.Part(text="more"))
    request.contents.append(types.UserContent("more"))
    request.config.system_instruction = "changed"
    request.config.labels = {"a": "b"}
    request.config.tools[0].function_declarations[0].name = "changed"
    request.config.tools.append(types.Tool(google_search=types.GoogleSearch()))
    request.config.cached_content = "cachedContents/1"
    request.previous_interaction_id = "x"


@adk
def test_a_snapshot_restores_what_was_changed_as_often_as_need_be() -> None:
    request = ask(
        "hi",
        system_instruction="Be brief.",
        tools=[{"function_declarations": [{"name": "f"}]}],
    )
    before, contents = request.model_copy(deep=True), request.contents
    snapshot = RequestSnapshot(request)
    for _ in range(2):
        changed(request)
        assert request != before
        snapshot.restore()
        assert request == before
    assert request.contents is not contents


@adk
def test_a_snapshot_is_not_what_is_given_back() -> None:
    """Two tries get two copies: what the first did to its own is not in the second."""
    request = ask("hi")
    snapshot = RequestSnapshot(request)
    snapshot.restore()
    first = request.contents
    snapshot.restore()
    assert request.contents is not first
    assert request.contents[0].parts[0] is not first[0].parts[0]


@adk
def test_a_request_replaced_as_a_whole_is_restored() -> None:
    from google.genai import types

    request = ask("hi", temperature=0.5)
    snapshot = RequestSnapshot(request)
    request.config = types.GenerateContentConfig()
    request.contents = []
    snapshot.restore()
    restored: Any = request
    assert (restored.config.temperature, restored.contents[0].parts[0].text) == (0.5, "hi")


@adk
def test_live_objects_are_shared() -> None:
    from google.adk.tools import FunctionTool

    def look() -> str:
        """Look."""
        return ""

    request, tool = ask(), FunctionTool(look)
    request.append_tools([tool])
    snapshot = RequestSnapshot(request)
    declared = request.config.tools[0].function_declarations[0].name
    request.config.tools.clear()
    snapshot.restore()
    assert request.tools_dict["look"] is tool
    assert request.config.tools[0].function_declarations[0].name == declared == "look"


class Invoice(BaseModel):
    number: str


@adk
@pytest.mark.parametrize(
    "schema", [Invoice, list[Invoice], Annotated[Invoice, "an invoice"], Invoice | None]
)
def test_schemas_of_answers_are_shared(schema: Any) -> None:
    """A class of models, or an alias of one, is no model: only a model has a copy."""
    request = ask()
    request.config.response_schema = schema
    snapshot = RequestSnapshot(request)
    request.config.response_schema = None
    snapshot.restore()
    assert request.config.response_schema == schema


@adk
def test_what_adk_keeps_in_private_is_restored() -> None:
    request = ask()
    private = request.__pydantic_private__
    if private is None or "_dynamic_instructions" not in private:
        pytest.skip("this ADK keeps nothing in private")
    request._append_dynamic_instructions(["one"])
    snapshot = RequestSnapshot(request)
    for _ in range(2):
        request._append_dynamic_instructions(["two"])
        snapshot.restore()
        assert request._dynamic_instructions == ["one"]


# --- tokens --------------------------------------------------------------------------------------


@adk
def test_four_characters_are_a_token() -> None:
    assert estimate_tokens(ask("x" * 400)) == 100
    assert estimate_tokens(ask("x" * 401)) == 101
    assert estimate_tokens(ask("x" * 200, "y" * 200)) == 100


@adk
def test_a_content_and_a_list_of_contents_will_do() -> None:
    from google.genai import types

    assert estimate_tokens(types.UserContent("x" * 40)) == 10
    assert estimate_tokens([types.UserContent("x" * 40)] * 3) == 30
    assert estimate_tokens([]) == 0
    assert estimate_tokens(types.Content(role="user")) == 0


@adk
def test_instructions_and_tools_count() -> None:
    from google.genai import types

    plain = estimate_tokens(ask("hi"))
    assert estimate_tokens(ask("hi", system_instruction="x" * 400)) == plain + 100
    long = types.Content(parts=[types.Part(text="x" * 400)])
    assert estimate_tokens(ask("hi", system_instruction=long)) == plain + 100
    assert estimate_tokens(ask("hi", system_instruction=["x" * 200, "x" * 200])) == plain + 100
    tool = {"function_declarations": [{"name": "f", "description": "x" * 400}]}
    assert plain + 100 < estimate_tokens(ask("hi", tools=[tool])) < plain + 130


@adk
def test_calls_and_results_count() -> None:
    small, large = called(("f", "1"), args={"x": ""}), called(("f", "1"), args={"x": "y" * 400})
    assert estimate_tokens([large]) - estimate_tokens([small]) == 100
    few, many = answered(("f", "1", "")), answered(("f", "1", "y" * 400))
    assert estimate_tokens([many]) - estimate_tokens([few]) == 100
    assert estimate_tokens([answered(("f", "1", datetime(2026, 1, 1, tzinfo=UTC)))]) > 0


@adk
def test_an_image_counts_as_one_whatever_its_size() -> None:
    from google.genai import types

    image = types.Part.from_bytes(data=b"\xff" * 10_000, mime_type="image/png")
    there = types.Part.from_uri(file_uri="gs://a/b.png", mime_type="image/png")
    assert estimate_tokens(types.UserContent([image, there])) == 2 * 258


def test_what_identifies_a_request_is_plain_data() -> None:
    data = request_data(ask("hi", temperature=0.5))
    assert json.loads(json.dumps(data)) == data
    assert data["contents"][0]["parts"] == [{"text": "hi"}]
    assert data["config"]["temperature"] == 0.5
    assert data.keys() == {"model", "contents", "config", "previous"}
