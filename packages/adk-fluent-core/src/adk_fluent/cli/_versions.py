"""What is installed beside the sources."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None.

    Args:
        distribution: Its name, such as ``google-adk``.
    """
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
