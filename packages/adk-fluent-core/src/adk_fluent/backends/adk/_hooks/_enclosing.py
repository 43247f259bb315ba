"""The hooks of a step in their order, whoever runs it: the flow engine, or ADK itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from google.adk.agents.callback_context import CallbackContext
from google.adk.events.event_actions import EventActions

from adk_fluent.protocol import AgentCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from google.adk.agents.invocation_context import InvocationContext
    from google.genai import types

    from adk_fluent.backends._stack import Stack
    from adk_fluent.protocol import AgentReply

OF_STEPS: Final = ("before_agent", "wrap_agent", "after_agent", "on_agent_error")


class Step(Protocol):
    """One execution of a step, as its hooks have to do with it.

    Attributes:
        name: Its name.
        writes: What its hooks write.
        is_settled: Whether what it amounts to was put out before the run was interrupted.
    """

    name: str
    writes: Writes

    @property
    def is_settled(self) -> bool: ...

    def seen(self, drafts: dict[str, Any]) -> InvocationContext:
        """The context in which hooks stand around it; what they write goes to `drafts`."""
        ...

    def call(self) -> StepCall:
        """It, about to run."""
        ...

    def before(self) -> AgentReply:
        """What it said and wrote before the run was interrupted."""
        ...

    async def answer(self, content: types.Content) -> AgentReply:
        """Say what a hook has said in its place."""
        ...

    async def go_on(self) -> AgentReply:
        """Run the step itself."""
        ...

    async def settle(self, reply: AgentReply) -> None:
        """Say and write what has been put in the place of what it did, or besides."""
        ...

    async def add(self, content: types.Content) -> None:
        """Say what a hook has said after it."""
        ...


class Writes:
    """What the hooks of one step write, until it is put out.

    Args:
        put: Puts it out.
        actions: Where it is written; None makes one when it is asked for.

    Attributes:
        drafts: State as it is written.
    """

    def __init__(
        self,
        put: Callable[[EventActions], Awaitable[None]],
        actions: EventActions | None = None,
    ) -> None:
        self._put = put
        self._actions = actions
        self.drafts: dict[str, Any] = {}

    @property
    def actions(self) -> EventActions:
        """Where it is written."""
        if self._actions is None:
            self._actions = EventActions()  # not before: pydantic takes a while for each
        return self._actions

    async def put(self) -> None:
        """Put it out, if there is any."""
        actions = self._actions
        if actions is not None and (actions.state_delta or actions.artifact_delta):
            await self._put(actions)
            for each in (actions.state_delta, actions.artifact_delta, self.drafts):
                each.clear()


class StepCall(AgentCall):
    """A step about to run, whose `ctx` is made when somebody asks for it."""

    __slots__ = ("_context",)

    def leave_to(self, context: Callable[[], Any]) -> None:
        """Leave it to a function to make the context."""
        self._context = context
        del self.ctx

    def __getattr__(self, name: str) -> Any:
        """Make the context; asked only for what is not there yet."""
        if name != "ctx":
            raise AttributeError(name=name, obj=self)
        self.ctx = made = self._context()
        return made


StepCall.__name__ = StepCall.__qualname__ = AgentCall.__name__  # nobody has to know of it


async def enclosed(stack: Stack, step: Step) -> AgentReply:
    """Do what is around a step, and the step.

    Raises:
        Exception: What the step or a hook raised.
    """
    name, writes = step.name, step.writes
    made: list[CallbackContext] = []

    def context() -> CallbackContext:
        if not made:  # for who asks: making it takes as long as many a hook
            made.append(CallbackContext(step.seen(writes.drafts), event_actions=writes.actions))
        return made[0]

    async def go_on(_: AgentCall) -> AgentReply:
        await writes.put()
        return await step.go_on()

    try:
        place: int | None = None
        if step.is_settled:
            reply = step.before()
        else:
            said = None
            if stack.has("before_agent"):
                said, place = await stack.before("before_agent", context(), name)
                await writes.put()
            if said is not None:
                reply = await step.answer(said)
            elif stack.has("wrap_agent"):
                call = step.call()
                call.leave_to(context)
                reply = await stack.around("wrap_agent", go_on)(call)
                await writes.put()
            else:
                reply = await step.go_on()
            await step.settle(reply)
        if not reply.paused and stack.has("after_agent"):
            said = await stack.after("after_agent", context(), name, outside=place)
            await writes.put()
            if said is not None:
                await step.add(said)
    except Exception as error:
        if stack.has("on_agent_error"):
            await stack.tell("on_agent_error", context(), name, error)
        await writes.put()
        raise
    return reply
