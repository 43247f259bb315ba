"""Whether colours are wanted."""

from __future__ import annotations

import os


def wanted() -> bool | None:
    """What the environment says of colours; None leaves it to whether a person looks.

    Source: https://no-color.org, https://force-color.org; in the order in which Python itself asks.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None
