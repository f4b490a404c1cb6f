from __future__ import annotations

import numpy as np
import pytest

from forebay import types
from forebay.errors import ArgumentError
from forebay.testing import run_operator

from oracle import RESAMPLED, Case, run_dali

rng = np.random.default_rng(7)
HEIGHT, WIDTH = 60, 80


def positions(height=HEIGHT, width=WIDTH):
    """A float picture of which every pixel holds its own place, (y, x)."""
    return np.stack(np.mgrid[:height, :width], axis=-1).astype(np.float32) + 0.5


def windows(results, size):
    """(y, x, height, width) that each result shows, read off two of its inner pixels."""
    found = []
    for result in results:
        axes = []
        for values, n in ((result[:, size // 2, 0], size), (result[size // 2, :, 1], size)):
            a, b = n // 3, 2 * n // 3
            scale = (values[b] - values[a]) / (b - a)
            axes.append((values[a] - (a + 0.5) * scale, scale * n))
        found.append([axes[0][0], axes[1][0], axes[0][1], axes[1][1]])
    return np.array(found)


def draw(count=200, size=9, seed=0, **arguments):
    batch = [positions()] * count
    arguments = {"size": [size, size], "antialias": False, **arguments}
    results = run_operator("random_resized_crop", batch, seed=seed, **arguments)
    return windows([r.tensor.numpy() for r in results], size)


def test_windows_lie_inside_and_have_whole_pixels():
    found = draw()
    y, x, h, w = found.T
    np.testing.assert_allclose(found, found.round(), atol=2e-3)
    assert (y > -0.01).all()
    assert (x > -0.01).all()
    assert (y + h < HEIGHT + 0.01).all()
    assert (x + w < WIDTH + 0.01).all()


def test_areas_and_aspect_ratios_stay_in_their_ranges():
    _, _, h, w = draw(random_area=[0.2, 0.5], random_aspect_ratio=[0.5, 1.5]).T
    area, ratio = h * w / (HEIGHT * WIDTH), w / h
    assert 0.18 < area.min() < 0.23
    assert 0.45 < area.max() < 0.53
    assert 0.499 < ratio.min() < 0.55
    assert 1.4 < ratio.max() < 1.501


@pytest.mark.dali
def test_windows_are_distributed_like_dalis():
    count, size = 1000, 9
    data = [positions()] * count
    case = Case("random_resized_crop", [data], {"size": [size, size], "antialias": False})
    expected = windows(run_dali(case)[0][0], size)
    got = draw(count)
    for name, a, b in zip("yxhw", np.sort(got.T), np.sort(expected.T), strict=True):
        steps = np.concatenate([a, b])
        below = np.searchsorted(a, steps, "right") - np.searchsorted(b, steps, "right")
        # Kolmogorov–Smirnov: two samples of one distribution differ by more once in 10⁶ times
        assert np.abs(below).max() / count < 2.7 * np.sqrt(2 / count), name


def test_the_same_seed_gives_the_same_windows_and_another_one_others():
    np.testing.assert_array_equal(draw(20), draw(20))
    assert (draw(20, seed=1) != draw(20)).any(axis=1).all()


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("size", [[7, 9], [30, 33]])
def test_the_kernel_agrees_with_the_definition(antialias, size):
    data = [(rng.random((19, 26, 3)) * 255).astype(np.uint8) for _ in range(40)]
    arguments = {"size": size, "antialias": antialias}
    Case("random_resized_crop", [data], arguments, tolerance=RESAMPLED).check_reference()


@pytest.mark.dali
@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("size", [(7, 9), (30, 33)])
def test_a_window_shows_what_dali_shows_of_that_region(reference, antialias, size):
    data = [(rng.random((19, 26, 3)) * 255).astype(np.uint8) for _ in range(8)]
    arguments = {"size": size, "antialias": antialias}
    pictures = run_operator("random_resized_crop", data, reference=reference, **arguments)
    exact = {"size": (9, 9), "antialias": False}
    places = run_operator("random_resized_crop", [positions(19, 26)] * 8, **exact)
    found = windows([p.tensor.numpy() for p in places], 9).round().astype(np.float32)
    per_sample = {"roi_start": list(found[:, :2]), "roi_end": list(found[:, :2] + found[:, 2:])}
    dali = {"size": list(map(float, size)), "antialias": antialias}
    expected, _ = run_dali(Case("resize", [data], dali, per_sample))[0]
    for got, array in zip(pictures, expected, strict=True):
        RESAMPLED.check(got.tensor.numpy(), array, "window")


@pytest.mark.parametrize(
    ("shape", "layout", "result"),
    [
        ((19, 26, 3), "", (7, 7, 3)),
        ((19, 26, 1), "HWC", (7, 7, 1)),
        ((3, 19, 26), "CHW", (3, 7, 7)),
        ((2, 19, 26, 3), "", (2, 7, 7, 3)),
    ],
)
def test_one_size_serves_both_axes_of_any_layout(shape, layout, result):
    got = run_operator("random_resized_crop", [np.zeros(shape, np.uint8)], size=7, layout=layout)
    assert got[0].shape == result
    assert got[0].layout == layout or {3: "HWC", 4: "FHWC"}[len(shape)] == got[0].layout


def test_all_frames_of_a_video_show_the_same_part():
    video = np.repeat(positions()[None], 3, axis=0)
    result = run_operator("random_resized_crop", [video], size=9)[0].tensor.numpy()
    np.testing.assert_array_equal(result[0], result[1])
    np.testing.assert_array_equal(result[0], result[2])


def test_float_results_are_not_rounded():
    data = (rng.random((19, 26, 3)) * 255).astype(np.uint8)
    result = run_operator("random_resized_crop", [data], size=9, dtype=types.FLOAT)[0].array
    assert result.dtype == np.float32
    assert (result % 1 != 0).any()


def refused(error, match, data=None, **arguments):
    data = np.zeros((10, 12, 3), np.uint8) if data is None else data
    with pytest.raises(error, match=match):
        run_operator("random_resized_crop", [data], **{"size": [4, 5], **arguments})


def test_bad_arguments_are_refused():
    refused(ArgumentError, "'size' takes", size=[])
    refused(ArgumentError, "'size' takes", size=[4, 5, 6])
    refused(ArgumentError, "'size' takes", size=[-4, 5])
    refused(ArgumentError, "random_area", random_area=[0.2, 0.1])
    refused(ValueError, "volume", np.zeros((3, 4, 5, 1), np.uint8), layout="DHWC")
    refused(ValueError, "no window", np.zeros((0, 12, 3), np.uint8))
    refused(ValueError, "got INT32", np.zeros((4, 5, 3), np.int32))
    refused(ValueError, "2 axes", np.zeros((4, 5), np.uint8))
