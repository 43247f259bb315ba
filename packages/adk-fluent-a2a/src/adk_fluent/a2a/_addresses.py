"""Addresses: where a request may go without others reading it."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

_PORTS: Final = {"http": 80, "https": 443}


def origin(url: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port of an address; None if it is not one of HTTP."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    host = (parts.hostname or "").lower()
    if not host or not host.isprintable() or " " in host:
        return None
    return (parts.scheme, host, port) if parts.scheme in _PORTS else None


def address_fault(url: str) -> str | None:
    """Why nothing may be sent to an address; None if something may."""
    where = origin(url)
    if where is None:
        return "is not a URL of https or http"
    if "@" in urlsplit(url).netloc:
        return "has credentials in it"
    if where[0] == "https" or is_here(where[1]):
        return None
    return "can be read by others: only https is safe, or http on this machine"


def is_here(host: str) -> bool:
    """Whether a host is this machine, by its name alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
