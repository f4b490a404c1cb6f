from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import Case, run_dali

OP = "random_crop_generator"


def draw(shape, count, seed=0, dtype=np.int64, **arguments):
    """(y, x, height, width) of `count` windows."""
    outputs = run_operator(OP, [np.array(shape, dtype)] * count, seed=seed, **arguments)
    return np.array([[s.tensor.numpy() for s in column] for column in outputs]).transpose(1, 0, 2)


def test_a_window_is_two_vectors_of_int32():
    (anchor,), (shape,) = run_operator(OP, [np.array([40, 50])])
    for sample in (anchor, shape):
        assert sample.shape == (2,)
        assert sample.dtype.name == "INT32"
        assert sample.layout == ""


def test_windows_lie_inside_and_obey_the_ranges():
    anchor, shape = draw((300, 400), 2000).transpose(1, 0, 2)
    assert (anchor >= 0).all()
    assert (anchor + shape <= (300, 400)).all()
    area, ratio = shape.prod(1) / 120_000, shape[:, 1] / shape[:, 0]
    assert 0.079 < area.min() < 0.1
    assert 0.95 < area.max() <= 1
    assert 0.75 <= ratio.min() < 0.77
    assert 1.31 < ratio.max() <= 1.333333


def test_areas_are_uniform_and_aspect_ratios_log_uniform():
    # All windows of these ranges fit, so nothing is redrawn.
    _, shape = draw((1000, 1000), 4000, random_area=(0.1, 0.4)).transpose(1, 0, 2)
    area = (shape.prod(1) / 1e6 - 0.1) / 0.3
    ratio = np.log(shape[:, 1] / shape[:, 0]) / np.log(4 / 3) / 2 + 0.5
    for values in (area, ratio):
        distance = np.abs(np.sort(values) - np.linspace(0, 1, len(values))).max()
        assert distance < 1.95 / np.sqrt(len(values))  # Kolmogorov-Smirnov, p = 0.001


def test_places_are_uniform():
    windows = draw((40, 50), 4000, random_area=0.25, random_aspect_ratio=(1.0, 1.1))
    for axis, extent in enumerate((40, 50)):
        free = extent - windows[:, 1, axis]
        place = (windows[:, 0, axis] + 0.5) / (free + 1)
        assert abs(place.mean() - 0.5) < 0.02
        assert abs(place.var() - 1 / 12) < 0.01


def test_windows_depend_on_the_seed_and_the_sample_alone():
    first, again, other = (draw((300, 400), 50, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert len(np.unique(first.reshape(50, 4), axis=0)) == 50
    assert (first != other).any()


@pytest.mark.dali
@pytest.mark.parametrize("num_attempts", [1, 10])
@pytest.mark.parametrize(
    ("area", "ratio"), [((0.08, 1.0), (0.75, 1.333333)), ((0.3, 0.6), (0.5, 2.0))]
)
def test_sizes_are_distributed_as_dalis(area, ratio, num_attempts):
    count, shape = 4000, np.array([9, 13])
    arguments = {"random_area": area, "random_aspect_ratio": ratio, "num_attempts": num_attempts}
    ours = Counter(map(tuple, draw(shape, count, **arguments)[:, 1].tolist()))
    theirs = Counter(
        tuple(size.tolist()) for size in run_dali(Case(OP, [[shape] * count], arguments))[1][0]
    )
    sizes = set(ours) | set(theirs)
    # The sum of squares is chi-squared distributed: its mean is the number of sizes.
    chi = sum((ours[s] - theirs[s]) ** 2 / (ours[s] + theirs[s]) for s in sizes)
    assert chi < len(sizes) + 5 * np.sqrt(2 * len(sizes))


def impossible():
    """Ranges so narrow that no window of integers obeys them."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        height, width = (int(n) for n in rng.integers(1, 60, 2))
        low = float(rng.uniform(0.3, 3))
        area = float(rng.uniform(0.05, 1))
        yield height, width, (area * 0.9999, area), (low, low * 1.00001)


@pytest.mark.dali
def test_the_largest_window_is_dalis_when_nothing_fits():
    for height, width, area, ratio in impossible():
        arguments = {"random_area": area, "random_aspect_ratio": ratio, "num_attempts": 2}
        ((theirs,), _) = run_dali(Case(OP, [[np.array([height, width])]], arguments))[1]
        np.testing.assert_array_equal(draw((height, width), 1, **arguments)[0, 1], theirs)


def test_the_largest_window_lies_at_a_random_place():
    windows = draw(
        (30, 40), 400, num_attempts=0, random_area=(0.1, 0.25), random_aspect_ratio=(0.5, 2.0)
    )
    # The ratio of 4 : 3 is allowed, so a quarter of the area is half of both extents.
    assert (windows[:, 1] == (15, 20)).all()
    assert set(windows[:, 0, 0].tolist()) == set(range(16))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint32, np.int64])
def test_shapes_of_all_integer_types_and_with_channels_are_taken(dtype):
    np.testing.assert_array_equal(
        draw((30, 40, 3), 5, dtype=dtype), draw((30, 40), 5, dtype=np.int64)
    )


@pytest.mark.parametrize(
    "shape",
    [
        np.array([30]),
        np.array([2, 30, 40, 3]),
        np.array([[30, 40]]),
        np.array([30.0, 40.0], np.float32),
        np.array([-30, 40]),
    ],
)
def test_what_is_no_shape_of_an_image_is_refused(shape):
    with pytest.raises(ValueError, match=r"\(height, width\)"):
        run_operator(OP, [shape])


def test_an_image_without_pixels_is_refused():
    with pytest.raises(ValueError, match="0 × 40 pixels"):
        run_operator(OP, [np.array([0, 40])])


def test_ranges_that_hold_nothing_are_refused():
    with pytest.raises(ArgumentError, match="random_area"):
        run_operator(OP, [np.array([30, 40])], random_area=(0.9, 0.1))
