"""Fluent, typed agents for Google's Agent Development Kit."""

from __future__ import annotations

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)  # the other wheels add their subpackages here

from adk_fluent import _layers

_layers.install()

__all__: list[str] = []
