"""Loops of other libraries, which make loaders of their own out of ours."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, default_collate

from forebay import fn, pipeline_def
from forebay.errors import OperatorError
from forebay.torch import proxy
from forebay.torch.proxy import Server
from proxies import Numbers, Stream, as_list, check, row, twice

ALL = list(range(23))

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    # Lightning's own use of torch, and its advice on loaders that are as small as these.
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore:The '[a-z_]*dataloader' does not have many workers"),
]


@pytest.fixture
def server():
    with Server(twice()) as made:
        yield made


def load(server, dataset=Numbers, size=23, **options):
    return proxy.DataLoader(server, dataset(server.proxy, size), **{"batch_size": 4, **options})


def rows(batch) -> list[int]:
    """The labels of a batch whose data is a tensor and belongs to them."""
    assert type(batch[0]) is torch.Tensor
    return check(batch)


def all_rows(batches) -> list[int]:
    return [label for batch in batches for label in rows(batch)]


class Model(torch.nn.Module):
    """Takes tensors and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, data):
        assert type(data) is torch.Tensor
        return self.layer(data.float() / 50)


# ── Accelerate ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def accelerator():
    """Makes accelerators, and ends the state that they share."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, GradientState

    yield lambda **options: Accelerator(cpu=True, **options)
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("dataset", [Numbers, Stream])
@pytest.mark.parametrize("placing", [True, False])
def test_accelerate_trains_on_the_right_rows(server, accelerator, placing, dataset, workers):
    made = accelerator(device_placement=placing)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = load(server, dataset, num_workers=workers, shuffle=dataset is Numbers or None)
    model, optimizer, prepared = made.prepare(model, optimizer, loader)
    before = model.layer.weight.clone()
    for _ in range(3):
        seen = []
        for batch in prepared:
            seen += rows(batch)
            optimizer.zero_grad()
            made.backward(model(batch[0]).mean())
            optimizer.step()
        assert sorted(seen) == ALL
    assert not torch.equal(model.layer.weight, before)


@dataclasses.dataclass
class Record:
    data: Any
    labels: Any


def as_record(samples):
    return Record(*default_collate(samples))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("placing", [True, False])
def test_accelerate_finds_data_in_batches_of_any_form(server, accelerator, placing, workers):
    made = accelerator(device_placement=placing)
    prepared = made.prepare(load(server, num_workers=workers, collate_fn=as_record))
    assert all_rows((batch.data, batch.labels) for batch in prepared) == ALL
    prepared = made.prepare(load(server, num_workers=workers, collate_fn=as_list))
    samples = [sample for batch in prepared for sample in batch]
    assert all_rows((data[None], torch.tensor([label])) for data, label in samples) == ALL


def test_accelerate_divides_the_batches_among_processes(server):
    from accelerate.data_loader import prepare_data_loader

    loader = load(server, num_workers=1)
    seen = [
        [
            rows(batch)
            for batch in prepare_data_loader(
                loader, num_processes=2, process_index=index, even_batches=False
            )
        ]
        for index in range(2)
    ]
    assert seen == [
        [[0, 1, 2, 3], [8, 9, 10, 11], [16, 17, 18, 19]],
        [[4, 5, 6, 7], [12, 13, 14, 15], [20, 21, 22]],
    ]


def test_accelerate_skips_the_first_batches_of_a_resumed_epoch(server, accelerator):
    from accelerate import skip_first_batches

    prepared = accelerator().prepare(load(server, num_workers=2))
    assert all_rows(skip_first_batches(prepared, 2)) == ALL[8:]
    assert all_rows(skip_first_batches(load(server), 2)) == ALL[8:]


# ── any library that makes torch's loader from ours ──────────────────────────────────────────────


def rebuilt(loader):
    """What such libraries do."""
    return DataLoader(
        loader.dataset,
        batch_sampler=loader.batch_sampler,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        multiprocessing_context=loader.multiprocessing_context,
    )


class Short(Numbers):
    """Sample 9 has not the three numbers that `three` wants."""

    def __getitem__(self, index: int) -> Any:
        return self.proxy(row(index)[: 2 if index == 9 else 3]), index


@pipeline_def(batch_size=4, num_threads=2)
def three():
    return fn.reshape(fn.external_source(name="x"), shape=[3])


def labels_of(batch) -> list[int]:
    data, labels = batch
    assert type(data) is torch.Tensor
    np.testing.assert_array_equal(data[:, 0], labels)
    return labels.tolist()


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_an_error_comes_in_its_batchs_turn_and_the_loader_goes_on(workers):
    with Server(three()) as server:
        batches = iter(rebuilt(load(server, Short, num_workers=workers)))
        seen, errors = [], []
        for _ in range(6):
            try:
                seen.append(labels_of(next(batches)))
            except OperatorError as error:
                seen.append(None)
                errors.append((error.operator, error.sample))
        assert next(batches, None) is None
        assert [len(labels or []) for labels in seen] == [4, 4, 0, 4, 4, 3]
        assert errors == [("reshape", 1)]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:1 samples failed and were skipped")
def test_a_skipped_sample_takes_its_label_along(workers):
    with Server(three(), on_error="skip") as server:
        seen = [labels_of(batch) for batch in rebuilt(load(server, Short, num_workers=workers))]
        assert [i for labels in seen for i in labels] == [i for i in ALL if i != 9]


def test_the_processes_of_a_distributed_sampler_share_every_epoch(server):
    for epoch in range(3):
        seen = []
        for rank in range(2):
            sampler = DistributedSampler(range(23), num_replicas=2, rank=rank, seed=7)
            sampler.set_epoch(epoch)
            seen.append(all_rows(load(server, sampler=sampler, num_workers=1)))
            assert seen[rank] == list(sampler)
        assert sorted(set(seen[0] + seen[1])) == ALL
        assert len(seen[0]) == len(seen[1]) == 12


@pytest.mark.slow
def test_spawned_workers_bring_data_too(server):
    loader = load(server, num_workers=1, multiprocessing_context="spawn")
    assert all_rows(rebuilt(loader)) == ALL


def test_the_collate_function_of_a_loader_made_from_ours_is_not_wrapped_twice(server):
    first = load(server, collate_fn=as_list)
    with Server(twice()) as other:
        second = load(other, collate_fn=first.collate_fn)
        assert second.collate_fn.collate is as_list
        (data, label), *_ = next(iter(rebuilt(second)))
        assert data.tolist() == [2 * label + 1] * 3


# ── Lightning ────────────────────────────────────────────────────────────────────────────────────


def noting(**loaders):
    """A module of Lightning's that notes what its steps get. `loaders`: what its hooks make."""
    from lightning.pytorch import LightningModule

    class Noting(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model()
            self.noted: list[tuple[str, int, list[int]]] = []

        def note(self, step, batch):
            self.noted.append((step, self.current_epoch, rows(batch)))
            return self.model(batch[0]).mean()

        def training_step(self, batch):
            return self.note("train", batch)

        def validation_step(self, batch):
            self.note("sanity" if self.trainer.sanity_checking else "validate", batch)

        def predict_step(self, batch):
            return self.note("predict", batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

        def rows_of(self, step, epoch=0):
            noted = [labels for name, at, labels in self.noted if (name, at) == (step, epoch)]
            return [label for labels in noted for label in labels]

    for name, make in loaders.items():
        setattr(Noting, name, lambda self, make=make: make())
    return Noting()


def trainer(**options):
    from lightning.pytorch import Trainer

    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    return Trainer(accelerator="cpu", **dict.fromkeys(quiet, False), **options)


@pytest.mark.slow
@pytest.mark.parametrize("hooks", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_lightning_fits_with_sanity_check_and_validation(server, workers, hooks):
    def training():
        return load(server, num_workers=workers, shuffle=True, persistent_workers=workers > 0)

    def validation():
        return load(server, size=10, num_workers=workers)

    if hooks:
        module = noting(train_dataloader=training, val_dataloader=validation)
        trainer(max_epochs=3, num_sanity_val_steps=2).fit(module)
    else:
        module = noting()
        trainer(max_epochs=3, num_sanity_val_steps=2).fit(module, training(), validation())
    assert module.rows_of("sanity") == ALL[:8]
    for epoch in range(3):
        assert sorted(module.rows_of("train", epoch)) == ALL
        assert module.rows_of("validate", epoch) == ALL[:10]
    assert len({tuple(module.rows_of("train", epoch)) for epoch in range(3)}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_lightning_rebuilds_the_loader_to_predict(server, workers):
    module = noting()
    predicted = trainer().predict(module, load(server, num_workers=workers))
    assert module.rows_of("predict") == ALL
    assert len(predicted) == 6
