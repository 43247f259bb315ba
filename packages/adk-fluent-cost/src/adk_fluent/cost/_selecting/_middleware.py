"""Asks the model that was chosen, and a better one where its answer will not do."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from adk_fluent.backends import Pass, PassList
from adk_fluent.cost import _requests as requests
from adk_fluent.cost._attribution import CostAttributionMiddleware
from adk_fluent.cost._errors import NoCandidateError, said_by
from adk_fluent.cost._selecting._choice import Choice, Option
from adk_fluent.cost._telemetry import note_model
from adk_fluent.errors import BuildError, UsageError
from adk_fluent.extend import LOG, describe
from adk_fluent.ir import AgentNode, MiddlewareNode, ModelSelectorNode, Node, walk
from adk_fluent.ir import map as rewrite
from adk_fluent.protocol import Middleware, ModelReply, Money, RequestSnapshot, Sink

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adk_fluent.protocol import ModelCall, NextModel


#: A judge's score from which an answer will do.
_ENOUGH: Final = 0.5
#: State key, with the agent's name behind it: the better model that a session has gone over to.
_STAYS: Final = "adk_fluent_model"
#: Key of the metadata of an event that calls tools: which model has called them.
_CALLED: Final = "adk_fluent_called_by"


class ModelSelection(Middleware):
    """Chooses the models of agents that have a selector.

    It stands outside all other middlewares: each of them has to do with the model that was chosen.

    Args:
        choices: By the names of agents.
    """

    adds_tools: Sequence[str] | None = ()
    outermost: ClassVar[bool] = True  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, choices: Mapping[str, Choice]) -> None:
        self._choices = choices

    def refuses_live(self) -> str | None:
        """Say that a live connection has one model."""
        return ".model_select(...) chooses for each model call, and a live connection is none"

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Ask the model that is chosen for a call.

        Raises:
            NoCandidateError: None takes it.
        """
        choice = self._choices.get(call.agent)
        if choice is None:
            return await next(call)
        prices = requests.CANDIDATE_PRICES.set(choice.prices)
        left = requests.LEFT.set(requests.Left(choice.budget_key))
        try:
            selecting = _Selecting(choice, call, next)
            reply = await selecting.reply()
        finally:
            requests.CANDIDATE_PRICES.reset(prices)
            requests.LEFT.reset(left)
        return selecting.signed(reply)


class _Selecting:
    """One call, and who is asked.

    Args:
        choice: The models.
        call: The call.
        next: Sends it.

    Attributes:
        asked: The model that has answered.
    """

    def __init__(self, choice: Choice, call: ModelCall, next: NextModel) -> None:
        self._choice = choice
        self._call = call
        self._next = next
        self._turn = self._called_tools()
        several = choice.fallback is not None or choice.judge is not None
        self._snapshot = RequestSnapshot(call.request) if several else None
        self._cache = call.request.cache_metadata
        self._key = f"{_STAYS}:{call.agent}"
        self.asked: int = 0

    async def reply(self) -> ModelReply:
        """Return the answer that will do."""
        fallback = self._choice.fallback
        try:
            if self._turn is None and self._choice.strategy == "adaptive":
                ladder = [each async for each in self._choice.fitting(self._call)]
                reply = await self._cascade(ladder)
            elif self._turn is None:
                async with aclosing(self._choice.fitting(self._call)) as fitting:
                    first = await anext(fitting)
                reply = await self._ask(first.at)
            else:
                reply = await self._ask(self._turn)
        except NoCandidateError:
            if fallback is None:
                raise
            return await self._ask(fallback)
        if fallback is None or fallback == self.asked or not requests.is_stopped(reply):
            return reply
        LOG.info("agent %s asks %s: money is short", self._call.agent, self._choice.names[fallback])
        return await self._ask(fallback)

    def _called_tools(self) -> int | None:
        """The model that has called the tools whose results are in the request; None is unknown.

        Events know that: a pause for a person may be in between, and another process goes on.
        """
        if self._call.ctx is None or not _has_results(self._call.request):
            return None
        invocation = requests.invocation_of(self._call.ctx)
        for event in reversed(invocation.session.events):
            kept: dict[str, Any] = event.custom_metadata or {}
            name = kept.get(_CALLED)
            if name and event.author == self._call.agent and event.branch == invocation.branch:
                return self._choice.names.index(name) if name in self._choice.names else None
        return None

    async def _ask(self, at: int, sink: Sink | None = None) -> ModelReply:
        """Ask one of the models; the first is the agent's own."""
        call, request = self._call, self._call.request
        if self._snapshot is not None:
            self._snapshot.restore()
        # in place: what ADK tells of the request afterwards is told of the model that was asked
        model = self._choice.models[at] if at else call.model
        request.model = model.model
        request.cache_metadata = None if at else self._cache  # it is the first one's
        self.asked = at
        sink = call.sink if sink is None else sink
        return await self._next(replace(call, model=model, sink=sink))

    # --- adaptive ------------------------------------------------------------------------------

    async def _cascade(self, ladder: Sequence[Option]) -> ModelReply:
        """Ask the cheapest, and better ones as long as the answer will not do."""
        start = self._start(ladder)
        answer: ModelReply | None = None
        held: list[Any] = []
        spent: list[tuple[int, ModelReply]] = []
        for each in ladder[start:]:
            is_last = each is ladder[-1] or _has_results(self._call.request)
            fragments: list[Any] = []
            before, sink = self.asked, None if is_last else Sink(_collecting(fragments))
            reply = await self._ask(each.at, sink)
            if answer is not None and requests.is_stopped(reply):  # no money for a better one
                self.asked = before
                break
            answer, held = reply, fragments
            if requests.is_stopped(reply):
                break
            spent.append((each.at, reply))
            if is_last or await self._will_do(reply):
                break
            LOG.info(
                "agent %s: the answer of %s will not do",
                *(self._call.agent, self._choice.names[each.at]),
            )
        assert answer is not None  # noqa: S101  # a ladder has a step
        for fragment in held:
            await self._call.emit(fragment)
        if len(spent) > 1 and self._call.ctx is not None:
            self._call.ctx.state[self._key] = self._choice.names[self.asked]
        self._compare(spent, ladder[-1].at)
        return answer

    def _start(self, ladder: Sequence[Option]) -> int:
        """Where to begin: a session stays with the better model that it has gone over to."""
        ctx = self._call.ctx
        name = None if ctx is None else ctx.state.get(self._key)
        names = [self._choice.names[each.at] for each in ladder]
        return names.index(name) if name in names else 0

    async def _will_do(self, reply: ModelReply) -> bool:
        """Whether an answer is taken as it is; calls of tools are, and errors are not.

        Raises:
            UsageError: The judge says nothing.
        """
        if _calls_tools(reply):
            return True
        final = reply.final
        if final is None or final.error_code is not None:
            return False
        judge = self._choice.judge
        score = await said_by(self._call, "the judge", "lambda reply: ...", judge, reply)
        if not (isinstance(score, int | float) and 0 <= score <= 1):
            raise UsageError(
                f"the judge of agent {self._call.agent} gives a bool, or a score from 0 to 1",
                node=self._call.node or self._call.agent,
                found=str(score) if isinstance(score, int | float) else describe(score),
                help="judge=lambda reply: len(reply.text) > 20",
            )
        return score >= _ENOUGH

    def _compare(self, spent: Sequence[tuple[int, ModelReply]], best: int) -> None:
        """Tell what was spent, and what asking the best one at once would have cost."""
        tier = requests.service_tier(self._call.request)
        usages = [(at, usage) for at, reply in spent if (usage := reply.usage) is not None]
        if len(usages) < len(spent) or not spent:
            return
        costs = [self._choice.price(at, usage, tier) for at, usage in usages]
        else_ = self._choice.price(best, usages[-1][1], tier)
        known = [each for each in costs if isinstance(each, Money)]
        if len(known) < len(costs) or not isinstance(else_, Money):
            return
        LOG.info(
            "agent %s: %s answered for %s in all; %s at once would have cost %s",
            *(self._call.agent, self._choice.names[self.asked], sum(known, Money())),
            *(self._choice.names[best], else_),
        )
        note_model(counterfactual=float(else_.usd))

    # --- who has answered ----------------------------------------------------------------------

    def signed(self, reply: ModelReply) -> ModelReply:
        """Say on the span, and in answers that do not say it, which model was asked."""
        if requests.is_stopped(reply):
            return reply
        name = self._choice.names[self.asked]
        for at, each in enumerate(reply.responses):
            said: dict[str, Any] = {}
            if each.model_version is None:
                said["model_version"] = name
            if _calls_tools(ModelReply([each])):
                said["custom_metadata"] = {**(each.custom_metadata or {}), _CALLED: name}
            if said:
                reply.responses[at] = each.model_copy(update=said)
        note_model(name, reply.final.model_version if reply.responses else name)
        return reply


def _collecting(fragments: list[Any]) -> Any:
    async def keep(fragment: Any) -> None:
        fragments.append(fragment)

    return keep


def _parts(contents: Sequence[Any]) -> list[Any]:
    return [part for each in contents if each is not None for part in each.parts or ()]


def _calls_tools(reply: ModelReply) -> bool:
    parts = _parts([each.content for each in reply.responses])
    return any(part.function_call is not None for part in parts)


def _has_results(request: Any) -> bool:
    """Whether a tool has run since the user, or the step before, has spoken."""
    return any(part.function_response is not None for part in _parts(request.contents[-1:]))


def attribute(root: Node, cx: Any) -> Node:
    """Attribute costs where ``TelemetryConfig(enable_cost_metrics=True)`` asks for it."""
    telemetry = cx.config.telemetry
    if telemetry is not None and telemetry.enable_cost_metrics:
        cx.add_middleware(CostAttributionMiddleware())
    return root


def select(root: Node, cx: Any) -> Node:
    """Put the first candidate in the place of each selector, and who chooses around all calls.

    Raises:
        BuildError: Two agents of one name choose among different models, or only one does.
        PriceError: A candidate's price is none.
    """
    if not any(isinstance(each, ModelSelectorNode) for each in walk(root)):
        return root
    choosing = list(_selecting(root))
    known = {id(agent) for agent, _ in choosing}
    others = [each for each in walk(root) if isinstance(each, AgentNode) and each.mock is None]
    rest = [(each, None) for each in others if id(each) not in known]
    of: dict[str, ModelSelectorNode | None] = {}
    for agent, selector in (*choosing, *rest):
        if of.setdefault(agent.name, selector) != selector:
            raise BuildError(
                f"two agents called {agent.name!r} choose among different models, or only one does",
                node=agent,
                help="rename one of them",
            )
    made = {id(each): Choice(each) for each in of.values() if each is not None}
    if made:
        of_name = {name: made[id(each)] for name, each in of.items() if each is not None}
        cx.add_middleware(ModelSelection(of_name))

    def first(node: Node) -> Node:
        if not isinstance(node, AgentNode) or node.selector is None:
            return node
        return node.replace(selector=None, model=node.selector.candidates[0].model)

    return rewrite(root, first)


def _selecting(root: Node) -> Iterator[tuple[AgentNode, ModelSelectorNode]]:
    """The agents that choose, each with its selector; delegates without a model have that above."""
    todo: list[tuple[Node, ModelSelectorNode | None]] = [(each, None) for each in walk(root)]
    while todo:
        node, above = todo.pop()
        if isinstance(node, MiddlewareNode) and above is not None:
            todo.append((node.body, above))
        if not isinstance(node, AgentNode) or node.mock is not None:
            continue
        selector = node.selector or (above if node.model is None else None)
        if selector is not None:
            yield node, selector
            todo += [(each, selector) for each in node.delegates]


PASSES: PassList[Any] = PassList()
PASSES.add(Pass("cost-metrics", attribute))
PASSES.add(Pass("cost-selectors", select))
