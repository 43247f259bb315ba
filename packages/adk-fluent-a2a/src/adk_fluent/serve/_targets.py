"""Where push notifications may go: addresses that are looked up once, checked, and then used."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from adk_fluent.a2a._addresses import origin

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

    from adk_fluent.serve._limits import PushPolicy

_LOOKUP_SECONDS: Final = 5.0
#: Not the loop's own threads: a name server that does not answer holds these alone.
_LOOKUPS: Final = ThreadPoolExecutor(8, "adk_fluent_push")
#: Never sent to: the metadata services of clouds at addresses that look like any other.
_METADATA: Final = frozenset(
    map(ipaddress.ip_address, ("168.63.129.16", "100.100.100.200", "fd00:ec2::254"))
)
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


class TargetError(Exception):
    """An address is not one that is sent to. The client is not told why: it would map a network."""


class UnknownHostError(TargetError):
    """A host cannot be looked up now."""


class Target(NamedTuple):
    """Where one notification goes.

    Attributes:
        url: The URL with the address in the place of the host.
        host: The header ``Host``.
        name: The name that a certificate has to have.
    """

    url: str
    host: str
    name: str


def check_url(url: str, policy: PushPolicy) -> tuple[str, int]:
    """The host and port of a URL that may be sent to as far as its text tells.

    Raises:
        TargetError: It may not.
    """
    where = origin(url)
    if where is None or where[2] is None:
        raise TargetError("it is not a URL of https or http")
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.fragment or not url.isascii() or not url.isprintable():
        raise TargetError("it has credentials, a fragment or odd characters")
    if where[0] != "https" and not policy.allow_private:
        raise TargetError("only https is safe")
    return where[1], where[2]


async def look_up(host: str, port: int) -> list[str]:
    """The addresses of a host."""
    look = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_LOOKUPS, look)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


async def target_of(url: str, policy: PushPolicy) -> Target:
    """Look an address up and check it: what is returned needs no other look.

    Raises:
        TargetError: It may not be sent to, or is not known.
    """
    host, port = check_url(url, policy)
    try:
        async with asyncio.timeout(_LOOKUP_SECONDS):
            found = [ipaddress.ip_address(each) for each in await look_up(host, port)]
    except (OSError, ValueError, UnicodeError) as error:  # a TimeoutError is an OSError
        raise UnknownHostError("its host cannot be looked up") from error
    if not found or not all(allowed(each, policy) for each in found):
        raise TargetError("its host is not one that is sent to")
    parts = urlsplit(url)
    shown = f"[{found[0]}]" if found[0].version == 6 else str(found[0])
    return Target(parts._replace(netloc=f"{shown}:{port}").geturl(), parts.netloc, host)


def allowed(address: IPv4Address | IPv6Address, policy: PushPolicy) -> bool:
    """Whether an address, and every one that is hidden in it, may be sent to."""
    if not all(allowed(each, policy) for each in _hidden(address)):
        return False
    if address in _METADATA or address.is_link_local or address.is_multicast:
        return False
    if address.is_unspecified:
        return False
    if policy.allow_private and (address.is_private or address.is_loopback):
        return True
    return address.is_global and not address.is_reserved


def _hidden(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses that a gateway on the way would take out of one of IPv6."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in found if each is not None]
