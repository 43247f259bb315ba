"""The logger of all wheels."""

from __future__ import annotations

import logging
from typing import Final

#: The logger ``adk_fluent``, for every layer. It shows nothing until the program sets up logging.
LOG: Final = logging.getLogger("adk_fluent")
LOG.addHandler(logging.NullHandler())
