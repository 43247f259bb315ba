"""The recordings of ADK's own plugin and of ``adk conformance``, to and from ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.cli.plugins import recordings_schema as schema
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import ValidationError

from adk_fluent.debug._adk import dump_model, dump_request
from adk_fluent.debug._errors import RecordingFileError
from adk_fluent.debug._file import FORMAT, VERSION, RecordingFile, check, write
from adk_fluent.debug._recorded_run import Data, RemoteInteraction, counted
from adk_fluent.extend import LOG, to_yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: ADK 1.x has room for one answer to a request.
_HAS_MANY: Final = "llm_responses" in schema.LlmRecording.model_fields


def export(runs: Iterable[Any], file: Path) -> None:
    """Write the calls of runs as ADK does; those without an answer are left out, as there.

    Args:
        runs: Each a `RecordedRun`.
        file: The file.

    Raises:
        RecordingFileError: The file cannot be written, or a call has no place in it.
    """
    made: list[schema.Recording] = []
    left_out = 0
    for index, run in enumerate(runs):
        for call in run.interactions:
            if isinstance(call, RemoteInteraction):
                continue
            if call.error or call.cancelled or "within" in run.tape[call.entry]:
                left_out += 1
                continue
            try:
                pair = _tool(call) if hasattr(call, "tool_name") else _model(call)
            except ValidationError as error:
                raise RecordingFileError(
                    f"a call of {call.agent_name} has no place in a recording of ADK's",
                    path=str(file),
                    found=str(error.errors()[0]["msg"]),
                ) from error
            made.append(
                schema.Recording(user_message_index=index, agent_name=call.agent_name, **pair)
            )
    if left_out:
        LOG.warning("%s has no room for %s", file, counted(left_out, "call without an answer"))
    whole = schema.Recordings(recordings=made)
    write(file, to_yaml_text(dump_model(whole, exclude_defaults=True)))


def _model(call: Any) -> Data:
    request: Data = {key: each for key, each in call.request.items() if key != "previous"}
    config: Data = {k: v for k, v in request.get("config", {}).items() if k != "http"}
    asked = LlmRequest.model_validate({**request, "contents": [], "config": config})
    asked.contents = [
        types.Content.model_validate(_without_ids(each)) for each in request.get("contents", ())
    ]
    responses = [LlmResponse.model_validate(each) for each in (*call.chunks, *call.responses)]
    said: Data = {"llm_responses": responses} if _HAS_MANY else {"llm_response": responses[-1]}
    return {"llm_recording": schema.LlmRecording(llm_request=asked, **said)}


def _tool(call: Any) -> Data:
    is_data = isinstance(call.result, dict)
    result = cast("Data", call.result) if is_data else {"result": call.result}
    return {
        "tool_recording": schema.ToolRecording(
            tool_call=types.FunctionCall(id=call.call_id, name=call.tool_name, args=call.args),
            tool_response=types.FunctionResponse(
                id=call.call_id, name=call.tool_name, response=result
            ),
        )
    }


def _without_ids(content: Data) -> Data:
    """A message of ours, in which calls are numbered, as ADK has it in requests."""
    parts: list[Data] = [dict(each) for each in content.get("parts", ())]
    for part in parts:
        for name in part.keys() & {"function_call", "function_response"}:
            part[name] = {key: each for key, each in part[name].items() if key != "id"}
    return {**content, "parts": parts}


def load(file: Path) -> list[Data]:
    """Read the calls of a file that ADK has written, as runs of a recording.

    Raises:
        RecordingFileError: It cannot be read, or is none.
    """
    source, data = RecordingFile.read_yaml(file)
    try:
        runs = _runs(data["recordings"] if data else [])  # what is empty ADK leaves out
        check({"format": FORMAT, "version": VERSION, "metadata": {}, "runs": runs}, source)
    except Exception as error:  # of pydantic, and what is missing or of another type
        raise source.error(
            (),
            "this is no recording of ADK's",
            found=f"{type(error).__name__}: {error!s:.160}",
            help="take a generated-recordings.yaml of `adk conformance record`",
        ) from error
    return runs


def _runs(rows: list[Data]) -> list[Data]:
    tapes: dict[int, list[Data]] = {}
    messages: dict[int, Data] = {}
    for number, row in enumerate(rows):
        index: int = row["user_message_index"]
        tape = tapes.setdefault(index, [])
        if (pair := row.get("llm_recording")) is not None:
            tape += _model_entries(number, row["agent_name"], pair)
            if index not in messages and (said := _last_said(pair["llm_request"])) is not None:
                messages[index] = said
        else:
            tape += _tool_entries(number, row["agent_name"], row["tool_recording"])
    return [
        # nobody knows in which order what happened at the same time
        {"message": messages.get(index), "status": "completed", "unordered": True, "tape": tape}
        for index, tape in sorted(tapes.items())
    ]


def _model_entries(number: int, agent: str, pair: Data) -> Iterator[Data]:
    request = LlmRequest.model_validate(pair["llm_request"])
    asked = dump_request(request)
    yield {"model_call": number, "agent": agent, "model": request.model or "", "request": asked}
    given: list[Data] = pair.get("llm_responses") or [pair["llm_response"]]
    said = [dump_model(LlmResponse.model_validate(each)) for each in given]
    yield from ({"chunk_of": number, "response": each} for each in said if each.get("partial"))
    yield {"reply_of": number, "responses": [each for each in said if not each.get("partial")]}


def _tool_entries(number: int, agent: str, pair: Data) -> Iterator[Data]:
    call, response = pair["tool_call"], pair["tool_response"]
    args: Data = call.get("args") or {}
    yield {"tool_call": number, "agent": agent, "tool": call["name"], "args": args}
    yield {"result_of": number, "result": response.get("response")}


def _last_said(request: Data) -> Data | None:
    """What the user said last, in a request."""
    said = [each for each in request.get("contents") or () if each.get("role") == "user"]
    return said[-1] if said else None
