"""Questions that a middleware asks in the place of a model's answer, and what is answered.

The run pauses as at a gate, and the agent asks its model anew when it goes on. Content of no role
is shown to people, and left out of prompts by every version of ADK.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.adk.models.llm_response import LlmResponse
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from adk_fluent.backends.adk._hooks._chain import invocation_of
from adk_fluent.backends.adk._session._events import REQUEST_INPUT
from adk_fluent.protocol import ModelReply
from adk_fluent.protocol._decision import Decision, decide

if TYPE_CHECKING:
    from google.adk.events.event import Event

    from adk_fluent.protocol import ModelCall

#: Key of an answer's metadata: a person has refused the call.
_REFUSED: Final = "adk_fluent_refused"
#: What took no tokens.
_NOTHING: Final = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=0, candidates_token_count=0, total_token_count=0
)


class AnswerInPlace(NamedTuple):
    """What a person has answered to a question that stood in a model's place.

    Attributes:
        id: Identity of the question.
        approved: Whether the answer is yes.
        payload: What was shown with the question.
    """

    id: str
    approved: bool
    payload: Any


def ask_in_place(call: ModelCall, by: str, message: str, payload: Any = None) -> ModelReply:
    """Ask a person yes or no in the place of a model's answer, and pause the run.

    A hook returns the reply as its own. When the run goes on, the agent makes the same call again,
    and `answers_in_place` has what was answered. An agent that is a tool cannot wait.

    Args:
        call: The call that is not made.
        by: Who asks.
        message: What the person is told.
        payload: What is shown with it, as JSON.
    """
    id = f"ask-{uuid.uuid4().hex[:12]}"
    # no schema, so that ADK lets every word for yes and no pass
    args = {"interruptId": id, "message": message, "payload": payload, "asked": _whose(call, by)}
    question = types.FunctionCall(id=id, name=REQUEST_INPUT, args=args)
    call.request.tools_dict[REQUEST_INPUT] = _Question()  # for ADK alone: it is not declared
    return ModelReply(
        [
            LlmResponse(
                content=types.Content(role=None, parts=[types.Part(function_call=question)]),
                usage_metadata=_NOTHING,
                interrupted=True,  # it is no answer that could be given again
            )
        ]
    )


def ask_in_place_again(call: ModelCall, reply: ModelReply) -> ModelReply:
    """Let a question that stood in the place of a recorded answer pause the run again.

    Args:
        call: The call that is answered.
        reply: What was recorded; any other reply stays as it is.
    """
    for each in reply.responses:
        for part in (each.content and each.content.parts) or ():
            if part.function_call is not None and part.function_call.name == REQUEST_INPUT:
                call.request.tools_dict[REQUEST_INPUT] = _Question()
    return reply


def answers_in_place(call: ModelCall, by: str) -> list[AnswerInPlace]:
    """Return what was answered to the questions that stood in the place of an agent's calls.

    An answer that says neither yes nor no is left out.

    Args:
        call: The call that is about to be made.
        by: Who has asked.
    """
    whose, asked, found = _whose(call, by), dict[str, Any](), list[AnswerInPlace]()
    for event in invocation_of(call.ctx).session.events:
        for each in event.get_function_calls():
            args: dict[str, Any] = each.args or {}
            if each.name == REQUEST_INPUT and args.get("asked") == whose:
                asked[each.id or ""] = args.get("payload")
        for each in event.get_function_responses():
            if each.id in asked and isinstance(said := decide(None, each.response), Decision):
                found.append(AnswerInPlace(each.id, said.approved, asked[each.id]))
    return found


def fail_in_place(code: str, message: str) -> ModelReply:
    """Return an error in the place of a model's answer, which took no tokens.

    Args:
        code: The error's code.
        message: Its message.
    """
    error = LlmResponse(error_code=code, error_message=message, usage_metadata=_NOTHING)
    return ModelReply([error])


def refuse_in_place(code: str, message: str) -> ModelReply:
    """Return an error in the place of a model's answer that ends the run as rejected.

    Args:
        code: The error's code.
        message: Its message: what was refused.
    """
    made = fail_in_place(code, message)
    report_refusal(made.responses[0])
    return made


def report_refusal(event: Event | LlmResponse) -> None:
    """Let what an agent of your own puts out end the run as rejected, as a refused gate does.

    Args:
        event: What a person has refused, and why, in text of no role or as an error.
    """
    event.custom_metadata = {**(event.custom_metadata or {}), _REFUSED: True}


def is_refusal(event: Event) -> bool:
    """Whether `report_refusal` has marked an event; the mark goes."""
    metadata = event.custom_metadata
    return bool(metadata) and metadata.pop(_REFUSED, False)


def _whose(call: ModelCall, by: str) -> dict[str, Any]:
    branch = getattr(invocation_of(call.ctx), "branch", None)
    return {"by": by, "agent": call.agent, "branch": branch or "", "run": call.run}


class _Question(BaseTool):
    """What ADK takes the question for: a call of a tool that takes its time."""

    def __init__(self) -> None:
        super().__init__(name=REQUEST_INPUT, description="", is_long_running=True)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """Do nothing: the person's answer is the result."""
