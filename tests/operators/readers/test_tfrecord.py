from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import forebay
import records
from forebay import Pipeline, fn, ops, tfrecord
from forebay.errors import ArgumentError, GraphError, OperatorError, SourceError
from reading import Reading, compare, read
from records import entry, example, field, write_records


def features_for(module, spec):
    """Of forebay's or DALI's module: a tuple is a fixed shape, a list a partial one."""
    made = {}
    for name, (shape, kind, default) in spec.items():
        dtype = getattr(module, kind)
        if shape is None:
            made[name] = module.VarLenFeature(dtype, default)
        elif isinstance(shape, tuple):
            made[name] = module.FixedLenFeature(shape, dtype, default)
        else:
            made[name] = module.VarLenFeature(shape, dtype, default)
    return made


def read_ours(spec, count=1, batch_size=2, **arguments) -> Reading:
    features = features_for(tfrecord, spec)
    return read(forebay, "readers.tfrecord", count, batch_size, features=features, **arguments)


def check(files, spec, count=1, batch_size=2, **arguments) -> Reading:
    """Forebay gives what DALI gives, with the index and without it."""
    import nvidia.dali
    import nvidia.dali.tfrecord

    paths, indices = zip(*files, strict=True)
    theirs = features_for(nvidia.dali.tfrecord, spec)
    arguments = {"path": list(paths), **arguments}
    expected = read(
        nvidia.dali,
        "readers.tfrecord",
        count,
        batch_size,
        features=theirs,
        index_path=list(indices),
        **arguments,
    )
    got = read_ours(spec, count, batch_size, index_path=list(indices), **arguments)
    compare(got, expected)
    compare(read_ours(spec, count, batch_size, **arguments), expected)
    return got


def write(folder, *examples, name="a.tfrecord"):
    return write_records(folder / name, examples)


def values(result: Reading) -> list[list]:
    """The arrays of the first batch as lists: by output, by sample."""
    return [[array.tolist() for array in arrays] for arrays, _ in result.batches[0]]


def numbered(folder, *counts):
    """Files with so many records, numbered through."""
    files, first = [], 0
    for place, count in enumerate(counts):
        numbers = range(first, first + count)
        made = [example({"label": [n], "image": [b"%d" % n]}) for n in numbers]
        files.append(write(folder, *made, name=f"{place}.tfrecord"))
        first += count
    return files


NUMBER = {"label": ((), "int64", -1)}
BIG = random.Random(1).randbytes(70_000)


@pytest.mark.dali
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    "spec",
    [
        {"image": ((), "string", "")},
        {"image": ((1,), "string", "")},
        {"label": ((1,), "int64", -1)},
        {"label": ((), "int64", -1)},
        {"label": (None, "int64", -1)},
        {"six": ((6,), "int64", -1), "label": ((1, 1), "int64", -1)},
        {"six": ((2, 3), "int64", -1)},
        {"six": (None, "int64", -1)},
        {"six": ([3], "int64", -1)},
        {"six": ([2, 3], "int64", -1)},
        {"box": (None, "float32", 0.0)},
        {"box": ([1], "float32", 0.0)},
        {"many": (None, "int64", 0), "image": ((), "string", ""), "box": (None, "float32", 0.0)},
    ],
    ids=str,
)
def test_features_come_out_as_in_dali(tmp_path, spec, packed):
    common = {"six": [1, -2, 3, 2**63 - 1, -(2**63), 300], "many": list(range(0, 90000, 999))}
    made = [
        example({"image": [BIG], "label": [300], "box": [0.1, 0.2], **common}, packed=packed),
        example({"label": [-1], **common, "box": [1.5], "image": [b""]}, packed=packed),
    ]
    check([write(tmp_path, *made)], spec)


@pytest.mark.dali
@pytest.mark.parametrize(
    "data",
    [
        entry("i", records.values([1])) + entry("i", records.values([2])),
        entry("i", field(3, field(1, b"\1\2") + b"\x08\x03")),
        field(1, field(2, records.values([7])) + field(1, b"i")),
        entry("i", field(3, field(1, b"\1") + records.varint(5 << 3 | 1) + bytes(8))),
        entry("other", b"") + entry("i", records.values([7])) + entry("", records.values([8])),
    ],
    ids=["twice", "partly packed", "value before name", "unknown field", "others"],
)
def test_unusual_encodings_are_read_as_in_dali(tmp_path, data):
    whole = field(9, b"abc") + records.varint(10 << 3 | 5) + b"1234" + field(1, data)
    check([write(tmp_path, whole, whole)], {"i": (None, "int64", 0)})


@pytest.mark.dali
def test_the_first_of_several_strings_is_read_as_in_dali(tmp_path):
    check([write(tmp_path, example({"s": [b"ab", b"cde"]}))], {"s": ((), "string", "")}, 1, 1)


@pytest.mark.dali
def test_two_parts_of_the_features_are_one_as_in_dali(tmp_path):
    data = field(1, entry("i", records.values([1]))) + field(1, entry("j", records.values([2])))
    check([write(tmp_path, data, data)], {"j": (None, "int64", 0), "i": (None, "int64", 0)})


@pytest.mark.dali
@pytest.mark.parametrize("shard_id", [0, 1, 2])
@pytest.mark.parametrize("pad_last_batch", [False, True])
@pytest.mark.parametrize("stick_to_shard", [False, True])
def test_several_files_are_one_and_are_cut_into_shards_as_in_dali(
    tmp_path, shard_id, pad_last_batch, stick_to_shard
):
    check(
        numbered(tmp_path, 4, 1, 6),
        NUMBER,
        count=9,
        batch_size=3,
        shard_id=shard_id,
        num_shards=3,
        pad_last_batch=pad_last_batch,
        stick_to_shard=stick_to_shard,
    )


@pytest.mark.dali
def test_a_file_without_records_among_others_is_passed_over_as_in_dali(tmp_path):
    check(numbered(tmp_path, 0, 3, 0, 2), NUMBER, count=3)


def test_shuffling_gives_every_record_once_an_epoch(tmp_path):
    [(path, _)] = numbered(tmp_path, 20)
    spec = {"label": ((), "int64", -1), "image": ((), "string", "")}
    result = read_ours(spec, 4, 5, path=path, random_shuffle=True, initial_fill=8)
    drawn = [number for batch in result.values(0) for number in batch]
    assert sorted(drawn) == list(range(20))
    assert drawn != list(range(20))
    texts = [bytes(image).decode() for batch in result.batches for image in batch[1][0]]
    assert texts == [str(number) for number in drawn]


def test_a_missing_feature_of_fixed_length_is_its_default(tmp_path):
    path, _ = write(tmp_path, example({"a": [1]}), field(1, entry("s", b"")))
    spec = {
        "i": ((2, 2), "int64", 7),
        "f": ((), "float32", 0.5),
        "s": ((), "string", "ab"),
        "a": ((1,), "int64", -1),
    }
    integers, floats, strings, present = values(read_ours(spec, path=path))
    assert integers == [[[7, 7], [7, 7]]] * 2
    assert floats == [0.5, 0.5]
    assert strings == [[97, 98]] * 2
    assert present == [[1], [-1]]


def test_a_missing_feature_of_varying_length_is_empty(tmp_path):
    empty = entry("i", field(3, b"")) + entry("f", field(2, field(1, b"")))
    path, _ = write(tmp_path, example({"a": [1]}), field(1, empty))
    spec = {"i": (None, "int64", 7), "f": ([4], "float32", 1.0)}
    result = read_ours(spec, path=path)
    assert [array.shape for array in result.batches[0][0][0]] == [(0,), (0,)]
    assert [array.shape for array in result.batches[0][1][0]] == [(0, 4), (0, 4)]
    assert result.batches[0][1][0][0].dtype == np.float32


def run(path, features=None, batch_size=1, count=1, **arguments):
    features = features or {"label": tfrecord.FixedLenFeature([1], tfrecord.int64)}
    pipe = Pipeline(batch_size, 1, None, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(*fn.readers.tfrecord(path=path, features=features, **arguments).values())
    pipe.build()
    for _ in range(count):
        outputs = pipe.run()
    return outputs


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        (tfrecord.FixedLenFeature([3], tfrecord.int64, 0), "'i' has 2 values.*shape \\[3\\]"),
        (tfrecord.FixedLenFeature([1], tfrecord.int64, 0), "'i' has 2 values.*shape \\[1\\]"),
        (tfrecord.FixedLenFeature([], tfrecord.int64, 0), "'i' has 2 values"),
        (tfrecord.VarLenFeature([3], tfrecord.int64, 0), "'i' has 2 values.*partial"),
        (tfrecord.VarLenFeature(tfrecord.float32, 0.0), "'i' holds int64 .* float32 was asked"),
        (tfrecord.FixedLenFeature([], tfrecord.string, ""), "'i' holds int64 .* string was asked"),
    ],
)
def test_values_that_do_not_fit_their_feature_are_an_error(tmp_path, feature, text):
    path, _ = write(tmp_path, example({"i": [1, 2]}))
    with pytest.raises(SourceError, match=rf"a\.tfrecord, record at byte 0: feature {text}"):
        run(path, {"i": feature})


def test_a_missing_feature_without_a_default_is_an_error(tmp_path):
    path, _ = write(tmp_path, example({"label": [1]}), example({"i": [1, 2]}))
    with pytest.raises(SourceError, match="byte 34: feature 'label' is missing"):
        run(path, count=2)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xff\xff\xff", "goes beyond its message"),
        (b"\x0b", "wire type 3"),
        (field(1, b"\x0a\x7f"), "goes beyond its message"),
        (b"\x0a", "goes beyond its message"),
        (field(1, entry("label", field(3, field(1, b"\x80")))), "ends within one"),
        (field(1, entry("label", field(3, field(1, b"\x80" * 40)))), "ends within one"),
        (field(1, entry("label", field(3, field(1, b"\x80" * 40 + b"\1")))), "more than 10 bytes"),
        (field(1, entry("label", field(3, field(1, b"\x80" * 12 + b"\1")))), "more than 10 bytes"),
    ],
)
def test_data_that_is_no_example_is_an_error(tmp_path, data, text):
    path, _ = write(tmp_path, data)
    with pytest.raises(SourceError, match=rf"a\.tfrecord, record at byte 0: .*{text}"):
        run(path)


def test_a_float_list_that_is_cut_off_is_an_error(tmp_path):
    path, _ = write(tmp_path, field(1, entry("label", field(2, field(1, b"12345")))))
    with pytest.raises(SourceError, match="a list of floats ends within one"):
        run(path, {"label": tfrecord.VarLenFeature(tfrecord.float32)})


def test_random_damage_never_gives_anything_but_values_or_a_source_error(tmp_path):
    good = example({"label": [300, 5], "f": [1.5, 2.5], "s": [b"abc"]})
    features = features_for(
        tfrecord,
        {"label": (None, "int64", 0), "f": (None, "float32", 0.0), "s": ((), "string", "")},
    )
    draw = random.Random(1)
    damaged = []
    for _ in range(200):
        data = bytearray(good)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        damaged.append(bytes(data[: draw.randint(1, len(data))]))
    path, _ = write(tmp_path, *damaged)
    pipe = Pipeline(1, 1, None, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(*fn.readers.tfrecord(path=path, features=features).values())
    failures = 0
    for _ in damaged:
        try:
            pipe.run()
        except SourceError:
            failures += 1
    assert 50 < failures < 200


def test_a_file_that_is_not_there_is_refused(tmp_path):
    path, _ = write(tmp_path, example({"label": [1]}))
    with pytest.raises(GraphError, match="gone"):
        run(str(tmp_path / "gone.tfrecord"))
    with pytest.raises(GraphError, match="gone"):
        run(path, index_path=str(tmp_path / "gone.idx"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"features": {}}, "'features' is a dict"),
        ({"features": [1]}, "'features' is a dict"),
        ({"features": {"a": 3}}, "FixedLenFeature or tfrecord.VarLenFeature, but got 'a': 3"),
        ({"features": {1: tfrecord.VarLenFeature(tfrecord.int64)}}, "but got 1"),
        ({"index_path": ["a", "b"]}, "2 index files were given for 1 TFRecord files"),
        ({"path": []}, "'path' is an empty list"),
        ({"shard_id": 2, "num_shards": 2}, "num_shards must be greater"),
        ({"shuffle": True}, "no argument 'shuffle'"),
    ],
)
def test_arguments_that_cannot_be_are_refused_where_they_are_written(arguments, text):
    given = {"path": "a", "features": {"a": tfrecord.VarLenFeature(tfrecord.int64)}, **arguments}
    with Pipeline(1, 1, None), pytest.raises(ArgumentError, match=text):
        fn.readers.tfrecord(**given)


def test_fn_and_both_classes_give_a_dict_of_nodes(tmp_path):
    [(path, index)] = numbered(tmp_path, 2)
    features = features_for(tfrecord, {"label": ((), "int64", 0), "image": ((), "string", "")})
    given = {"path": [path], "index_path": [index], "features": features}
    pipe = Pipeline(2, 1, None)
    with pipe:
        for made in (
            fn.readers.tfrecord(**given),
            fn.tfrecord_reader(**given),
            ops.readers.TFRecord(**given)(),
            ops.TFRecordReader(**given)(name="mine"),
        ):
            assert list(made) == ["label", "image"]
            pipe.set_outputs(*made.values())
    labels, images = pipe.run()
    assert labels.as_array().tolist() == [0, 1]
    assert bytes(images.at(1)) == b"1"


def test_one_feature_is_a_dict_too(tmp_path):
    [(path, _)] = numbered(tmp_path, 2)
    with Pipeline(2, 1, None):
        made = fn.readers.tfrecord(path=path, features=features_for(tfrecord, NUMBER))
    assert list(made) == ["label"]


def test_an_operator_after_the_reader_names_the_record_in_its_error(tmp_path):
    path, _ = write(tmp_path, example({"image": [b"no picture"]}))
    pipe = Pipeline(1, 1, None)
    with pipe:
        features = {"image": tfrecord.FixedLenFeature((), tfrecord.string, "")}
        encoded = fn.readers.tfrecord(path=path, features=features)["image"]
        pipe.set_outputs(fn.decoders.image(encoded))
    with pytest.raises(OperatorError, match=r"a\.tfrecord, record at byte 0"):
        pipe.run()


def test_files_of_any_file_system_are_read(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    path, index = numbered(tmp_path, 3)[0]
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/records/a.tfrecord", Path(path).read_bytes())
    memory.pipe_file("/records/a.idx", Path(index).read_bytes())
    spec = features_for(tfrecord, NUMBER)
    for given in ({}, {"index_path": "memory://records/a.idx"}):
        [labels] = run("memory://records/a.tfrecord", spec, batch_size=3, **given)
        assert labels.as_array().tolist() == [0, 1, 2]
