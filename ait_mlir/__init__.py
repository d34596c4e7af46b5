"""A neural-network inference compiler whose every step can be read, tested and replayed as text."""

from __future__ import annotations

__version__ = "0.1.0"
