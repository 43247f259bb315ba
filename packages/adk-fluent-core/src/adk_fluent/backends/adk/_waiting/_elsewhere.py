"""Runs of other pipelines in a session: of one that was renamed, or of another root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.backends.adk._session._stamps import is_journal_key, journal_key
from adk_fluent.backends.adk._waiting._journal import load
from adk_fluent.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from google.adk.agents.base_agent import BaseAgent

    from adk_fluent.protocol import JournalEntry


def elsewhere(state: Mapping[str, Any], root: BaseAgent) -> dict[str, JournalEntry]:
    """Where the runs stand that no part of a root does, by name of theirs."""
    found: dict[str, JournalEntry] = {}
    for key in state:
        name = key.removeprefix(journal_key("")) if is_journal_key(key) else ""
        if not name or "@" in name or root.find_agent(name) is not None:
            continue  # "@": of a pipeline below an agent of somebody's
        try:
            entry = load(state, name)
        except SessionError:  # not for us to read
            continue
        if entry is not None:
            found[name] = entry
    return found
