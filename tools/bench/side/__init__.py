"""What runs in the environments that are measured: a worker, and the tasks of each side."""

from __future__ import annotations
