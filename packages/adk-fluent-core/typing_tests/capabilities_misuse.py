"""Mistakes with capabilities, resources, presets, remotes that type checkers find; never run."""

from __future__ import annotations

from adk_fluent import Agent, Preset, RemoteAgent, Resource, agent
from adk_fluent.ir import Modality, ModelCandidate

a = Agent("a")
flash = ModelCandidate("gemini-2.5-flash", 0.0003, 0.0025, quality_tier=1)
base = Preset(model="gemini-2.5-flash")


def text(context: object) -> str:
    return str(context)


def number(context: object) -> int:
    return id(context)


# --- what an agent takes and gives ---------------------------------------------------------------

a.accepts("image")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.accepts([Modality.IMAGE])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.accepts(Modality.IMAGE, max_tokens="9")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.accepts(Modality.IMAGE, tokens=9)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
a.accepts(Modality.PICTURE)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
a.produces_modality(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.produces("Ticket")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.produces()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
a.consumes({"number": str})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.model_select()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
a.model_select(candidates="gemini-2.5-flash")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.model_select(candidates=["gemini-2.5-flash"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
a.model_select(candidates=[flash], strategy="cheap")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.model_select([flash])  # type: ignore[arg-type, call-arg]  # pyright: ignore[reportCallIssue]
ModelCandidate()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
ModelCandidate("gemini-2.5-flash", prices=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ModelCandidate("gemini-2.5-flash", condition="pro")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.model_select(candidates=[flash], judge="good")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.stream_to("tokens")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.stream_to("chunked", chunk_size="32")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.stream_to("chunked", 32)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
a.execution_boundary(serialization="xml")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.execution_boundary(isolation="vm")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.execution_boundary(transport="queue")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.execution_boundary(scaling=20)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- resources -----------------------------------------------------------------------------------

a.inject("db")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
a.inject(dict, scope="app")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Resource("db")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Resource(dict, scope="run")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Resource(dict, cleanup=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Resource(dict, close=print)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

# --- presets, and agents as functions ------------------------------------------------------------

Preset(historie="own")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Preset(history="al")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Preset(model=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Preset(tool=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Preset(tool="search")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Preset(writes=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Preset({"model": "x"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Preset(base, 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Preset(run=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
a.use("careful")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
a.use({"model": "x"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent(3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
agent("x", modle="y")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
agent("x", history="all")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
agent("x")(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent(number)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]

# --- agents elsewhere ----------------------------------------------------------------------------

RemoteAgent("far")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
RemoteAgent("far", endpoint="http://far", card={})  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
RemoteAgent.from_card({}, tmeout=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
RemoteAgent("far", "http://far")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
RemoteAgent("far", endpoint=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
RemoteAgent("far", endpoint="http://far", capabilities=[3])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
RemoteAgent("far", endpoint="http://far", timeout="3")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
RemoteAgent("far", endpoint="http://far", auth="secret")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
RemoteAgent("far", endpoint="http://far", retry=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
RemoteAgent("far", endpoint="http://far", fallback=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
RemoteAgent("far", endpoint="http://far").tool(text)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
RemoteAgent("far", endpoint="http://far").instruct("x")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
