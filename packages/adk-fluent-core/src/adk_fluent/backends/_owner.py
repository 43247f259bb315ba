"""Who runs a run: told apart from those that died, so that nobody does a run that is being done."""

from __future__ import annotations

import asyncio
import os
import platform
import time
import uuid
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Generator

#: How long the owner of a run counts as alive without a sign of life, where nobody can look.
PATIENCE: Final = 60.0
#: Seconds from taking a run to its first step: what plugins do and a session service writes.
MOMENT: Final = 5.0


class Holder:
    """Somebody of this process who does a run, or is about to.

    They do until the run is over. Who takes a run and is kept from it, as by a plugin that fails,
    is about to until the task is over that made the call or makes another, and a moment at most.

    Attributes:
        name: Names the process, too: `<host>/<process id>/<when it was started>/<id>`.
    """

    __slots__ = ("__weakref__", "_began", "_claims", "_since", "_task", "name")

    def __init__(self) -> None:
        self.name: str = f"{_this_process(os.getpid())}/{uuid.uuid4().hex[:12]}"
        self._claims: list[str] = []
        self._began = False
        self._since = time.monotonic()
        self._task: asyncio.Task[Any] | None = _current_task()
        _OWNERS[self.name] = self

    def begin(self) -> None:
        """Do the run from now on."""
        self._began, self._task = True, None

    @property
    def has_left(self) -> bool:
        """Whether it does the run no more, or somebody else took it for gone."""
        return _OWNERS.get(self.name) is not self

    @property
    def has_gone(self) -> bool:
        """Whether it never came to begin the run."""
        task = self._task  # the same task makes no second call while the first one goes on
        late = time.monotonic() - self._since > MOMENT
        return not self._began and (
            late or (task is not None and (task.done() or task is _current_task()))
        )

    def take(self, claim: str) -> str:
        """Take what one owner of this process can hold at a time; the name of who holds it."""
        before = _TAKEN.get(claim)
        if before is not None and before is not self and before.has_gone:
            before.leave()
        holder = _TAKEN.setdefault(claim, self)
        if holder is self:
            self._claims.append(claim)
        return holder.name

    def leave(self) -> None:
        """Do the run no more."""
        _OWNERS.pop(self.name, None)
        for claim in self._claims:
            _TAKEN.pop(claim, None)
        self._claims.clear()


#: The owners in this process, by name, and what they have taken.
_OWNERS: Final[WeakValueDictionary[str, Holder]] = WeakValueDictionary()
_TAKEN: Final[WeakValueDictionary[str, Holder]] = WeakValueDictionary()


@contextmanager
def running(owner: Holder | None = None) -> Generator[Holder]:
    """While a run goes on in this process; gives its owner, a new one unless there is one."""
    owner = owner or Holder()
    owner.begin()
    try:
        yield owner
    finally:
        owner.leave()


def is_at_work(owner: str, since: float) -> bool:
    """Whether somebody still does a run.

    Args:
        owner: Who did it last; "" where nobody does it any more.
        since: Seconds since the last sign of life.
    """
    if not owner:
        return False
    process, _, _ = owner.rpartition("/")
    if process == _this_process(os.getpid()):
        holder = _OWNERS.get(owner)
        return holder is not None and not holder.has_gone
    host, pid, started = process.split("/") if process.count("/") == 2 else ("", "", "")
    if host == _HOST and started and _started(int(pid)) != started:
        return False  # its process is over, and another one may have its number
    return since < PATIENCE


def has_left(owner: str) -> bool:
    """Whether somebody of this process does a run no more."""
    return owner.rpartition("/")[0] == _this_process(os.getpid()) and owner not in _OWNERS


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None


def this_process() -> str:
    """Return the name of this process: its host, its number, and when it was started.

    Owners of runs have it before the last ``/``: see `SessionError.taken_by`.
    """
    return _this_process(os.getpid())


@cache
def _this_process(pid: int) -> str:
    """The name of this process; by its number, for it may be forked."""
    return f"{_HOST}/{pid}/{_started(pid)}"


def _started(pid: int) -> str:
    """When a process was started, in ticks of its machine; "" where there is no such process.

    Also "" where the operating system does not tell it in a file: Linux does.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


_HOST: Final = platform.node().replace("/", "-")
