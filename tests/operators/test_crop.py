from __future__ import annotations

import itertools

import numpy as np
import pytest

from forebay import types
from forebay.testing import run_operator

from oracle import EXACT, Case, Tolerance

rng = np.random.default_rng(2)
PAD = {"out_of_bounds_policy": "pad"}
HALF = Tolerance(relative=2**-10)
DTYPES = [
    np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64,
    np.float16, np.float32, np.float64,
]  # fmt: skip


def image(dtype, *shape):
    return (rng.random(shape) * 300 - 20).astype(np.int64).astype(dtype)


def case(*images, layout="", per_sample=None, tolerance=EXACT, **arguments):
    return Case(
        "crop",
        [list(images)],
        arguments,
        per_sample=per_sample or {},
        layout=layout,
        tolerance=tolerance,
    )


def ramp(width):
    return np.arange(width, dtype=np.uint16)[None, :, None]


RAGGED = [image(np.uint8, 9, 8, 3), image(np.uint8, 6, 11, 3)]
CASES = [
    *(case(image(d, 5, 6, 3), crop=[7, 2], fill_values=-2.7, **PAD) for d in DTYPES),
    *(
        case(image(d, 5, 6, 3), crop=[7, 2], fill_values=2.7, dtype=t, tolerance=k, **PAD)
        for d, (t, k) in itertools.product(
            (np.uint8, np.int16, np.float32),
            ((types.UINT8, EXACT), (types.FLOAT, EXACT), (types.FLOAT16, HALF)),
        )
    ),
    *(
        case(*RAGGED, crop=c, crop_pos_x=x, crop_pos_y=y, rounding=r, **PAD)
        for c, (x, y), r in itertools.product(
            ([5, 4], [4.9, 5.0], [12, 14], [0, 3], [-2, 3]),
            ((0.5, 0.5), (0.0, 1.0), (0.7, 0.3)),
            ("round", "truncate"),
        )
    ),
    *(case(ramp(6), crop=[1, 1], crop_pos_x=p) for p in (0.1, 0.3, 0.5, 0.7, 0.9)),
    case(
        *[ramp(101)] * 90,
        crop=[1, 1],
        per_sample={"crop_pos_x": [(k + 0.5) / 100 for k in range(5, 95)]},
    ),
    case(*RAGGED),
    case(*RAGGED, crop_h=2, crop_w=3),
    case(*RAGGED, crop_h=2, crop_w=3, crop_d=2),
    case(*RAGGED, crop=[2, 3, 4]),
    case(*RAGGED, crop=[12, 20], out_of_bounds_policy="trim_to_shape"),
    case(*RAGGED, crop=[12, 20], fill_values=[1, 2, 300], **PAD),
    case(*RAGGED, crop=[12, 20], fill_values=[], **PAD),
    case(image(np.uint8, 3, 5, 6), layout="CHW", crop=[8, 2], fill_values=[1, 2, 3], **PAD),
    *(
        case(image(np.uint16, 4, 5, 6, 3), layout=layout, crop=c, fill_values=7.0, **PAD)
        for layout in ("FHWC", "DHWC", "FCHW", "CDHW", "CFHW", "")
        for c in ([3, 2], [2, 3, 2], [7, 7, 7])
    ),
    case(image(np.uint8, 4, 5, 6, 3), crop=[2, 3, 2], crop_pos_z=1.0),
    case(np.zeros((0, 0, 3), np.uint8), crop=[3, 2], fill_values=7.0, **PAD),
    case(np.zeros((0, 0, 3), np.uint8), crop=[3, 2], out_of_bounds_policy="trim_to_shape"),
    case(
        *RAGGED,
        per_sample={"crop": [np.float32([3, 2]), np.float32([2, 4])], "crop_pos_x": [0.0, 1.0]},
    ),
    case(*RAGGED, per_sample={"crop_w": [3.0, 0.0], "crop_h": [1.0, 2.0]}),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def run(data, **arguments):
    return run_operator("crop", [data], **arguments)[0]


def test_a_window_inside_the_image_is_a_view():
    x = image(np.uint8, 5, 6, 3)
    assert np.shares_memory(run(x, crop=[2, 2]).array, x)


def test_the_old_name_of_dtype_still_works():
    assert run(image(np.uint8, 5, 6, 3), output_dtype=types.FLOAT16).dtype == types.FLOAT16


def test_video_of_volumes_is_cut_in_space():
    x = image(np.uint8, 2, 4, 5, 6, 3)
    got = run(x, layout="FDHWC", crop=[2, 3, 4], crop_pos_x=0, crop_pos_y=0, crop_pos_z=0)
    np.testing.assert_array_equal(got.array, x[:, :2, :3, :4])


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"crop": [9, 2]}, r"from \[-2, 2, 0\] of size \[9, 2, 3\] reaches outside"),
        ({"crop": [3]}, "'crop' takes"),
        ({"crop": [1, 2, 3, 4]}, "'crop' takes"),
        ({"crop": [3, 2], "crop_h": 2}, "either 'crop' or"),
        ({"crop_h": 2}, "go together"),
        ({"crop_d": 2}, "go together"),
        ({"crop_pos_y": -0.1}, "must lie in"),
        ({"crop": [9, 2], "fill_values": [1, 2], **PAD}, "2 fill values"),
        ({"out_of_bounds_policy": "wrap"}, "must be one of"),
        ({"rounding": "up"}, "must be one of"),
    ],
)
def test_what_cannot_be_done_is_refused(arguments, text, reference):
    with pytest.raises(ValueError, match=text):
        run(np.zeros((5, 6, 3), np.uint8), reference=reference, **arguments)


@pytest.mark.parametrize(
    ("shape", "layout"), [((5, 6), ""), ((5, 6), "HW"), ((5, 6, 3), "ABC"), ((2,), "")]
)
def test_data_that_is_no_image_is_refused(shape, layout):
    with pytest.raises(ValueError, match="an image of layout"):
        run(np.zeros(shape, np.uint8), layout=layout)
