"""What runs, sessions and users have used of something, and what is spoken for by calls under way.

State alone cannot say: two calls at the same time would read the same number, and what a branch
writes that is discarded is lost. So an account in the process decides, and state keeps a copy that
outlives the process.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, Sequence

    from adk_fluent.protocol import ModelCall, RunCall

#: Whose use is counted together.
Scope = Literal["run", "session", "user"]

#: One for all accounts: a call may take from several at once, and it is held for no time at all.
#: Tools may run in threads, and runs in loops of their own.
_LOCK: Final = threading.RLock()  # a call that is dropped ends wherever it is collected
#: Runs of a part whose counts a session keeps: those that wait are among the last ones.
_RUNS: Final = 20


class Account:
    """How much was used, by item (input and output tokens, names of agents or tools).

    Attributes:
        spent: What was used; read and written under the lock only.
        taken: What calls under way have set aside; under the lock only.
    """

    __slots__ = ("__weakref__", "spent", "taken")

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()

    @property
    def used(self) -> dict[str, int]:
        """What was used, by item."""
        with _LOCK:
            return dict(self.spent)

    def total(self, item: str | None = None) -> int:
        """What was used of an item; of all together when none is named."""
        with _LOCK:
            return _sum(self.spent, item)

    def held(self, item: str | None = None) -> int:
        """What calls under way have set aside of an item, or of all together."""
        with _LOCK:
            return _sum(self.taken, item)

    def at_least(self, used: object) -> None:
        """Take over what a copy says was used; less than is known already changes nothing.

        Args:
            used: What state holds: numbers by item. Anything else is no copy of an account.
        """
        if not isinstance(used, dict):
            return
        with _LOCK:
            for item, amount in cast("dict[object, object]", used).items():
                if isinstance(item, str) and isinstance(amount, int):
                    self.spent[item] = max(self.spent[item], amount)


def _sum(amounts: Mapping[str, int], item: str | None) -> int:
    return sum(amounts.values()) if item is None else amounts.get(item, 0)


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of an account may be used.

    Attributes:
        account: The account.
        most: That much, and no more.
        of: Whose it is, in words.
        item: Of this item; None is all together.
    """

    account: Account
    most: int
    of: str
    item: str | None = None

    def has_room(self, amounts: Mapping[str, int]) -> bool:
        """Whether that much more may be used; asked under the lock."""
        account = self.account
        return sum(_sum(each, self.item) for each in (account.spent, account.taken, amounts)) <= (
            self.most
        )


class Hold:
    """What a call has taken, until it is known what it used."""

    __slots__ = ("_accounts", "_amounts", "_open")

    def __init__(self, accounts: Sequence[Account], amounts: Mapping[str, int]) -> None:
        self._accounts = accounts
        self._amounts = dict(amounts)
        self._open = True

    def settle(self, used: Mapping[str, int]) -> None:
        """Give back what was taken, and write down what was used; once, later ones do nothing."""
        with _LOCK:
            if not self._open:
                return
            self._open = False
            for account in self._accounts:
                account.taken.subtract(self._amounts)
                account.spent.update(used)

    def release(self) -> None:
        """Give back what was taken; nothing was used."""
        self.settle({})


def take(amounts: Mapping[str, int], limits: Sequence[Limit]) -> Hold | Limit:
    """Take amounts from the accounts of all limits, if every limit has room for them.

    Args:
        amounts: How much, by item.
        limits: What may not be exceeded.

    Returns:
        What was taken, to be settled; or the first limit that has no room, and nothing is taken.
    """
    with _LOCK:
        for limit in limits:
            if not limit.has_room(amounts):
                return limit
        accounts = list({id(each.account): each.account for each in limits}.values())
        for account in accounts:
            account.taken.update(amounts)
        return Hold(accounts, amounts)


class Ledger:
    """The accounts of sessions and users.

    An account stays as long as a run has it, and the last ones used stay besides; what was left
    behind is found again in the state of its session.

    Args:
        idle: How many accounts stay that no run has.
    """

    def __init__(self, idle: int = 10_000) -> None:
        self._idle = idle
        self._all: WeakValueDictionary[tuple[str, ...], Account] = WeakValueDictionary()
        self._last: OrderedDict[tuple[str, ...], Account] = OrderedDict()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Ledger, (self._idle,))  # whoever unpickles it finds what is in state

    def account(self, *owner: str) -> Account:
        """The account of an owner.

        Args:
            owner: ``"session", app, user, session`` or ``"user", app, user``.
        """
        with _LOCK:
            found = self._all.get(owner)
            if found is None:
                found = self._all[owner] = Account()
            self._last[owner] = found
            self._last.move_to_end(owner)
            if len(self._last) > self._idle:
                self._last.popitem(last=False)
            return found

    def forget(self, *owner: str) -> None:
        """Let an owner begin anew; what is in its state has to be removed there."""
        with _LOCK:
            self._all.pop(owner, None)
            self._last.pop(owner, None)


@dataclass(slots=True)
class Tally:
    """What one run counts, and the copy of it in state.

    What is counted for a run itself is in state only while the run waits for an answer: whoever
    resumes it, wherever, goes on counting. Around a part of a pipeline nobody tells that the run
    waits: there it is written after each call, and stays until later runs take its place.

    Attributes:
        scope: Whose account it is.
        name: What the copy is called in state.
        account: The account; one of its own, until the run begins.
        key: The state key of the copy.
        part: The part that is counted; empty when it is the whole run.
        run: The run.
    """

    scope: Scope
    name: str
    account: Account = field(default_factory=Account)
    key: str = field(default="", init=False)
    part: str = field(default="", init=False)
    run: str = field(default="", init=False)

    def begin(self, call: RunCall, ledger: Ledger) -> None:
        """Find the account of a run that begins."""
        self._begin(call, ledger, self.name)
        if self.scope == "run":
            self.key = f"{self.name}/{call.run}"
        self.account.at_least(call.ctx.state.get(self.key))

    def begin_part(self, part: str, call: RunCall, ledger: Ledger) -> None:
        """Find the account of a part of a run that begins; no other has its copy in state."""
        self.part, self.run = part, call.run
        self._begin(call, ledger, f"{self.name}/{part}")
        copied: object = call.ctx.session.state.get(self.key)
        if self.scope == "run":
            self.key = f"{self.key}/runs"
            copied = _runs(call.ctx.session.state.get(self.key)).get(call.run)
        self.account.at_least(copied)

    def _begin(self, call: RunCall, ledger: Ledger, name: str) -> None:
        self.key = name
        if self.scope == "session":
            owner = (call.app_name, call.user_id, call.session_id)
            self.account = ledger.account("session", *owner)
        elif self.scope == "user":
            self.key = f"user:{name}"
            self.account = ledger.account("user", call.app_name, call.user_id)

    def copy_to(self, state: MutableMapping[str, Any]) -> None:
        """Write down what a session or user has used by now, and a part of a run."""
        used: Mapping[str, Any] = self.account.used
        if not used or (self.scope == "run" and not self.part):
            return
        if self.scope == "run":
            others = _runs(state.get(self.key))
            others.pop(self.run, None)
            used = dict([*others.items(), (self.run, used)][-_RUNS:])
        if state.get(self.key) != used:
            state[self.key] = used

    def end(self, state: MutableMapping[str, Any], *, paused: bool) -> None:
        """Write down what has to be known when this run, or another one, goes on."""
        if self.scope != "run":
            self.copy_to(state)
        elif paused and (used := self.account.used):
            state[self.key] = used
        elif state.get(self.key) is not None:
            state[self.key] = None


def _runs(copied: object) -> dict[str, object]:
    """What state has of the runs of a part; anything else is no copy of it."""
    return dict(cast("dict[str, object]", copied)) if isinstance(copied, dict) else {}


def watched(call: ModelCall, seen: list[Any]) -> ModelCall:
    """The same call, whose fragments are noted on their way."""

    async def forward(response: Any) -> None:
        seen.append(response)
        await call.emit(response)

    return call.heard_by(forward)
