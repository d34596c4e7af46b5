"""Serialized graphs with the right digest and a header that lies: refused, with its place."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from ait_mlir.errors import ArtifactError
from ait_mlir.graph import serialization

PLACE = {
    **{"label": "x", "name": "x", "uid": 1, "dtype": "FLOAT", "dims": [2], "strides": [1], "is_output": False},
    **{"is_by_value": False, "value": None, "row_stride": 0},
}
HEADER: dict[str, Any] = {
    **{"name": "g", "plan": "p", "target": "cpu", "inputs": 1, "results": 1, "donated": [], "numbers": [float("-inf")]},
    **{"number_dims": [-1], "dims": [], "places": [PLACE]},
}


def forged(header: Any) -> bytes:
    """The bytes of a graph with this header, and no artifact."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    digest = hashlib.sha256(text).digest()
    return serialization._FIXED.pack(serialization.MAGIC, serialization.VERSION, len(text), digest) + text


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"[" * 100_000, "nested deeper than 64 levels"),
        (b"\xff", "is no JSON"),
        ([], "expected an object"),
        ({**HEADER, "inputs": 1e400}, r"inputs is inf, expected a whole number"),
        ({**HEADER, "inputs": -1}, r"inputs is -1, expected a whole number from 0"),
        ({**HEADER, "dims": ["4"]}, r"dims\[0\] is '4', expected a whole number"),
        ({**HEADER, "name": ["g"]}, r"name is \['g'\], expected a string"),
        ({**HEADER, "numbers": [10**400]}, r"expected a number that a float can hold"),
        ({**HEADER, "number_dims": [5]}, r"number_dims is \[5\], expected a dim for each of 1 numbers"),
        ({name: value for name, value in HEADER.items() if name != "plan"}, r"has no 'plan'"),
        ({**HEADER, "places": [{**PLACE, "dtype": "TEXT"}]}, r"places\[0\].dtype is 'TEXT', expected the name of a"),
        ({**HEADER, "places": [{**PLACE, "is_output": 1}]}, r"is_output is 1, expected true or false"),
        ({**HEADER, "places": [{**PLACE, "dims": [1 << 64]}]}, r"dims\[0\] is 18446744073709551616, expected"),
    ],
)
def test_a_header_that_lies_is_refused(header: Any, message: str) -> None:
    with pytest.raises(ArtifactError, match=rf"the serialized graph is damaged: .*{message}"):
        serialization.read(forged(header), None)


def test_a_header_that_does_not_is_taken() -> None:
    with pytest.raises(ArtifactError, match="it has 0 bytes"):  # its artifact, which comes next, is missing
        serialization.read(forged(HEADER), None)
