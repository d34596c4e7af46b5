"""Every operator name of AITemplate's documentation, with a call of each."""

from __future__ import annotations

from tests.frontend.documented import data, detection, images, products, sequences
from tests.frontend.documented.row import Row

ROWS: dict[str, Row] = {}
for _row in (*data.ROWS, *detection.ROWS, *images.ROWS, *products.ROWS, *sequences.ROWS):
    assert _row.name not in ROWS, f"two rows for {_row.name}"
    ROWS[_row.name] = _row
