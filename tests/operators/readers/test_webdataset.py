from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import numpy as np
import pytest

from archives import FOLDER, Link, write_archive
from forebay import Pipeline, fn, ops, types
from forebay.errors import ArgumentError, GraphError, SourceError
from reading import check, read_ours

OP = "readers.webdataset"
FORMATS = {
    "ustar": tarfile.USTAR_FORMAT,
    "gnu": tarfile.GNU_FORMAT,
    "pax": tarfile.PAX_FORMAT,
}
LONG = "x" * 120


def write(folder, *members, name="a.tar", **options):
    return write_archive(folder / name, members, **options)


def numbered(folder, *counts):
    """Archives with so many samples, numbered through."""
    paths, first = [], 0
    for place, count in enumerate(counts):
        members = [
            (f"{n:03}.{ext}", bytes([n]) * repeat)
            for n in range(first, first + count)
            for ext, repeat in (("jpg", 3), ("cls", 1))
        ]
        paths.append(write(folder, *members, name=f"{place}.tar"))
        first += count
    return paths


def texts(path, ext, count=1, batch_size=1, **arguments):
    """The contents of all outputs: by output, by sample."""
    result = read_ours(OP, count, batch_size, paths=path, ext=ext, **arguments)
    return [
        [bytes(array) for batch in result.batches for array in batch[output][0]]
        for output in range(len(result.batches[0]))
    ]


def size(path, ext, **arguments):
    """How many samples there are."""
    return read_ours(OP, 0, 1, paths=path, ext=ext, **arguments).epoch_size


GROUPINGS = {
    "in order": ["a.jpg", "a.cls", "b.cls", "b.jpg"],
    "folders": [("d", FOLDER), "d/a.jpg", ("d.x", FOLDER), "d/a.cls", "e/a.jpg", "e/a.cls"],
    "dots in folders": ["./a.jpg", "./a.cls", "x.y/c.jpg", "x.y/c.cls"],
    "links": ["a.jpg", ("b.jpg", Link("a.jpg")), "a.cls"],
    "interleaved": ["a.jpg", "b.jpg", "a.cls", "b.cls"],
    "twice": ["a.jpg", ("a.jpg", b"second"), "a.cls"],
    "spaces": ["a b.jpg", "a b.cls", "c d/e.jpg", "c d/e.cls"],
    "several dots": ["a.seg.jpg", "a.jpg", "a..cls", "a.cls", "b.seg.jpg"],
    "no extension": ["a.jpg", "README", "a.cls", "n", "m"],
    "missing": ["a.jpg", "b.cls", "c.txt", "d.jpg", "d.cls"],
    "empty files": [("a.jpg", b""), "a.cls", ("b.cls", b""), "b.jpg"],
    "hidden files at the top": ["a.jpg", ".DS_Store", "._a.jpg", "a.cls"],
    "upper case": ["a.JPG", "a.cls", "A.jpg", "A.CLS"],
    "png": ["a.png", "a.cls", "b.jpg", "b.png", "b.cls", "c.png", "c.jpg"],
}


@pytest.mark.dali
@pytest.mark.parametrize("members", GROUPINGS.values(), ids=GROUPINGS)
@pytest.mark.parametrize("case_sensitive", [True, False])
@pytest.mark.parametrize("ext", [["jpg", "cls"], ["png;jpg", "cls"], ["seg.jpg", "jpg;"], ["cls"]])
def test_files_are_grouped_into_samples_as_in_dali(tmp_path, members, case_sensitive, ext):
    check(
        OP,
        1,
        6,
        paths=write(tmp_path, *members),
        ext=ext,
        case_sensitive_extensions=case_sensitive,
    )


@pytest.mark.dali
@pytest.mark.parametrize("behaviour", ["", "empty", "skip", "Empty", "SKIP"])
def test_samples_that_lack_an_output_are_treated_as_in_dali(tmp_path, behaviour):
    path = write(tmp_path, *GROUPINGS["missing"])
    check(OP, 1, 4, paths=path, ext=["jpg", "cls"], missing_component_behavior=behaviour)


@pytest.mark.dali
@pytest.mark.parametrize("format", FORMATS)
def test_every_format_of_tar_is_read_as_in_dali(tmp_path, format):
    name = f"{'d' * 90}/{'x' * 70}" if format == "ustar" else LONG if format == "gnu" else "x" * 90
    members = [f"{name}.jpg", f"{name}.cls", "ü.jpg", "ü.cls", "z.jpg", "z.cls"]
    path = write(tmp_path, *members, format=FORMATS[format])
    check(OP, 1, 3, paths=path, ext=["jpg", "cls"])


def test_names_of_pax_archives_are_read(tmp_path):
    """DALI's reader does not see the long or non-ASCII names that are in extended headers."""
    members = [f"{LONG}.jpg", f"{LONG}.cls", "ü.jpg", "ö.jpg", "ä.cls"]
    path = write(tmp_path, *members, format=tarfile.PAX_FORMAT)
    images, classes = texts(path, ["jpg", "cls"], batch_size=4)
    assert [text.decode() for text in images] == [f"{LONG}.jpg", "ü.jpg", "ö.jpg", ""]
    assert [text.decode() for text in classes] == [f"{LONG}.cls", "", "", "ä.cls"]


def test_hidden_files_in_folders_are_no_samples(tmp_path):
    """DALI's reader passes over those at the top only, its index script over all."""
    path = write(tmp_path, "d/a.jpg", "d/._a.jpg", "d/a.cls", "d/.DS_Store", "d/b.jpg")
    assert size(path, ["jpg"]) == 2
    assert texts(path, ["cls"], batch_size=2) == [[b"d/a.cls", b""]]


@pytest.mark.dali
@pytest.mark.parametrize("shard_id", [0, 1, 2])
@pytest.mark.parametrize("pad_last_batch", [False, True])
@pytest.mark.parametrize("stick_to_shard", [False, True])
def test_several_archives_are_one_and_are_cut_into_shards_as_in_dali(
    tmp_path, shard_id, pad_last_batch, stick_to_shard
):
    check(
        OP,
        9,
        3,
        paths=numbered(tmp_path, 4, 1, 6),
        ext=["jpg", "cls"],
        shard_id=shard_id,
        num_shards=3,
        pad_last_batch=pad_last_batch,
        stick_to_shard=stick_to_shard,
    )


@pytest.mark.dali
@pytest.mark.parametrize(
    "dtype",
    [
        *("UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"),
        *("FLOAT16", "FLOAT", "FLOAT64"),
    ],
)
def test_contents_are_read_as_numbers_of_every_type(tmp_path, dtype):
    path = write(tmp_path, ("a.x", bytes(range(16))), ("a.y", b"ab"), ("b.y", b"c"))
    dtypes = [getattr(types, dtype), types.UINT8]
    check(OP, 1, 2, paths=path, ext=["x", "y"], dtypes=dtypes)


def test_shuffling_gives_every_sample_once_an_epoch(tmp_path):
    [path] = numbered(tmp_path, 20)
    images, classes = texts(path, ["jpg", "cls"], 4, 5, random_shuffle=True, initial_fill=8)
    assert sorted(classes) == [bytes([n]) for n in range(20)]
    assert classes != sorted(classes)
    assert images == [3 * text for text in classes]


def test_a_missing_component_can_be_refused(tmp_path):
    path = write(tmp_path, "a.jpg", "a.cls", "b.jpg", "b.txt")
    with pytest.raises(
        GraphError, match=r"a\.tar: the sample at byte 2560 lacks 'cls'; it has 'b\.jpg', 'b\.txt'"
    ):
        size(path, ["jpg", "cls"], missing_component_behavior="error")
    assert size(path, ["jpg"], missing_component_behavior="error") == 2


def test_far_and_near_components_are_read_alike(tmp_path):
    big = np.random.default_rng(1).bytes(100_000)
    path = write(tmp_path, ("a.x", b"1"), ("a.big", big), ("a.y", b"23"), ("a.z", b""))
    assert texts(path, ["y", "x", "z"]) == [[b"23"], [b"1"], [b""]]
    assert texts(path, ["y", "big", "x"]) == [[b"23"], [big], [b"1"]]


INDEX = "v1.2 2\njpg 512 3 000.jpg cls 1536 1 000.cls\njpg 2560 3 001.jpg cls 3584 1 001.cls\n"


@pytest.mark.dali
@pytest.mark.parametrize(
    "text",
    [
        INDEX,
        "v1.1 2\njpg 512 3 cls 1536 1\njpg 2560 3 cls 3584 1\n",
        INDEX.replace("v1.2 2", "v1.2 1"),
        "v1.2 2\ncls 1536 1 000.cls\njpg 512 1 000.jpg",
        "v1.2 1\nother 512 1 000.other cls 1536 1 000.cls\n",
    ],
)
def test_index_files_are_read_as_in_dali(tmp_path, text):
    [path] = numbered(tmp_path, 2)
    index = tmp_path / "0.idx"
    index.write_text(text)
    check(OP, 2, 2, paths=[path], index_paths=[str(index)], ext=["jpg", "cls"])


def test_names_and_extensions_with_spaces_are_found_in_an_index(tmp_path):
    members = ["c d.jpg", "c d.cls", "my cls d/x.c l", "my cls d/x.cls", "README", "e.", "e.jpg"]
    path = write(tmp_path, *members)
    index = tmp_path / "a.idx"
    index.write_text(
        "v1.2 4\njpg 512 7 c d.jpg cls 1536 7 c d.cls\n"
        "c l 2560 14 my cls d/x.c l cls 3584 14 my cls d/x.cls\n"
        "README 4608 6 README\n 5632 2 e. jpg 6656 5 e.jpg\n"
    )
    given = {"ext": ["jpg", "cls", "c l", "README"], "batch_size": 4}
    found = texts(path, index_paths=str(index), **given)
    assert found == texts(path, **given)
    assert found[2] == [b"", b"my cls d/x.c l", b"", b""]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "first line is ''"),
        (INDEX.replace("v1.2", "v1.3"), "first line is 'v1.3 2'"),
        (INDEX.replace("v1.2 2", "2"), "first line is '2'"),
        (INDEX.replace("v1.2 2", "v1.2 0"), "first line is 'v1.2 0'"),
        (INDEX.replace("v1.2 2", "v1.2 3"), "line 4: it must be"),
        (INDEX.replace("\njpg 2560", "\n\njpg 2560"), "line 3: it must be"),
        (INDEX.replace("2560", "2561"), "line 3: it must be"),
        (INDEX.replace("1536", "x"), "line 2: it must be"),
        (INDEX.replace("jpg 512 3", f"jpg 512 {1 << 63}"), "line 2: it must be"),
    ],
)
def test_an_index_file_that_is_none_is_refused(tmp_path, text, reason):
    [path] = numbered(tmp_path, 2)
    index = tmp_path / "0.idx"
    index.write_text(text)
    with pytest.raises(GraphError, match=rf"0\.idx.*{reason}"):
        size(path, ["jpg"], index_paths=str(index))


def test_an_index_that_reaches_beyond_the_archive_is_found_out(tmp_path):
    [path] = numbered(tmp_path, 1)
    index = tmp_path / "0.idx"
    index.write_text("v1.2 1\njpg 5120000 4 000.jpg\n")
    with pytest.raises(SourceError, match=r"0\.tar, 000\.jpg at byte 5120000: .*too early"):
        texts(path, ["jpg"], index_paths=str(index))


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (0, "0: it is cut off"),
        (100, "0: it is cut off"),
        (514, r"0: 000\.jpg is cut off: it has 3 bytes, but only 2 are left"),
        (515, "1024: it is cut off"),
        (1024 + 100, "1024: it is cut off"),
        (1024 + 512, r"1024: 000\.cls is cut off: it has 1 bytes, but only 0 are left"),
    ],
)
def test_an_archive_that_is_cut_off_is_refused(tmp_path, left, text):
    [path] = numbered(tmp_path, 2)
    with Path(path).open("r+b") as file:
        file.truncate(left)
    with pytest.raises(GraphError, match=rf"0\.tar, header at byte {text}"):
        size(path, ["jpg"])


def test_an_archive_without_an_end_mark_is_read(tmp_path):
    [path] = numbered(tmp_path, 2)
    with Path(path).open("r+b") as file:
        file.truncate(4 * 1024)
    assert size(path, ["jpg"]) == 2


@pytest.mark.parametrize("place", [1024, 1024 + 148, 1024 + 257])
def test_a_corrupt_header_is_refused_rather_than_taken_for_the_end(tmp_path, place):
    [path] = numbered(tmp_path, 2)
    data = bytearray(Path(path).read_bytes())
    data[place] ^= 1
    Path(path).write_bytes(data)
    with pytest.raises(GraphError, match=r"0\.tar, header at byte 1024: it is corrupt"):
        size(path, ["jpg"])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"hello" * 1000, "it is corrupt, or no tar header"),
        (gzip.compress(bytes(5000)), "the archive is compressed"),
    ],
)
def test_a_file_that_is_no_archive_is_refused(tmp_path, content, text):
    path = tmp_path / "a.tar"
    path.write_bytes(content)
    with pytest.raises(GraphError, match=rf"a\.tar, header at byte 0: {text}"):
        size(str(path), ["jpg"])


def test_an_archive_that_became_shorter_fails_the_samples_that_are_gone(tmp_path):
    [path] = numbered(tmp_path, 2)
    pipe = Pipeline(1, 1, None, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(fn.readers.webdataset(paths=path, ext="jpg"))
    pipe.build()
    with Path(path).open("r+b") as file:
        file.truncate(2561)
    assert bytes(pipe.run()[0].at(0)) == bytes(3)
    with pytest.raises(SourceError, match=r"0\.tar, 001\.jpg at byte 2560: .*too early"):
        pipe.run()


def test_a_size_that_does_not_fit_the_type_is_refused(tmp_path):
    path = write(tmp_path, ("a.x", b"1234"), ("b.x", b"123"))
    with pytest.raises(GraphError, match=r"a\.tar at byte 1536: b\.x has 3 bytes, .* of INT16"):
        size(path, ["x"], dtypes=types.INT16)


@pytest.mark.parametrize("members", [[], [("d", FOLDER)], ["a.png"]])
def test_no_samples_at_all_are_refused(tmp_path, members):
    path = write(tmp_path, *members)
    with pytest.raises(GraphError, match="the number of samples, 0, must be at least"):
        size(path, ["jpg"], missing_component_behavior="skip")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"paths": []}, "'paths' is an empty list"),
        ({"ext": []}, "'ext' has the extensions of each output"),
        ({"ext": ["jpg", ";"]}, "'ext' has the extensions of each output"),
        ({"index_paths": ["a", "b"]}, "2 index files were given for 1 archives"),
        ({"dtypes": [types.INT8, types.INT8]}, "2 'dtypes' were given for 1 outputs"),
        ({"dtypes": [types.BOOL]}, "types of numbers, but got BOOL"),
        ({"dtypes": [types.STRING]}, "types of numbers, but got STRING"),
        ({"missing_component_behavior": "drop"}, "'empty', 'skip' or 'error', but got 'drop'"),
        ({"shard_id": 2, "num_shards": 2}, "num_shards must be greater"),
        ({"extensions": "jpg"}, "no argument 'extensions'"),
    ],
)
def test_arguments_that_cannot_be_are_refused_where_they_are_written(arguments, text):
    given = {"paths": "a.tar", "ext": "jpg", **arguments}
    with Pipeline(1, 1, None), pytest.raises(ArgumentError, match=text):
        fn.readers.webdataset(**given)


def test_an_archive_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(GraphError, match="gone"):
        size(str(tmp_path / "gone.tar"), ["jpg"])


def test_the_class_gives_a_node_for_each_output(tmp_path):
    [path] = numbered(tmp_path, 2)
    pipe = Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(*ops.readers.Webdataset(paths=[path], ext=["jpg", "cls"])())
    _, classes = pipe.run()
    assert classes.as_array().tolist() == [[0], [1]]


def test_archives_of_any_file_system_are_read(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    [path] = numbered(tmp_path, 2)
    fsspec.filesystem("memory").pipe_file("/archives/a.tar", Path(path).read_bytes())
    found = texts("memory://archives/a.tar", ["jpg", "cls"], batch_size=2)
    assert found == [[bytes(3), b"\1\1\1"], [b"\0", b"\1"]]
