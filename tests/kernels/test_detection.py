"""What runs refuse: a region of an image outside of the batch, on the CPU with an error that names it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.harness import Library, random_inputs
from tests.specs.detection import ROI_ALIGN

ENV = {"n": 3, "h": 5}


@pytest.mark.parametrize("image", [-1.0, 13.0, np.nan])
def test_an_image_outside_of_the_batch(tmp_path: Path, image: float) -> None:
    case = ROI_ALIGN.case(ROI_ALIGN.find("bins"), "f32")
    library = Library([case], tmp_path)
    x, rois = random_inputs(case, ENV)
    rois[1, 0] = image
    with pytest.raises(Exception, match=r"roi_align: region 1 is of image .*, which is outside of the batch of 13"):
        library.run(case, ENV, [x, rois])
