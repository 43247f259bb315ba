"""Taking a run that goes on, so that of all who would go on with it one does.

The event that takes it has the same id whoever writes it, and a session service that keeps two
events of one id apart from none stores the first alone: ADK's services for SQLite and for all
databases do. In memory all are in one process, where one owner holds it. With a service that does
neither, everybody looks for other claims after the own, and whoever sees one gives up.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig

from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends._owner import has_left, is_at_work, running
from adk_fluent.backends.adk._session._sessions import catch_up, is_stale
from adk_fluent.backends.adk._session._stamps import journal_key, stamp_of
from adk_fluent.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from adk_fluent.backends._owner import Holder
    from adk_fluent.ir import Node
    from adk_fluent.protocol import JournalEntry

_RECENT: Final = 50  # events in which a claim of somebody else's is looked for
_HELD: Final = "_adk_fluent_claim"
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_TRIES: Final = 20  # each after others have written to the session


class Claim:
    """What one call does to take a run.

    Args:
        ctx: The root's context.
        node: The pipeline.
        name: The name of its journal.
        entry: Where the run stands, as it was loaded.
    """

    def __init__(self, ctx: InvocationContext, node: Node, name: str, entry: JournalEntry) -> None:
        self._ctx = ctx
        self._kept: dict[str, Any] = vars(ctx)  # every copy of the context has it, too
        self._node = node
        self._key = journal_key(name)
        self._entry = entry
        self._what = [self._key, entry.run, entry.revision]

    def holder(self) -> Holder | None:
        """Who of this very call has taken the run already."""
        what, holder = self._kept.get(_HELD, (None, None))
        return holder if what == self._what and not holder.has_left else None

    async def take(self, owner: Holder) -> None:
        """Take the run, unless this call has it, and let the session be up to date.

        Args:
            owner: Who takes it; the call keeps him.

        Raises:
            SessionError: Somebody else has taken it.
        """
        if self.holder() is owner:
            return
        holder = owner.take(json.dumps(self._what))
        if holder != owner.name:
            raise lost(self._node, holder)
        attempt = 0
        for _ in range(_TRIES):
            self._check(self._ctx.session, owner)  # whoever is too late must write nothing
            attempt = max(attempt, self._attempts())
            try:
                await self._ctx.session_service.append_event(
                    session=self._ctx.session, event=self._event(attempt, owner)
                )
                break
            except Exception as error:
                stored = await self._stored()
                self._check(stored, owner)
                if any(event.id == self._id(attempt) for event in stored.events):
                    attempt += 1
                elif not is_stale(error):
                    raise
                catch_up(self._ctx.session, stored)
        else:
            raise lost(self._node, "somebody who writes to the session all the time")
        self._check(await self._stored(GetSessionConfig(num_recent_events=_RECENT)), owner)
        self._kept[_HELD] = (self._what, owner)

    def _attempts(self) -> int:
        """How often the run was taken where it stands, by owners who got nowhere."""
        return sum(self._claimed(event) is not None for event in self._ctx.session.events)

    def _claimed(self, event: Event) -> str | None:
        """Who took the run by an event, where it stands."""
        stamp = stamp_of(event) if event.custom_metadata else None
        claim: Any = stamp.get("claim") if stamp is not None else None
        return claim[-1] if claim and claim[:-1] == self._what else None

    def _id(self, attempt: int) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([*self._what, attempt])))

    def _event(self, attempt: int, owner: Holder) -> Event:
        event = Event(
            id=self._id(attempt),
            author=self._node.name,
            invocation_id=self._ctx.invocation_id,
            branch=self._ctx.branch,
        )
        claim = [*self._what, owner.name]
        stamp = {"path": "", "node": self._node.name, "why": "claim", "claim": claim}
        event.custom_metadata = {METADATA_KEY: stamp}
        return event

    async def _stored(self, config: GetSessionConfig | None = None) -> Session:
        mine = self._ctx.session
        session = await self._ctx.session_service.get_session(
            app_name=mine.app_name, user_id=mine.user_id, session_id=mine.id, config=config
        )
        if session is None:
            raise lost(self._node, "somebody who removed the session")
        return session

    def _check(self, stored: Session, mine: Holder) -> None:
        """See that the run stands where it stood, and that nobody else has taken it."""
        text = stored.state.get(self._key)
        if text is None or json.loads(text)["revision"] != self._entry.revision:
            owner = json.loads(text)["owner"] if text is not None else ""
            raise lost(self._node, owner or "somebody who is done with it")
        now = time.time()
        for owner, since in self._claims(stored):
            if owner != mine.name and is_at_work(owner, now - since):
                raise lost(self._node, owner)

    def _claims(self, stored: Session) -> Iterator[tuple[str, float]]:
        """Who has taken the run where it stands, and when."""
        for event in reversed(stored.events):
            if event.actions.rewind_before_invocation_id:
                return  # what was claimed before was taken back
            owner = self._claimed(event)
            if owner is not None:
                yield owner, event.timestamp


@asynccontextmanager
async def held(claim: Claim | None) -> AsyncGenerator[Holder]:
    """While a run goes on here; what it goes on with is taken first.

    Raises:
        SessionError: Somebody else has taken it.
    """
    with running(None if claim is None else claim.holder()) as holder:
        if claim is not None:
            await claim.take(holder)
        yield holder


@asynccontextmanager
async def given_up(
    service: BaseSessionService, name: str, ids: Mapping[str, Any]
) -> AsyncGenerator[None]:
    """Let others go on at once with a run that is cut off here, by an error or from outside.

    Args:
        service: Where its session is.
        name: The name of its journal.
        ids: `app_name`, `user_id` and `session_id` of the session.
    """
    try:
        yield
    except BaseException:
        with suppress(Exception):  # what happened before is told; this run counts as dead anyway
            await asyncio.shield(_give_up(service, name, ids))
        raise


async def _give_up(service: BaseSessionService, name: str, ids: Mapping[str, Any]) -> None:
    session = await service.get_session(**ids)
    if session is not None:
        key = journal_key(name)
        if json.loads(session.state.get(key) or "{}").get("status") == "running":
            await release(service, name, session, has_left)


async def release(
    service: BaseSessionService, name: str, session: Session, is_free: Callable[[str], bool]
) -> None:
    """Let others go on at once with a run, whatever has been claimed of it.

    Args:
        service: Where its session is.
        name: The name of its journal.
        session: Its session.
        is_free: Whether the owner that is written down may be passed over.
    """
    key = journal_key(name)
    data: dict[str, Any] = json.loads(session.state.get(key) or "{}")
    if "revision" not in data or not is_free(data["owner"]):
        return
    data.update(owner="", revision=data["revision"] + 1)
    event = Event(
        author=name,
        invocation_id=data["invocation_id"],
        actions=EventActions(state_delta={key: dumped(data)}),
    )
    event.custom_metadata = {METADATA_KEY: {"path": "", "node": name, "why": "journal"}}
    await service.append_event(session=session, event=event)


def dumped(journal: Mapping[str, Any]) -> str:
    """A journal as the text that is kept."""
    return _ENCODER.encode(journal)


def lost(node: Node, owner: str) -> SessionError:
    """That a run is somebody else's."""
    error = SessionError(
        f"somebody else goes on with this run of {node.name}",
        node=node,
        found=f"it was taken by {owner}",
        help="leave it to them: what was committed here is kept",
    )
    error.taken_by = owner
    return error
