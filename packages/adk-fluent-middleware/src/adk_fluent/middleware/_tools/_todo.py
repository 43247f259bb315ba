"""A list of what is to do, kept by the agent that does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from adk_fluent.middleware._builtin import BuiltIn, builtin
from adk_fluent.middleware._tools._machinery import TODO

_INSTRUCTION: Final = (
    f"You keep a list of what is to do with the tool {TODO}. Use it when a task takes three or "
    "more steps, or when the user asks for several things; for anything smaller just do it. Write "
    "the list before you begin, with the step that you begin with as in_progress. Each call "
    "replaces the whole list: mark a step as completed as soon as it is done, never before, and "
    "set the next one to in_progress; add steps that turn up, and leave out those that are not "
    "needed any more. Call it once at a time."
)


class Todo(BaseModel):
    """One step."""

    content: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    status: Literal["pending", "in_progress", "completed"]


class Todos(BaseModel):
    """The arguments of the tool."""

    todos: list[Todo]


_MARKS: Final = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


@builtin
class TodoListMiddleware(BuiltIn):
    """Gives agents a tool to plan with: a list of steps, which is kept in state.

    Agents are told when to use it, and are shown what is left to do with every request.

    Attributes:
        agents: Names of the agents that have it; all, or none.
        key: The state key of the list: dicts with ``content`` and ``status``.
        max_items: Steps that a list may have.
        instruction: What agents are told about it, in the place of our own words.
    """

    adds_tools: ClassVar[Sequence[str] | None] = (TODO,)  # pyright: ignore[reportIncompatibleVariableOverride]
    agents: bool | Sequence[str] = True
    key: Annotated[str, Field(min_length=1)] = "todos"
    max_items: Annotated[int, Field(ge=1)] = 50
    instruction: Annotated[str, Field(min_length=1)] | None = None

    async def before_model(self, ctx: Any, request: Any) -> Any:
        """Add the tool, what is said about it, and what is left to do."""
        from adk_fluent.middleware._tools._todo_adk import TodoTool, can_call, show  # noqa: PLC0415

        if not self._has(ctx.agent_name) or not can_call(request):
            return
        request.append_tools([TodoTool(self.write)])
        request.append_instructions([self.instruction or _INSTRUCTION])
        shown = self.shown(ctx.state.get(self.key))
        if shown:
            show(request, shown)

    def write(self, state: Any, args: dict[str, Any]) -> dict[str, Any]:
        """Do what a model wants of the list: keep it, or say what is wrong with it."""
        try:
            todos = Todos.model_validate(args).todos
        except ValidationError as error:
            return {"error": f"The list stays as it was: {_wrong(error)}."}
        if len(todos) > self.max_items:
            said = f"{len(todos)} steps are too many, at most {self.max_items} may be on it"
            return {"error": f"The list stays as it was: {said}."}
        state[self.key] = [each.model_dump() for each in todos]
        done = sum(each.status == "completed" for each in todos)
        return {"status": f"The list is kept: {done} of {len(todos)} steps are completed."}

    def shown(self, kept: Any) -> str:
        """What an agent is shown of the list in state; "" if nothing is left to do."""
        try:
            todos = Todos.model_validate({"todos": kept or []}).todos
        except ValidationError:  # somebody else's
            return ""
        if all(each.status == "completed" for each in todos):
            return ""
        lines = [f"{_MARKS[each.status]} {each.content}" for each in todos]
        return "\n".join(["<todos>", *lines, "</todos>"])

    def _has(self, agent: str) -> bool:
        return self.agents if isinstance(self.agents, bool) else agent in self.agents


def _wrong(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(each) for each in first["loc"])
    return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"


#: `TodoListMiddleware` by its short name.
todo_list = TodoListMiddleware
