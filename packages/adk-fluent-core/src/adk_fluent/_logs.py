"""The logger of all wheels. Who sets up no logging is shown nothing."""

from __future__ import annotations

import logging
from typing import Final

LOG: Final = logging.getLogger("adk_fluent")
LOG.addHandler(logging.NullHandler())
