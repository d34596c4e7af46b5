"""The list of networks that must import, compile for the CPU and agree with PyTorch."""

from __future__ import annotations

from tests.networks.diffusion import PARTS
from tests.networks.families import TESTED
from tests.networks.language import LANGUAGE
from tests.networks.network import Network
from tests.networks.plain import PLAIN
from tests.networks.vision import VISION

NETWORKS: dict[str, Network] = {**TESTED, **LANGUAGE, **VISION, **PARTS, **PLAIN}

REASONS: dict[str, str] = {}
"""The networks of the list that do not work yet, and why."""
