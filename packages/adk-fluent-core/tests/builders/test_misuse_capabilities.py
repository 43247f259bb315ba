"""Mistakes with capabilities, presets, resources and runs: refused at once, saying where."""
# ruff: noqa: PLW0108  # the line of each lambda is the line that the error must name

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from misuse import STEPS, Case

import adk_fluent
from adk_fluent.errors import BuildError, UnknownNameError
from adk_fluent.ir import Modality, ModelCandidate

Agent: Any = adk_fluent.Agent  # Any: a type checker finds most of these mistakes by itself
Pipeline: Any = adk_fluent.Pipeline
Preset: Any = adk_fluent.Preset
RemoteAgent: Any = adk_fluent.RemoteAgent
Resource: Any = adk_fluent.Resource
agent: Any = adk_fluent.agent

WRONG: Any = 3
HIGH: Any = "high"
FLASH = ModelCandidate("gemini-2.5-flash", 0.0003, 0.0025, quality_tier=1)
a: Any = Agent("a")
CANDIDATES = '.model_select(candidates=[ModelCandidate("gemini-2.5-flash", quality_tier=1)])'
MODALITIES = f"one of {', '.join(map(repr, Modality))}"


def silent() -> str:
    return ""


def plugin(name: str) -> Any:
    from google.adk.plugins.base_plugin import BasePlugin  # where ADK is installed

    return BasePlugin(name)


class Model:
    def generate_content_async(self) -> None:
        pass


Unmade: Any = Model
remote: Any = partial(RemoteAgent, "far", endpoint="http://far")

CASES = [
    Case(
        lambda: a.produces(int),
        ".produces(...) takes a type with annotated fields",
        found="the class int",
        help="a pydantic model, a dataclass or a TypedDict",
    ),
    Case(
        lambda: a.consumes(list[str]),
        ".consumes(...) takes a type with annotated fields",
        found="the type list[str]",
        help="a pydantic model, a dataclass or a TypedDict",
    ),
    Case(
        lambda: a.produces(3),
        ".produces(...) takes a type",
        found="3",
        help="pass a pydantic model class, not an instance",
    ),
    Case(lambda: a.accepts(), ".accepts(...) needs a Modality at least", found="nothing"),
    Case(
        lambda: a.accepts("image"),
        ".accepts(...) takes Modalities",
        found="a str",
        help=MODALITIES,
    ),
    Case(
        lambda: a.accepts(Modality.TEXT, max_tokens=0),
        ".accepts(max_tokens=...) takes a number of tokens, 1 or more",
        found="0",
    ),
    Case(
        lambda: a.produces_modality(Modality.TEXT, max_tokens=True),
        ".produces_modality(max_tokens=...) takes a number of tokens, 1 or more",
        found="True",
    ),
    Case(
        lambda: a.produces_modality(3),
        ".produces_modality(...) takes Modalities",
        found="3",
        help=MODALITIES,
    ),
    Case(
        lambda: a.model_select(candidates=[]),
        ".model_select(candidates=...) needs a ModelCandidate at least",
        found="nothing",
    ),
    Case(
        lambda: a.model_select(candidates=["gemini"]),
        ".model_select(candidates=...) takes ModelCandidates, in a list",
        found="a str",
        help=CANDIDATES,
    ),
    Case(
        lambda: a.model_select(candidates=FLASH),
        ".model_select(candidates=...) takes ModelCandidates, in a list",
        found="a ModelCandidate",
        help=CANDIDATES,
    ),
    Case(
        lambda: a.model_select(candidates=WRONG),
        ".model_select(candidates=...) takes ModelCandidates, in a list",
        found="3",
        help=CANDIDATES,
    ),
    Case(
        lambda: a.model_select(candidates=[ModelCandidate(Unmade)]),
        "ModelCandidate(...) takes a model name or an ADK model",
        found="the class Model",
        help='pass a name such as "gemini-2.5-flash", or an instance of a BaseLlm',
    ),
    Case(
        lambda: a.model_select(candidates=[ModelCandidate("m", quality_tier=HIGH)]),
        "ModelCandidate('m') has a quality_tier that is no whole number",
        found="a str",
        help="quality_tier=1 for the plainest; higher is better",
    ),
    Case(
        lambda: a.model_select(candidates=[ModelCandidate("m", max_tokens=0)]),
        "ModelCandidate('m') has a max_tokens that is no number of tokens",
        found="0",
        help="max_tokens=200_000 is the largest prompt that it is given",
    ),
    Case(
        lambda: a.model_select(candidates=[FLASH], budget_key=""),
        ".model_select(budget_key=...) takes state keys",
        found="an empty str",
        help='pass a key such as "intent" or "user:tier", or a field of a StateSchema',
    ),
    Case(
        lambda: a.model_select(candidates=[ModelCandidate("", 0, 0)]),
        "ModelCandidate(...) takes a model name or an ADK model",
        found="an empty str",
        help='pass a name such as "gemini-2.5-flash", or an instance of a BaseLlm',
    ),
    Case(
        lambda: a.model_select(candidates=[ModelCandidate("m", 0.3, 2.5)]),
        "ModelCandidate('m'): 0.3 USD for a thousand input tokens is no price",
        found="$300 for a million, or $0.3 if it is meant for a million",
        help='prices={"input": 0.3, ...} is USD per million tokens',
    ),
    Case(
        lambda: a.model_select(candidates=[ModelCandidate("m", 0.001)]),
        "ModelCandidate('m') has prices of two kinds, or a part of them",
        found="cost_per_1k_input=0.001",
        help='prices={"input": ..., "output": ...}, USD per million tokens, and nothing else',
    ),
    Case(
        lambda: a.model_select(candidates=[ModelCandidate("m", prices={"input": -1, "output": 1})]),
        "ModelCandidate('m') has a price of input tokens that is no number of 0 or more",
        found="-1",
        help='prices={"input": 0.3, "output": 2.5}, USD per million tokens',
    ),
    Case(
        lambda: a.model_select(candidates=[ModelCandidate("m", prices=WRONG)]),
        "ModelCandidate('m') has prices that are no mapping of kinds of tokens to USD per million",
        found="3",
        help='prices={"input": 0.3, "output": 2.5}',
    ),
    Case(
        lambda: a.model_select(candidates=[ModelCandidate("m", condition=WRONG)]),
        "ModelCandidate('m') has a condition that is no function",
        found="3",
        help='condition=lambda ctx, request: ctx.state.get("plan") == "pro"',
    ),
    Case(
        lambda: a.model_select(strategy="budget_bounded", candidates=[FLASH]),
        '.model_select(strategy="budget_bounded") needs a fallback_model',
        help='fallback_model="gemini-2.5-flash-lite", asked once money is short',
    ),
    Case(
        lambda: a.model_select(fallback_model=7, candidates=[FLASH]),
        ".model_select(fallback_model=...) takes a model name or an ADK model",
        found="7",
        help='pass a name such as "gemini-2.5-flash", or an instance of a BaseLlm',
    ),
    Case(
        lambda: a.model_select(strategy="adaptive", candidates=[FLASH]),
        '.model_select(judge=...) is for strategy="adaptive", which needs one',
        found="strategy='adaptive' without a judge",
        help="judge=lambda reply: len(reply.text) > 20",
    ),
    Case(
        lambda: a.model_select(judge=len, candidates=[FLASH]),
        '.model_select(judge=...) is for strategy="adaptive", which needs one',
        found="strategy='cost_optimized' with a judge",
        help="judge=lambda reply: len(reply.text) > 20",
    ),
    Case(
        lambda: a.model_select(strategy="cheap", candidates=[FLASH]),
        "strategy is one of 'cost_optimized', 'quality_optimized', 'budget_bounded', 'adaptive'",
        found="'cheap'",
        error=UnknownNameError,
    ),
    Case(
        lambda: a.stream_to("tokens"),
        "buffering is one of 'full', 'chunked', 'token'",
        found="'tokens'",
        help="did you mean 'token'?",
        error=UnknownNameError,
    ),
    Case(
        lambda: a.stream_to("chunked"),
        "chunk_size= goes with buffering='chunked', and with nothing else",
        found="buffering='chunked', chunk_size=None",
        help='such as .stream_to("chunked", chunk_size=32)',
    ),
    Case(
        lambda: a.stream_to("token", chunk_size=3),
        "chunk_size= goes with buffering='chunked', and with nothing else",
        found="buffering='token', chunk_size=3",
        help='such as .stream_to("chunked", chunk_size=32)',
    ),
    Case(lambda: a.stream_to("chunked", chunk_size=0), "chunk_size is an int above 0", found="0"),
    Case(
        lambda: a.execution_boundary(serialization="xml"),
        "serialization is one of 'json', 'msgpack', 'protobuf', 'arrow'",
        found="'xml'",
        error=UnknownNameError,
    ),
    Case(
        lambda: a.execution_boundary(isolation="vm"),
        "isolation is one of 'none', 'process', 'container'",
        found="'vm'",
        error=UnknownNameError,
    ),
    Case(
        lambda: a.execution_boundary(transport="queue"),
        "transport= takes a TransportConfig",
        found="a str",
    ),
    Case(lambda: a.execution_boundary(scaling=3), "scaling= takes a ScalingConfig", found="3"),
    Case(
        lambda: remote(endpoint="far"),
        "endpoint= takes the URL of an agent",
        found="'far'",
        help='such as "https://payments.internal/a2a"',
    ),
    Case(
        lambda: remote(endpoint="https://ann:s3cret@far/a2a"),
        "endpoint= takes a URL without credentials",
        found="https://far/a2a",
        help='name the variable that holds the secret: auth=AuthConfig("bearer", "TOKEN")',
    ),
    Case(
        lambda: remote(endpoint=3),
        "endpoint= takes the URL of an agent",
        found="3",
        help='such as "https://payments.internal/a2a"',
    ),
    Case(
        lambda: remote(endpoint="https://far/a2a?tenant=3&api_key=hunter2"),
        "endpoint= takes a URL without credentials",
        found="https://far/a2a",
        help='name the variable that holds the secret: auth=AuthConfig("bearer", "TOKEN")',
    ),
    Case(
        lambda: remote().writes("_adk_paid"),
        ".writes(...) does not take '_adk_paid'",
        found="a key that ADK and adk-fluent keep for themselves",
        help="choose another key",
    ),
    Case(
        lambda: remote(capabilities="refund"),
        "capabilities= takes names of skills",
        found="'refund'",
        help='such as ("process_refund", "check_balance")',
    ),
    Case(
        lambda: remote(capabilities=[""]),
        "capabilities= takes names of skills",
        found="['']",
        help='such as ("process_refund", "check_balance")',
    ),
    Case(
        lambda: remote(capabilities=[3]),
        "capabilities= takes names of skills",
        found="[3]",
        help='such as ("process_refund", "check_balance")',
    ),
    Case(lambda: remote(timeout=0), "timeout is a number above 0", found="0"),
    Case(lambda: remote(auth="secret"), "auth= takes an AuthConfig", found="a str"),
    Case(lambda: remote(retry=3), "retry= takes a RetryConfig", found="3"),
    Case(
        lambda: remote(fallback=3),
        "3 cannot be a fallback",
        help=STEPS,
    ),
    Case(
        lambda: remote(input_schema=3),
        "input_schema= takes a type",
        found="3",
        help="pass a pydantic model class, not an instance",
    ),
    Case(
        lambda: RemoteAgent("far away", endpoint="http://far"),
        "'far away' cannot name a RemoteAgent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'far_away'",
        error=BuildError,
    ),
    Case(
        lambda: RemoteAgent("far", endpoint="http://far").tool(print),
        "RemoteAgent 'far' has no method 'tool'",
        help="it is a method of Agent",
        error=UnknownNameError,
    ),
    *(
        Case(
            lambda url=url: RemoteAgent("far", endpoint=url),
            "endpoint= takes the URL of an agent",
            found=repr(url),
            help='such as "https://payments.internal/a2a"',
        )
        for url in (
            "https://",
            "https://[far",
            "https://far:99999",
            "https://far away/",
            "http://x\n",
        )
    ),
    *(
        Case(
            lambda names=names: remote(capabilities=names),
            "capabilities= takes names of skills",
            found=repr(names),
            help='such as ("process_refund", "check_balance")',
        )
        for names in (3, None, [""], "refund")
    ),
    *(
        Case(
            made,
            f"two {role} of a remote agent are called 'a'",
            found="'user:a' and 'app:a'",
            help="they cross without the prefix of their scope: let a step rename one",
        )
        for role, made in (
            ("inputs", lambda: remote(inputs=("user:a", "app:a"))),
            ("inputs", lambda: remote(inputs="user:a").reads("app:a")),
            ("outputs", lambda: remote(outputs=("user:a", "app:a"))),
            ("outputs", lambda: remote(outputs="user:a").writes("b", "app:a")),
        )
    ),
    Case(
        lambda: RemoteAgent("far"),
        "RemoteAgent 'far' takes either endpoint= or card=",
        found="neither",
        help='such as endpoint="https://payments.internal/a2a"',
    ),
    Case(
        lambda: remote(card={}),
        "RemoteAgent 'far' takes either endpoint= or card=",
        found="both",
        help='such as endpoint="https://payments.internal/a2a"',
    ),
    Case(
        lambda: remote(verify_card="ES256"),
        "verify_card= takes a function of a card",
        found="a str",
        help="such as a2a.utils.signing.create_signature_verifier(key_provider, ['ES256'])",
    ),
    Case(
        lambda: remote(history="own"),
        "history is one of 'input', 'transcript', 'none'",
        found="'own'",
        error=UnknownNameError,
    ),
    Case(
        lambda: remote(inputs=7),
        "inputs= takes state keys",
        found="7",
        help='pass a key such as "intent" or "user:tier", or a field of a StateSchema',
    ),
    Case(
        lambda: remote(idempotent="yes"),
        "idempotent is one of False, True",
        found="'yes'",
        error=UnknownNameError,
    ),
    Case(
        lambda: Preset(historie="own"),
        "an agent has no setter 'historie'",
        help="did you mean 'history'?",
        error=UnknownNameError,
    ),
    Case(lambda: Preset(run=1), "an agent has no setter 'run'", error=UnknownNameError),
    Case(
        lambda: Preset({"model": "x"}),
        "a preset is made of presets and settings",
        found="a dict",
        help='Preset(base, model="gemini-2.5-pro")',
    ),
    Case(
        lambda: a.use({"model": "x"}),
        ".use(...) takes Presets",
        found="a dict",
        help='such as Preset(model="gemini-2.5-pro", history="own")',
    ),
    Case(lambda: a.use(), ".use(...) needs a Preset at least", found="nothing"),
    Case(
        lambda: Preset(history="al"),
        ".history(...) is one of 'transcript', 'own', 'input', 'none'",
        found="'al'",
        error=UnknownNameError,
    ),
    Case(
        lambda: Preset(tool=42),
        ".tool(...) takes a function, an ADK tool or a toolset",
        found="42",
        help="pass the function itself; its name, signature and docstring are what the model sees",
    ),
    Case(
        lambda: agent(silent),
        "the agent 'silent' has no instruction",
        help="write it as the docstring, or let the function take ADK's context and return it",
    ),
    Case(
        lambda: agent("x")(3),
        "@agent decorates a function",
        found="3",
        help="it returns the instruction, or has it as its docstring",
    ),
    Case(
        lambda: agent("x", modle="y"),
        "an agent has no setter 'modle'",
        help="did you mean 'model'?",
        error=UnknownNameError,
    ),
    Case(
        lambda: agent("my agent")(silent),
        "'my agent' cannot name an Agent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'my_agent'",
        error=BuildError,
    ),
    Case(lambda: a.inject(), ".inject(...) needs a resource at least", found="nothing"),
    Case(
        lambda: a.inject(state=1),
        "no resource can be injected as 'state'",
        help="functions already get something else under that name: choose another one",
    ),
    Case(
        lambda: a.inject(_db=1),
        "no resource can be injected as '_db'",
        help="it is the name of a parameter: letters, digits and '_', not starting with '_'",
    ),
    Case(
        lambda: a.inject(tool_context=1),
        "no resource can be injected as 'tool_context'",
        help="functions already get something else under that name: choose another one",
    ),
    Case(
        lambda: Resource(3),
        "Resource(...) takes a function that makes it",
        found="3",
        help="an object that exists already is injected as it is: .inject(name=object)",
    ),
    Case(
        lambda: Resource(dict, cleanup=3),
        "Resource(cleanup=...) takes a function",
        found="3",
        help="it is called with what the factory made; it may be async",
    ),
    Case(
        lambda: Resource(dict, scope="sesion"),
        "scope is one of 'app', 'session', 'invocation'",
        found="'sesion'",
        help="did you mean 'session'?",
        error=UnknownNameError,
    ),
]

RUNS = [
    Case(
        lambda: a.ask(3),
        "cannot use int as a message",
        found="3",
        help="give a text, a genai Content or Part, or a list of texts and Parts",
    ),
    Case(
        lambda: a.ask(""),
        "the message is empty",
        help="give a text, a genai Content or Part, or a list of texts and Parts",
    ),
    Case(
        lambda: a.ask("x", sesion_id="s"),
        "a run on ADK takes no 'sesion_id'",
        help="did you mean 'session_id'?",
        error=UnknownNameError,
    ),
    Case(lambda: a.ask("x", prompt=1), "a run takes no 'prompt'", error=UnknownNameError),
    Case(
        lambda: a.ask("x", config={"max_llm_calls": 3}),
        "config= takes an ExecutionConfig",
        found="a dict",
    ),
    Case(lambda: a.ask("x", user_id=3), "user_id= takes a text that is not empty", found="3"),
    Case(
        lambda: a.ask("x", backend=3),
        "backend= takes something that compiles and streams, such as mock_backend(...)",
        found="3",
    ),
    Case(
        lambda: a.ask("x", listeners=[3]),
        "listeners= takes a list of listeners, such as [Trace()]",
        found="a list",
    ),
    Case(
        lambda: a.ask("x", state=[1]),
        "state takes a mapping of names to values",
        found="a list",
        help='give a dict such as {"city": "Oslo"}',
    ),
    Case(
        lambda: a.ask("x", state={3: 1}),
        "state takes a mapping of names to values",
        found="a mapping with keys that are no str",
        help='give a dict such as {"city": "Oslo"}',
    ),
    Case(
        lambda: a.visualize(format="png"),
        "there is no picture format 'png'",
        help="use one of: mermaid, dot, svg, html",
    ),
    Case(
        lambda: a.to_app(plugins=3),
        "plugins= takes a list of ADK plugins",
        found="3",
        help="such as [LoggingPlugin()], instances of BasePlugin",
    ),
    Case(
        lambda: a.to_app(plugins=["log"]),
        "plugins= takes a list of ADK plugins",
        found="a str",
        help="such as [LoggingPlugin()], instances of BasePlugin",
    ),
    Case(
        lambda: a.to_app(plugins=[plugin("p"), plugin("q"), plugin("p")]),
        "two plugins are called 'p'",
        help="give one another name",
    ),
    Case(
        lambda: a.to_app(config=3),
        "config takes an ExecutionConfig",
        found="3",
        help="from adk_fluent.config import ExecutionConfig",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_mistake_is_refused_with_an_exact_message(case: Case) -> None:
    assert case.raised() == case.expected()


@pytest.mark.adk
@pytest.mark.parametrize("case", RUNS, ids=str)
def test_a_run_is_refused_with_an_exact_message(case: Case) -> None:
    assert case.raised() == case.expected()
