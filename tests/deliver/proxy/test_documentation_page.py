"""The examples of DALI's documentation page of the proxy, with other import lines, on the CPU."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torch.utils.data.dataloader import default_collate
from torchvision import datasets

from forebay import fn, pipeline_def, types
from forebay.torch import proxy as dali_proxy

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

COLORS = {"blue": (20, 40, 220), "green": (30, 200, 50), "red": (210, 30, 40)}
MEAN = np.array([0.485 * 255, 0.456 * 255, 0.406 * 255])
STD = np.array([0.229 * 255, 0.224 * 255, 0.225 * 255])
EACH = 5


@pytest.fixture(scope="module")
def jpeg(tmp_path_factory):
    """A folder for each class, with images of one colour and many sizes."""
    root = tmp_path_factory.mktemp("jpeg")
    for name, color in COLORS.items():
        (root / name).mkdir()
        for i in range(EACH):
            Image.new("RGB", (300 + 20 * i, 200 + 30 * i), color).save(root / name / f"{i}.jpg")
    return root


@pytest.fixture(scope="module")
def smooth(tmp_path_factory):
    """Images of smooth noise, without loss, all smaller than 224 × 224."""
    root = tmp_path_factory.mktemp("smooth")
    rng = np.random.default_rng(3)
    for name in ("a", "b"):
        (root / name).mkdir()
        for i in range(4):
            small = rng.integers(0, 256, (5, 6, 3), dtype=np.uint8)
            image = cv2.resize(small, (100 + 10 * i, 90), interpolation=cv2.INTER_CUBIC)
            Image.fromarray(image).save(root / name / f"{i}.png")
    return root


def assert_colors(data, target):
    """Normalised images of the classes' colours, whatever was cropped or mirrored."""
    assert data.shape == (len(target), 3, 224, 224)
    assert data.dtype == torch.float32
    wanted = np.array(list(COLORS.values()))[target.numpy()]
    seen = data.numpy() * STD[:, None, None] + MEAN[:, None, None]
    assert np.abs(seen - wanted[:, :, None, None]).max() < 3.5


@pipeline_def
def rn50_train_pipe():
    rng = fn.random.coin_flip(probability=0.5)
    filepaths = fn.external_source(name="images", no_copy=True)
    jpegs = fn.io.file.read(filepaths)
    images = fn.decoders.image_random_crop(
        jpegs,
        device="cpu",
        output_type=types.RGB,
        random_aspect_ratio=[0.75, 4.0 / 3.0],
        random_area=[0.08, 1.0],
    )
    images = fn.resize(
        images,
        size=[224, 224],
        interp_type=types.INTERP_LINEAR,
        antialias=False,
    )
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        crop=(224, 224),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        mirror=rng,
    )


def read_filepath(path):
    return np.frombuffer(path.encode(), dtype=np.int8)


def rn50(nworkers):
    return rn50_train_pipe(
        batch_size=16, num_threads=3, device_id=None, prefetch_queue_depth=2 * max(1, nworkers)
    )


@pytest.mark.parametrize("nworkers", [0, 1, 4])
def test_example_1_full_integration_by_the_proxys_loader(jpeg, nworkers):
    with dali_proxy.DALIServer(rn50(nworkers)) as dali_server:
        dataset = torchvision.datasets.ImageFolder(
            jpeg, transform=dali_server.proxy, loader=read_filepath
        )
        loader = dali_proxy.DataLoader(
            dali_server,
            dataset,
            batch_size=4,
            num_workers=nworkers,
            drop_last=True,
        )
        targets = []
        for data, target in loader:
            assert_colors(data, target)
            targets += target.tolist()
    assert targets == [label for _, label in dataset.samples][:12]


@pipeline_def
def my_pipe():
    a = fn.external_source(name="a", no_copy=True)
    b = fn.external_source(name="b", no_copy=True)
    return a + b, a - b


def test_example_2_manual_execution():
    batch_size = 8
    with dali_proxy.DALIServer(
        my_pipe(device="cpu", batch_size=batch_size, num_threads=3, device_id=None)
    ) as dali_server:
        outs = []
        for _ in range(batch_size):
            a = np.array(np.random.rand(3, 3), dtype=np.float32)
            b = np.array(np.random.rand(3, 3), dtype=np.float32)
            out0, out1 = dali_server.proxy(a=a, b=b)
            outs.append((a, b, out0, out1))

        given = outs
        outs = torch.utils.data.dataloader.default_collate(outs)

        a, b, a_plus_b, a_minus_b = dali_server.produce_data(outs)

    np.testing.assert_array_equal(a, np.stack([sample[0] for sample in given]))
    np.testing.assert_array_equal(a_plus_b.numpy(), a.numpy() + b.numpy())
    np.testing.assert_array_equal(a_minus_b.numpy(), a.numpy() - b.numpy())


@pytest.mark.parametrize("nworkers", [0, 1, 3])
def test_example_3_the_original_loader_and_produce_data(jpeg, nworkers):
    with dali_proxy.DALIServer(rn50(nworkers)) as dali_server:
        dataset = torchvision.datasets.ImageFolder(
            jpeg, transform=dali_server.proxy, loader=read_filepath
        )
        loader = torch.utils.data.DataLoader(
            dataset,
            batch_size=4,
            num_workers=nworkers,
            drop_last=True,
        )
        count = 0
        for data, target in loader:
            assert isinstance(data, dali_proxy.DALIOutputBatchRef)
            assert_colors(dali_server.produce_data(data), target)
            count += 1
    assert count == 3


@pipeline_def
def my_dali_pipeline():
    images = fn.external_source(name="images", no_copy=True)
    images = fn.resize(images, size=[224, 224])
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
    )


@pytest.mark.parametrize("nworkers", [0, 2])
def test_in_a_nutshell(smooth, nworkers):
    with dali_proxy.DALIServer(
        my_dali_pipeline(batch_size=64, num_threads=3, device_id=None)
    ) as dali_server:
        dataset = datasets.ImageFolder(smooth, transform=dali_server.proxy)
        loader = dali_proxy.DataLoader(
            dali_server, dataset, batch_size=4, num_workers=nworkers, drop_last=True
        )
        position = 0
        for data, target in loader:
            assert data.shape == (4, 3, 224, 224)
            for image, label in zip(data, target.tolist(), strict=True):
                path, wanted = dataset.samples[position]
                assert label == wanted
                resized = cv2.resize(np.array(Image.open(path)), (224, 224))
                seen = image.numpy().transpose(1, 2, 0) * STD + MEAN
                assert np.abs(seen - resized).max() < 2.01
                position += 1
        assert position == 8


@pipeline_def
def example_pipeline():
    images = fn.external_source(name="images", no_copy=True)
    images = fn.io.file.read(images)
    images = fn.decoders.image(images, device="cpu", output_type=types.RGB)
    return fn.resize(images, size=[224, 224])


def test_future_samples(jpeg):
    images = [read_filepath(str(jpeg / name / "0.jpg")) for name in COLORS]
    pipeline = example_pipeline(batch_size=32, num_threads=2, device_id=None)
    with dali_proxy.DALIServer(pipeline) as dali_server:
        future_samples = [dali_server.proxy(image) for image in images]
        samples = dali_server.produce_data(future_samples)
    for sample, color in zip(samples, COLORS.values(), strict=True):
        assert sample.shape == (224, 224, 3)
        assert np.abs(sample.numpy().astype(int) - color).max() <= 3


@pipeline_def
def example_pipeline2(device):
    a = fn.external_source(name="a", no_copy=True)
    b = fn.external_source(name="b", no_copy=True)
    return a + b, b - a


def pipeline2():
    return example_pipeline2(device="cpu", batch_size=16, num_threads=2, device_id=None)


def test_two_inputs_by_position_and_by_name():
    with dali_proxy.DALIServer(pipeline2()) as dali_server:
        a = np.array([1, 2, 3])
        b = np.array([10, 20, 30])
        for a_plus_b, b_minus_a in (dali_server.proxy(a, b), dali_server.proxy(b=b, a=a)):
            added, subtracted = dali_server.produce_data((a_plus_b, b_minus_a))
            assert added.tolist() == [11, 22, 33]
            assert subtracted.tolist() == [9, 18, 27]


@pytest.mark.parametrize("explicit", [True, False])
def test_start_and_stop(smooth, explicit):
    dali_server = dali_proxy.DALIServer(
        my_dali_pipeline(batch_size=64, num_threads=3, device_id=None)
    )
    dataset = datasets.ImageFolder(smooth, transform=dali_server.proxy)
    loader = dali_proxy.DataLoader(
        dali_server, dataset, batch_size=4, num_workers=2, drop_last=True
    )
    if explicit:
        dali_server.start_thread()
    seen = [target.tolist() for _, target in loader]
    dali_server.stop_thread()
    assert seen == [[0, 0, 0, 0], [1, 1, 1, 1]]


class CustomDataset(torch.utils.data.Dataset):
    def __init__(self, transform_fn, data):
        self.data = data
        self.transform_fn = transform_fn

    def __len__(self):
        return len(self.data)

    def __getitem__(self, idx):
        filename, label = self.data[idx]
        return self.transform_fn(filename), label


@pytest.mark.parametrize("nworkers", [0, 4])
def test_a_custom_dataset_leaves_the_label_alone(jpeg, nworkers):
    images = [(str(jpeg / name / "1.jpg"), f"label {name}") for name in COLORS]
    pipeline = example_pipeline(batch_size=32, num_threads=2, device_id=None)
    with dali_proxy.DALIServer(pipeline) as dali_server:
        dataset = CustomDataset(dali_server.proxy, data=images)
        loader = dali_proxy.DataLoader(dali_server, dataset, batch_size=32, num_workers=nworkers)
        (batch,) = loader
        loader = torch.utils.data.DataLoader(dataset, batch_size=32, num_workers=nworkers)
        (custom,) = (dali_server.produce_data(data) for data in loader)
    for data, labels in (batch, custom):
        assert list(labels) == [label for _, label in images]
        assert data.shape == (3, 224, 224, 3)
        assert np.abs(data[:, 100, 100].numpy().astype(int) - list(COLORS.values())).max() <= 3


def test_data_collation_and_execution():
    with dali_proxy.DALIServer(pipeline2()) as dali_server:
        outs = []
        given = []
        for _ in range(10):
            a = np.array(np.random.rand(3, 3), dtype=np.float32)
            b = np.array(np.random.rand(3, 3), dtype=np.float32)
            a_plus_b, b_minus_a = dali_server.proxy(a, b)
            outs.append((a_plus_b, b_minus_a))
            given.append((a, b))

        outs = default_collate(outs)

        outs = dali_server.produce_data(outs)

    np.testing.assert_array_equal(outs[0].numpy(), np.stack([a + b for a, b in given]))
    np.testing.assert_array_equal(outs[1].numpy(), np.stack([b - a for a, b in given]))
