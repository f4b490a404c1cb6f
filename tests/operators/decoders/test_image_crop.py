from __future__ import annotations

import numpy as np
import pytest

from encoded import TURNS, exif, picture, pillow
from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case, Tolerance

OP = "decoders.image_crop"
COLOURED = picture()
JPEG = pillow(COLOURED, "JPEG", subsampling="4:2:0")
PNG = pillow(COLOURED, "PNG")
TURNED = [pillow(COLOURED, "JPEG", exif=exif(o)) for o in TURNS]
WINDOW = {"crop": (23, 31), "crop_pos_x": 0.2, "crop_pos_y": 0.9}


def case(*encoded, tolerance=None, **arguments):
    return Case(OP, [list(encoded)], arguments, tolerance=tolerance or Tolerance())


CASES = [
    case(JPEG, PNG),
    *(case(JPEG, PNG, crop=c) for c in ((20, 30), (21, 31), (61, 83), (0, 40), (20.9, 7.2))),
    case(JPEG, PNG, crop=(5, 20, 30), crop_pos_z=0.3),
    case(JPEG, PNG, crop_h=17, crop_w=19),
    case(JPEG, PNG, **WINDOW),
    case(JPEG, PNG, crop=(20, 30), crop_pos_x=0.35, rounding="truncate"),
    *(case(JPEG, PNG, output_type=t, **WINDOW) for t in (types.BGR, types.GRAY, types.ANY_DATA)),
    case(JPEG, PNG, output_type=types.YCbCr, **WINDOW, tolerance=Tolerance(worst=1, most=0.999)),
    case(JPEG, PNG, dtype=types.UINT16, **WINDOW),
    case(*TURNED, **WINDOW),
    case(*TURNED, **WINDOW, adjust_orientation=False),
    Case(
        OP,
        [[JPEG, PNG, JPEG]],
        per_sample={
            "crop": [np.array(c, np.float32) for c in ((5, 6), (30, 20), (7, 40))],
            "crop_pos_x": [0.0, 0.5, 1.0],
            "crop_pos_y": [1.0, 0.25, 0.0],
        },
    ),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("orientation", TURNS)
def test_the_window_lies_in_the_turned_picture(orientation):
    encoded = pillow(COLOURED, "PNG", exif=exif(orientation)[6:])
    turned = TURNS[orientation](COLOURED)
    cut = run_operator(OP, [encoded], crop=(10, 12), crop_pos_x=0.0, crop_pos_y=1.0)[0]
    np.testing.assert_array_equal(cut.array, turned[-10:, :12])


@pytest.mark.parametrize("crop", [(62, 10), (10, 84)])
def test_a_window_larger_than_the_image_is_refused(crop):
    with pytest.raises(ValueError, match="does not lie in the image of 61 × 83 pixels"):
        run_operator(OP, [JPEG], crop=crop)


def test_two_sizes_at_once_are_refused():
    with pytest.raises(ArgumentError, match="crop"):
        run_operator(OP, [JPEG], crop=(10, 10), crop_h=5.0, crop_w=5.0)


def test_a_cut_off_file_is_refused():
    with pytest.raises(ValueError, match="Premature end"):
        run_operator(OP, [JPEG[:-100]], crop=(10, 10))
