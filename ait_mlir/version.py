"""The version of the package, and the mark of its files."""

from __future__ import annotations

import time

__version__ = "0.1.0"
ARTIFACT_MAGIC = b"\x89AIT\r\n\x1a\n"
"""The first bytes of an artifact."""
LOADED = time.time()
"""When this process began to load the package, in seconds since the epoch."""
