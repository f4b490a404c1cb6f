from __future__ import annotations

import numpy as np
import pytest

import forebay
from forebay import Pipeline, fn, ops
from forebay.errors import ArgumentError, OperatorError, SourceError
from reading import check, read_ours

OP = "readers.numpy"
GRID = np.arange(12, dtype=np.int16).reshape(3, 4)
LINE = np.arange(10, dtype=np.int16)


def save(folder, *arrays, fortran=False):
    paths = []
    for number, array in enumerate(arrays):
        path = folder / f"{number}.npy"
        np.save(path, np.asfortranarray(array) if fortran else array)
        paths.append(str(path))
    return paths


@pytest.mark.dali
@pytest.mark.parametrize(
    "dtype", ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?"]
)
def test_every_element_type_comes_out_as_it_is(tmp_path, dtype):
    check(OP, 1, 2, files=save(tmp_path, np.array([[0, 1, 1]], dtype), np.ones((2, 2), dtype)))


@pytest.mark.dali
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 0), (2, 3, 4, 5), (1,)])
@pytest.mark.parametrize("fortran", [False, True])
def test_every_shape_comes_out_in_c_order(tmp_path, shape, fortran):
    array = np.random.default_rng(1).normal(size=shape)
    check(OP, 1, 1, files=save(tmp_path, np.array(array), fortran=fortran))


@pytest.mark.dali
@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize(
    "roi",
    [
        {"roi_start": [1, 1], "roi_end": [3, 3]},
        {"roi_start": [1, 1], "roi_shape": [2, 2]},
        {"roi_end": [2, 2]},
        {"roi_shape": [2, 2]},
        {"roi_start": [1, 1]},
        {"roi_start": 1, "roi_end": 2},
        {"roi_start": [1], "roi_end": [2, 2]},
        {"rel_roi_start": [0.3, 0.25], "rel_roi_end": [0.9, 0.8]},
        {"rel_roi_start": [0.5, 0.5], "rel_roi_shape": [0.5, 0.3]},
        {"rel_roi_shape": [0.4, 0.4]},
        {"rel_roi_start": [0.5, 0.5], "roi_shape": [1, 1]},
        {"roi_start": [1, 1], "rel_roi_end": [1.0, 0.6]},
        {"roi_start": [1, 1], "rel_roi_shape": [0.5, 0.5]},
        {"roi_start": [1], "roi_end": [2], "roi_axes": [1]},
        {"roi_start": [1], "roi_end": [2], "roi_axes": [-1]},
        {"roi_start": [1, 2], "roi_end": [2, 3], "roi_axes": [1, 0]},
        {"roi_axes": [0]},
        {"roi_start": [2, 2], "roi_end": [2, 3]},
        *(
            {"roi_start": start, "roi_end": end, "out_of_bounds_policy": policy, "fill_value": fill}
            for start, end in (([-1, 2], [2, 6]), ([5, 6], [7, 7]), ([1, 1], [2, 2]))
            for policy in ("pad", "trim_to_shape")
            for fill in (7, 7.5, -7.6, 70000.0)
        ),
    ],
    ids=str,
)
def test_regions_are_cut_as_in_dali(tmp_path, roi, fortran):
    check(OP, 1, 1, files=save(tmp_path, GRID, fortran=fortran), **roi)
    check(OP, 1, 1, files=save(tmp_path, GRID.astype(np.uint8), fortran=fortran), **roi)


@pytest.mark.dali
@pytest.mark.parametrize("start", [0.05, 0.15, 0.25, 0.26, 0.35])
def test_halves_of_relative_regions_are_rounded_as_in_dali(tmp_path, start):
    files = save(tmp_path, LINE)
    for end in (
        {"rel_roi_end": 0.65},
        {"rel_roi_shape": 0.3},
        {"roi_shape": 2},
        {"roi_end": 6},
        {},
    ):
        check(OP, 1, 1, files=files, rel_roi_start=start, **end)


@pytest.mark.dali
def test_arrays_of_different_shapes_make_a_ragged_batch(tmp_path):
    reading = check(OP, 1, 2, files=save(tmp_path, GRID, GRID[:2]))
    assert [array.shape for array in reading.batches[0][0][0]] == [(3, 4), (2, 4)]


@pytest.mark.dali
def test_a_folder_is_listed_with_its_folders(tmp_path):
    names = ["b.npy", "z.npy", "s/c.npy", "t/a.npy", "sa.npy", "s/u/d.npy", ".h.npy", "t-.npy"]
    for number, name in enumerate(names):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / name, np.full(2, number, np.int32))
    (tmp_path / "Z.NPY").write_bytes((tmp_path / "z.npy").read_bytes())
    check(OP, 2, 4, file_root=str(tmp_path))
    check(OP, 1, 4, file_root=str(tmp_path), file_filter="?.npy")
    check(OP, 1, 4, file_root=str(tmp_path), files=["s/c.npy", str(tmp_path / "b.npy")])
    (tmp_path / "list.txt").write_text("s/c.npy\n\nb.npy\n")
    check(OP, 1, 4, file_list=str(tmp_path / "list.txt"))
    check(OP, 1, 4, file_list=str(tmp_path / "list.txt"), file_root=str(tmp_path))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", ">i2"])
def test_every_version_and_byte_order_that_numpy_writes_is_read(tmp_path, version, dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, array, version=version)
    ((batch,),) = read_ours(OP, 1, 1, files=[str(tmp_path / "a.npy")]).batches
    assert batch[0][0].dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(batch[0][0], array)


GOOD = b"\x93NUMPY\x01\x00\x76\x00" + (
    b"{'descr': '<i2', 'fortran_order': False, 'shape': (3, 4), }".ljust(117) + b"\n"
)
CORRUPT = {
    "empty": (b"", "does not begin"),
    "no magic": (b"not numpy at all", "does not begin"),
    "cut in the header": (GOOD[:30], "offset 30, within its header of 128 bytes"),
    "cut in the data": (GOOD + bytes(23), r"offset 151, but 24 bytes of int16 \[3, 4\]"),
    "no dict": (GOOD.replace(b"{'descr'", b"('descr'") + bytes(24), "header cannot be read"),
    "other keys": (GOOD.replace(b"descr", b"dexcr") + bytes(24), "header cannot be read.*descr"),
    "a bad type": (GOOD.replace(b"<i2", b"<z9") + bytes(24), "header cannot be read"),
    "objects": (GOOD.replace(b"'<i2'", b"'O'  ") + bytes(99), "object are not supported"),
    "text": (GOOD.replace(b"<i2", b"<U3") + bytes(99), "not supported"),
    "complex": (GOOD.replace(b"<i2", b"<c8") + bytes(99), "complex64 are not supported"),
    "negative": (GOOD.replace(b"(3, 4)", b"(3,-4)"), "shape"),
    "not a shape": (GOOD.replace(b"(3, 4)", b"'abcd'") + bytes(24), "shape"),
    "huge": (GOOD.replace(b"(3, 4), }", b"(9**9**9,)"), "header cannot be read"),
    "large": (GOOD.replace(b"(3, 4), }", b"(3, 1" + b"0" * 12 + b")}"), "bytes of int16"),
}


@pytest.mark.parametrize("kind", CORRUPT)
def test_a_corrupt_file_fails_its_row_alone_and_is_named(tmp_path, kind):
    content, text = CORRUPT[kind]
    (path,) = save(tmp_path, GRID)
    bad = tmp_path / "bad.npy"
    bad.write_bytes(content)
    with Pipeline(batch_size=2, num_threads=2) as pipe:
        pipe.set_outputs(fn.readers.numpy(files=[path, str(bad), path, path]))
    with pytest.raises(SourceError, match=text) as caught:
        pipe.run()
    assert isinstance(caught.value, OperatorError)
    assert (caught.value.sample, caught.value.source) == (1, str(bad))
    assert pipe.run()[0].as_array().shape == (2, 3, 4)
    pipe.close()


@pytest.mark.parametrize(
    ("roi", "text"),
    [
        ({"roi_start": [-1, 2], "roi_end": [2, 6]}, "reaches outside the data, which is"),
        ({"roi_start": [2, 2], "roi_end": [1, 3]}, "end before its start"),
        ({"roi_shape": -1}, "must not be negative"),
        ({"roi_start": [1, 1, 1]}, "one value or 2"),
        ({"roi_start": [1], "roi_axes": [2]}, "axis 2 is out of range"),
        ({"roi_start": [1], "roi_axes": [1, 1]}, "one axis twice"),
    ],
)
def test_a_region_that_a_file_does_not_have_is_an_error_of_that_file(tmp_path, roi, text):
    (path,) = save(tmp_path, GRID)
    with Pipeline(batch_size=1, num_threads=1) as pipe:
        pipe.set_outputs(fn.readers.numpy(files=[path], **roi))
    with pytest.raises(SourceError, match=text) as caught:
        pipe.run()
    assert caught.value.source == path
    pipe.close()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "needs 'file_root'"),
        ({"roi_start": [1], "rel_roi_start": [0.1]}, "only one of 'roi_start', 'rel_roi_start'"),
        ({"roi_end": [1], "roi_shape": [1]}, "only one of 'roi_end', 'roi_shape'"),
        ({"out_of_bounds_policy": "nope"}, "must be one of"),
    ],
)
def test_arguments_that_cannot_be_are_refused_where_they_are_written(arguments, text):
    if arguments:
        arguments["files"] = ["a.npy"]
    with pytest.raises(ArgumentError, match=text):
        fn.readers.numpy(**arguments)


@pytest.mark.dali
def test_a_region_may_differ_per_sample(tmp_path):
    from nvidia import dali

    files = save(tmp_path, GRID, GRID + 100, GRID + 200)
    starts = [np.array(s, np.int32) for s in ([0, 1], [2, 2], [1, 0])]
    shapes = [np.array(s, np.float32) for s in ([0.4, 0.5], [0.3, 0.25], [0.7, 1])]

    def run(library):
        pipe = library.Pipeline(batch_size=3, num_threads=2, device_id=None)
        with pipe:
            start = library.fn.external_source(source=lambda: starts)
            shape = library.fn.external_source(source=lambda: shapes) + 0
            roi = {"roi_start": start, "rel_roi_shape": shape}
            pipe.set_outputs(library.fn.readers.numpy(files=files, **roi))
        return [np.array(batch.at(i)) for (batch,) in (pipe.run(), pipe.run()) for i in range(3)]

    for ours, theirs in zip(run(forebay), run(dali), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def test_a_region_per_sample_that_is_outside_is_an_error_of_that_sample(tmp_path):
    files = save(tmp_path, GRID, GRID)
    with Pipeline(batch_size=2, num_threads=2) as pipe:
        ends = [np.array([1, 1], np.int32), np.array([9, 1], np.int32)]
        end = fn.external_source(source=lambda: ends)
        pipe.set_outputs(fn.readers.numpy(files=files, roi_end=end))
    with pytest.raises(SourceError, match="reaches outside") as caught:
        pipe.run()
    assert (caught.value.sample, caught.value.source) == (1, files[1])
    pipe.close()


def test_nothing_to_read_is_an_error_of_the_graph(tmp_path):
    for arguments in ({"file_root": str(tmp_path)}, {"file_root": str(tmp_path / "nowhere")}):
        with Pipeline(batch_size=1, num_threads=1) as pipe:
            pipe.set_outputs(fn.readers.numpy(**arguments))
        with pytest.raises(RuntimeError, match=r"readers\.numpy at .*test_numpy\.py"):
            pipe.build()


def test_hints_and_old_names_change_nothing(tmp_path):
    files = save(tmp_path, GRID)
    hints = {"cache_header_information": True, "register_buffers": False, "use_o_direct": True}
    for form in (ops.readers.Numpy, ops.NumpyReader):
        with forebay.Pipeline(batch_size=1, num_threads=1) as pipe:
            pipe.set_outputs(form(files=files, **hints)())
        np.testing.assert_array_equal(pipe.run()[0].at(0), GRID)
        pipe.close()
