"""What every ledger can do, and one in memory."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from threading import RLock
from typing import Final, Protocol, runtime_checkable

from adk_fluent.protocol import Money

#: Ledgers count in picodollars, so that sums are exact: a millionth of the smallest price known.
_PICO: Final = Decimal(10) ** 12
#: Accounts of runs that a ledger in memory keeps; those of sessions and users are all kept.
_RUNS: Final = 10_000
#: How the account of a run begins, which is over some day.
_OF_A_RUN: Final = '["invocation"'


def units(money: Money) -> int:
    """Return an amount in picodollars, rounded up."""
    return int((money.usd * _PICO).to_integral_value(ROUND_CEILING))


def money(amount: int) -> Money:
    """Return so many picodollars as money."""
    return Money(Decimal(amount) / _PICO)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money that is set aside for one call.

    Attributes:
        account: Whose money it is.
        amount: How much, at most.
        id: Its identity in the ledger.
    """

    account: str
    amount: Money
    id: str


@dataclass(frozen=True, slots=True)
class Balance:
    """What is gone of an account.

    Attributes:
        spent: What calls cost.
        held: What calls under way have reserved.
    """

    spent: Money = field(default_factory=Money)
    held: Money = field(default_factory=Money)


@runtime_checkable
class Ledger(Protocol):
    """Keeps accounts: reserving is atomic, so that no two calls get the same money."""

    async def reserve(self, account: str, amount: Money, limit: Money | None) -> Reservation | None:
        """Set money aside, unless the account would go over its limit.

        Args:
            account: Whose money it is.
            amount: What the call costs at most.
            limit: What may be spent in all; None sets it aside in any case.

        Returns:
            What was set aside, to be settled; None when there is not enough left.

        Raises:
            LedgerError: The ledger cannot be used.
        """
        ...

    def settle(self, reservation: Reservation, cost: Money) -> None:
        """Give a reservation back, and note what the call cost; once, later ones do nothing."""
        ...

    def balance(self, account: str) -> Balance:
        """Return what is gone of an account.

        Raises:
            LedgerError: The ledger cannot be used.
        """
        ...


class _Account:
    __slots__ = ("held", "spent")

    def __init__(self) -> None:
        self.spent = 0
        self.held: dict[str, int] = {}

    @property
    def gone(self) -> int:
        return self.spent + sum(self.held.values())


class MemoryLedger:
    """A ledger of this process, for threads, too."""

    def __init__(self) -> None:
        """Make an empty ledger."""
        self._lock = RLock()  # a call that is dropped ends wherever it is collected
        self._accounts: dict[str, _Account] = {}
        self._runs: OrderedDict[str, _Account] = OrderedDict()

    async def reserve(self, account: str, amount: Money, limit: Money | None) -> Reservation | None:
        """Set money aside; see `Ledger.reserve`."""
        wanted = units(amount)
        with self._lock:
            found = self._account(account)
            if limit is not None and found.gone + wanted > units(limit):
                return None
            made = Reservation(account, amount, os.urandom(16).hex())
            found.held[made.id] = wanted
            return made

    def settle(self, reservation: Reservation, cost: Money) -> None:
        """Give a reservation back; see `Ledger.settle`."""
        with self._lock:
            found = self._account(reservation.account)
            if found.held.pop(reservation.id, None) is not None:
                found.spent += units(cost)

    def balance(self, account: str) -> Balance:
        """Return what is gone of an account."""
        with self._lock:
            found = self._runs.get(account) or self._accounts.get(account) or _Account()
            return Balance(money(found.spent), money(found.gone - found.spent))

    def _account(self, name: str) -> _Account:
        if not name.startswith(_OF_A_RUN):
            return self._accounts.setdefault(name, _Account())
        found = self._runs.setdefault(name, _Account())
        self._runs.move_to_end(name)
        if len(self._runs) > _RUNS:
            oldest = next((key for key, each in self._runs.items() if not each.held), name)
            if oldest != name:  # as when all others are under way
                del self._runs[oldest]
        return found

    def __reduce__(self) -> tuple[type[MemoryLedger], tuple[()]]:
        return (MemoryLedger, ())  # another process has another memory

    def __repr__(self) -> str:
        return f"MemoryLedger({len(self._accounts) + len(self._runs)} accounts)"
