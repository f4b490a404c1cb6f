from __future__ import annotations

import itertools

import numpy as np
import pytest

from forebay import types
from forebay.testing import run_operator

from oracle import ARITHMETIC, EXACT, Case, Tolerance

rng = np.random.default_rng(4)
HALF = Tolerance(usual=1e-6, worst=1e-6, relative=2**-10)
"""One unit in the last place of a float16: DALI rounds ties away from zero, we to even."""

NORM = {"mean": [120.0, 110.0, 100.5], "std": [58.0, 57.0, 56.5]}
PAD = {"out_of_bounds_policy": "pad"}


def image(dtype, *shape):
    return (rng.random(shape) * 250).astype(dtype)


def case(*images, layout="", tolerance=ARITHMETIC, per_sample=None, **arguments):
    return Case(
        "crop_mirror_normalize",
        [list(images)],
        arguments,
        per_sample=per_sample or {},
        layout=layout,
        tolerance=tolerance,
    )


RAGGED = [image(np.uint8, 9, 8, 3), image(np.uint8, 6, 11, 3)]
CASES = [
    *(
        case(*RAGGED, crop=[5, 4], mirror=m, output_layout=o, pad_output=p, **NORM)
        for m, o, p in itertools.product((0, 1), ("CHW", "HWC", "WHC", ""), (False, True))
    ),
    *(
        case(image(d, 6, 7, 3), crop=[3, 4], mirror=1, **NORM)
        for d in (np.int16, np.uint16, np.int32, np.float32)
    ),
    case(image(np.float16, 6, 7, 3), crop=[3, 4], **NORM),
    *(
        case(image(np.uint8, 5, 6, c), layout="HWC", pad_output=p, mean=[20.0], std=[3.0], mirror=1)
        for c in (1, 2, 3, 4, 5)
        for p in (False, True)
    ),
    *(
        case(
            *RAGGED,
            crop=[8, 12],
            mirror=m,
            output_layout=o,
            pad_output=p,
            fill_values=f,
            dtype=d,
            tolerance=HALF if d == types.FLOAT16 else ARITHMETIC,
            **PAD,
            **NORM,
        )
        for m, o, (p, f), d in itertools.product(
            (0, 1),
            ("CHW", "HWC"),
            ((False, [7.5]), (True, [7.5]), (False, [1.5, 2.7, 3.0]), (True, [1.5, 2.7, 3.0, 4.0])),
            (types.FLOAT, types.FLOAT16),
        )
    ),
    case(*RAGGED, crop=[20, 4], crop_pos_y=1.0, mirror=1, fill_values=9.0, **PAD),
    case(*RAGGED, crop=[20, 4], mirror=1, out_of_bounds_policy="trim_to_shape", pad_output=True),
    case(*RAGGED, crop=[2, 4], fill_values=9.0, pad_output=True),
    case(*RAGGED, dtype=types.UINT8, mean=[100.0], std=[0.5], tolerance=EXACT),
    case(*RAGGED, dtype=types.INT8, mean=[100.5], mirror=1, tolerance=EXACT),
    case(*RAGGED, crop=[12, 2], dtype=types.UINT8, fill_values=300.0, tolerance=EXACT, **PAD),
    case(*RAGGED, crop=[12, 2], dtype=types.UINT8, fill_values=-1.7, tolerance=EXACT, **PAD),
    case(*RAGGED, dtype=types.FLOAT16, tolerance=HALF, **NORM),
    case(*RAGGED, dtype=types.FLOAT16, output_layout="HWC", tolerance=HALF, **NORM),
    case(*RAGGED, scale=2.5, shift=-1.25, **NORM),
    case(*RAGGED, mean=NORM["mean"], std=[2.0]),
    case(*RAGGED, mean=[3.0], std=NORM["std"], output_layout="HWC"),
    case(np.arange(1, 13, dtype=np.uint8).reshape(2, 2, 3), std=[1.0, 0.0, 2.0]),
    case(image(np.uint8, 3, 5, 6), layout="CHW", crop=[2, 3], mirror=1, **NORM),
    case(image(np.uint8, 3, 5, 6), layout="CHW", crop=[2, 3], output_layout="HWC", **NORM),
    *(
        case(image(np.uint8, 2, 5, 6, 3), layout=i, output_layout=o, mirror=m, crop=c, **NORM)
        for (i, o), m, c in itertools.product(
            (("FHWC", "FCHW"), ("FHWC", "FHWC"), ("DHWC", "CDHW"), ("FHWC", "CFHW")),
            (0, 1),
            ([3, 4], [1, 3, 4]),
        )
    ),
    case(image(np.uint8, 2, 5, 6, 3), output_layout="CDHW", crop=[3, 4]),
    case(image(np.uint8, 2, 5, 6, 3), layout="FHWC", output_layout="FCHW", crop=[7, 4], **PAD),
    case(image(np.uint8, 2, 2, 4, 4, 3), layout="FDHWC", output_layout="FCDHW", mirror=1),
    case(np.zeros((0, 4, 3), np.uint8)),
    case(
        *RAGGED,
        crop=[5, 4],
        per_sample={"mirror": [1, 0], "crop_pos_x": [0.0, 1.0], "crop_pos_y": [0.7, 0.2]},
    ),
    case(
        *RAGGED,
        per_sample={
            "mean": [np.float32([1, 2, 3]), np.float32([4, 5, 6])],
            "std": [np.float32([2]), np.float32([3])],
        },
    ),
    case(*RAGGED, per_sample={"crop": [np.float32([3, 5]), np.float32([4, 2])]}),
]


@pytest.mark.dali
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_dali(case):
    case.check_dali()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernel_agrees_with_the_definition(case):
    case.check_reference()


def run(data, **arguments):
    return run_operator("crop_mirror_normalize", [data], **arguments)[0]


def test_the_formula_is_the_documented_one():
    x = image(np.uint8, 3, 4, 3)
    expected = (x.astype(float) - [1, 2, 3]) / [2, 4, 5] * 3 + 0.5
    got = run(x, mean=[1, 2, 3], std=[2, 4, 5], scale=3, shift=0.5, output_layout="HWC")
    np.testing.assert_allclose(got.array, expected, rtol=1e-5)


def test_the_old_name_of_dtype_still_works():
    assert run(image(np.uint8, 3, 4, 3), output_dtype=types.FLOAT16).dtype == types.FLOAT16


def test_the_input_stays_as_it_is():
    x = image(np.float32, 3, 4, 3)
    before = x.copy()
    for reference in (False, True):
        run(x, mean=[5.0], output_layout="HWC", reference=reference)
        run(x.transpose(2, 0, 1), layout="CHW", mean=[5.0], reference=reference)
    np.testing.assert_array_equal(x, before)


def test_read_only_and_reversed_arrays_are_taken():
    x = image(np.uint8, 3, 4, 3)
    frozen = x.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(run(frozen, output_layout="HWC").array, x)
    np.testing.assert_array_equal(run(x[:, ::-1], output_layout="HWC").array, x[:, ::-1])


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"crop": [9, 2]}, "reaches outside"),
        ({"output_layout": "HW"}, "permutation"),
        ({"output_layout": "HWX"}, "permutation"),
        ({"mean": [1.0, 2.0]}, "'mean' takes one value or one a channel"),
        ({"std": []}, "'std' takes one value or one a channel"),
        ({"crop": [9, 2], "fill_values": [1.0, 2.0], **PAD}, "2 fill values"),
        ({"crop": [9, 2], "fill_values": [1.0] * 3, "pad_output": True, **PAD}, "3 fill values"),
        ({"crop": [3]}, "'crop' takes"),
        ({"crop": [2, 2], "crop_h": 2}, "either 'crop' or"),
        ({"crop_h": 2}, "go together"),
        ({"crop_pos_x": 1.2}, "must lie in"),
        ({"out_of_bounds_policy": "wrap"}, "must be one of"),
        ({"rounding": "up"}, "must be one of"),
    ],
)
def test_what_cannot_be_done_is_refused(arguments, text, reference):
    with pytest.raises(ValueError, match=text):
        run(np.zeros((5, 6, 3), np.uint8), reference=reference, **arguments)


def test_data_that_is_no_image_is_refused():
    with pytest.raises(ValueError, match="an image of layout"):
        run(np.zeros((5, 6), np.uint8), layout="HW")
    with pytest.raises(ValueError, match="permutation"):
        run(np.zeros((2, 5, 6, 3), np.uint8), layout="FHWC")
