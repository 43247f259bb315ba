"""The toy on ADK: the agent that an echo becomes, and the model that `LoudModel` stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.agents import BaseAgent
from google.adk.events import Event
from google.adk.models import BaseLlm
from google.genai.types import Content, Part

from adk_fluent.backends import RuleTable, ValueTable
from adk_fluent.backends.adk import MODEL, CompileContext, resolve_model
from adk_fluent.toy._nodes import EchoNode, LoudModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

RULES: RuleTable[BaseAgent, CompileContext] = RuleTable("agents")
VALUES: ValueTable[CompileContext] = ValueTable()


class Echo(BaseAgent):
    """Answers with its text."""

    text: str

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        content = Content(role="model", parts=[Part(text=self.text)])
        yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content)


class Loud(BaseLlm):
    """Answers as another model does, in capitals."""

    inner: BaseLlm

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Ask the other model, and raise its voice."""
        async for response in self.inner.generate_content_async(llm_request, stream):
            for part in (response.content and response.content.parts) or ():
                part.text = part.text and part.text.upper()
            yield response


@RULES.rule(EchoNode)
def _echo(node: EchoNode, children: tuple[BaseAgent, ...], cx: CompileContext) -> BaseAgent:
    return Echo(name=cx.name_of(node), text=node.text)


@VALUES.rule(MODEL, LoudModel)
def _loud(model: LoudModel, cx: CompileContext) -> BaseLlm:
    inner = resolve_model(model.model, cx)
    return Loud(model=inner.model, inner=inner)
