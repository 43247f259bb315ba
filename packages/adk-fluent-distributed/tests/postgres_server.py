"""A Postgres of its own on a free port of 127.0.0.1, of whatever the machine has installed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

MISSING = "Postgres is not installed: apt-get install postgresql"
_SECONDS = 60
_TRIALS = 5  # ports
_QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}


def binaries() -> Path | None:
    """The folder of Postgres's programs; None where there are none."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return debian[-1].parent if debian else None


def ends_with_us(signal_name: str) -> list[str]:
    """What to put before a command, so that its process ends when this one is killed."""
    found = shutil.which("setpriv")  # of util-linux
    return [found, "--pdeathsig", signal_name] if found else []


@contextmanager
def running(folder: Path) -> Generator[str]:
    """The address of a server that runs meanwhile, without the name of a database."""
    with started(folder) as server:
        yield server.address


@contextmanager
def started(folder: Path) -> Generator[Server]:
    """A server that runs meanwhile, and can be stopped and started again."""
    data = tempfile.mkdtemp(prefix="adk-fluent-pg-")
    server = Server(folder, data)
    try:
        if os.geteuid() == 0:  # it refuses to run as root
            server.who = {"user": "postgres", "group": "postgres"}
            shutil.chown(data, "postgres", "postgres")
        made = [
            folder / "initdb",
            "-D",
            data,
            "-A",
            "trust",
            "-U",
            "tests",
            "--no-sync",
            "-E",
            "UTF8",
        ]
        subprocess.run(made, check=True, **_QUIET, **server.who)
        for _ in range(_TRIALS):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                server.port = free.getsockname()[1]
            if server.start():
                break
        else:
            raise AssertionError(f"Postgres did not start: {folder}")
        yield server
    finally:
        server.stop()
        shutil.rmtree(data, ignore_errors=True)


class Server:
    """A server of these tests.

    Args:
        folder: The folder of Postgres's programs.
        data: That of its data.
    """

    def __init__(self, folder: Path, data: str) -> None:
        self.folder, self.data, self.port = folder, data, 0
        self.who: dict[str, Any] = {}
        self._process: subprocess.Popen[Any] | None = None

    @property
    def address(self) -> str:
        """Where it is, without the name of a database."""
        return f"postgresql://tests@127.0.0.1:{self.port}"

    def start(self) -> bool:
        """Start it, and wait until it answers; False where somebody else has its port."""
        options = [
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "max_connections=200",
            "shared_buffers=16MB",
        ]
        flags = [flag for each in options for flag in ("-c", each)]
        at = ["-D", self.data, "-k", self.data, "-p", str(self.port)]
        command = [*ends_with_us("INT"), self.folder / "postgres", *at, *flags]
        self._process = subprocess.Popen(command, **_QUIET, **self.who)
        if _is_up(self._process, self.address):
            return True
        self.stop()
        return False

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends all connections in order, SIGQUIT is a crash."""
        if self._process is not None:
            _end(self._process, how)
            self._process = None


def _is_up(server: subprocess.Popen[Any], address: str) -> bool:
    """Wait for a server; False where it ended, such as when somebody else took the port."""
    import psycopg

    limit = time.monotonic() + _SECONDS
    while server.poll() is None:
        try:
            psycopg.connect(f"{address}/postgres").close()
        except psycopg.OperationalError:
            assert time.monotonic() < limit
            time.sleep(0.02)
        else:
            return server.poll() is None
    return False


def _end(server: subprocess.Popen[Any], how: signal.Signals) -> None:
    if server.poll() is None:
        server.send_signal(how)
    try:
        server.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
