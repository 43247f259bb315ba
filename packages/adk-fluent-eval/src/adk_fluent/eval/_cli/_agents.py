"""Where `adk web` looks for results: in the folder of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

_MARKS: Final = ("agent.py", "__init__.py", "root_agent.yaml")


def agent_folder(given: str, target: str) -> tuple[Path, str]:
    """The folder of agents, and the agent in it.

    Args:
        given: The folder of agents, or that of the agent itself.
        target: What is evaluated; it tells which agent where there are several.

    Raises:
        UsageError: There is none, or it is not clear which.
    """
    folder = Path(given).resolve()
    if not folder.is_dir():
        raise click.UsageError(f"--results {given}: there is no such folder.")
    if _is_agent(folder):
        return folder.parent, folder.name
    agents = sorted(each.name for each in folder.iterdir() if each.is_dir() and _is_agent(each))
    source = target.rpartition(":")[0] or target
    is_file = source.endswith(".py") or "/" in source or "\\" in source
    own = Path(source).resolve() if is_file else Path(*source.split("."))
    named = [each for each in agents if each in own.parts]
    found = named if len(named) == 1 else agents
    if len(found) == 1:
        return folder, found[0]
    if not found:
        raise click.UsageError(f"--results {given}: there is no agent in it, no agent.py.")
    raise click.UsageError(
        f"--results {given}: there are several agents in it, {', '.join(agents)}; "
        f"name the folder of one, such as {Path(given) / agents[0]}."
    )


def _is_agent(folder: Path) -> bool:
    return not folder.name.startswith(".") and any((folder / each).is_file() for each in _MARKS)
