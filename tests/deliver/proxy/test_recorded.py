"""Operations on references: what was recorded is what the same operations do to the tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import default_collate
from torchvision.transforms import v2

from forebay.deliver.proxy.recorded import Listed, Mapped, Recorded
from forebay.deliver.proxy.reference import BatchRef, BrokenRef, RowRef, SampleRef
from forebay.errors import ProxyError
from forebay.torch.proxy import DataLoader, Server
from proxies import Numbers, twice


@pytest.fixture
def server():
    with Server(twice()) as running:
        yield running


def row(index):
    return np.full((2, 3), index, np.float32) + np.arange(3, dtype=np.float32)


def made(index):
    """What `twice` makes of a row, 2 x + 1, by numpy."""
    return torch.from_numpy(row(index) * 2 + 1)


def shifted(tensor, by):
    return tensor + by


OPERATIONS = {
    "divide": lambda x: x / 255,
    "reflected": lambda x: 1 - x,
    "flip": lambda x: x.flip(-1),
    "clamp": lambda x: torch.clamp(x, 0, 4),
    "index": lambda x: x[0, 1:],
    "chain": lambda x: (-x).abs().sqrt() * 3,
    "with a tensor": lambda x: x + torch.tensor([1.0, 2.0, 3.0]),
    "with itself": lambda x: torch.stack([x, x * 2]).sum(0),
    "compare": lambda x: x > 3,
    "equal": lambda x: x == 3,
    "unequal": lambda x: 3 != x,  # noqa: SIM300 - reflected on purpose
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_on_samples_give_what_they_give_on_tensors(server, name):
    operation = OPERATIONS[name]
    refs = [operation(server.proxy(row(i))) for i in range(5)]
    got = server.produce_data(default_collate(refs))
    assert torch.equal(got, torch.stack([operation(made(i)) for i in range(5)]))


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_on_a_batch_give_what_they_give_on_its_tensor(server, name):
    batch = default_collate([server.proxy(row(i)) for i in range(5)])
    operation = OPERATIONS[name]
    got = server.produce_data(operation(batch))
    assert torch.equal(got, operation(torch.stack([made(i) for i in range(5)])))


def test_map_calls_a_function_with_its_arguments(server):
    got = server.produce_data([server.proxy(row(i)).map(shifted, by=i) for i in range(3)])
    for i, tensor in enumerate(got):
        assert torch.equal(tensor, made(i) + i)


def test_rows_that_record_different_things_are_each_done_their_own_way(server):
    refs = [server.proxy(row(0)) + 1, server.proxy(row(1)) * 2, server.proxy(row(2))]
    got = server.produce_data(default_collate(refs))
    expected = [made(0) + 1, made(1) * 2, made(2)]
    assert torch.equal(got, torch.stack(expected))


def test_the_same_operation_with_another_number_a_row_uses_each_rows_own(server):
    refs = [server.proxy(row(i)) + i for i in range(4)]
    got = server.produce_data(default_collate(refs))
    assert torch.equal(got, torch.stack([made(i) + i for i in range(4)]))


class Recording(Numbers):
    def __getitem__(self, index):
        return torch.clamp(self.proxy(row(index)) / 2, 0, 9).map(shifted, by=1), index


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("own", [True, False])
def test_what_workers_record_is_done_in_the_training_process(server, workers, own):
    dataset = Recording(server.proxy, 11)
    if own:
        loader = DataLoader(server, dataset, batch_size=4, num_workers=workers)
    else:
        loader = TorchLoader(dataset, batch_size=4, num_workers=workers)
    seen = 0
    for data, labels in map(server.produce_data, loader):
        expected = [torch.clamp(made(int(i)) / 2, 0, 9) + 1 for i in labels]
        assert torch.equal(data, torch.stack(expected))
        seen += len(labels)
    assert seen == 11


def test_a_loop_that_forgets_produce_data_computes_with_the_right_tensors(server):
    loader = TorchLoader(Numbers(server.proxy, 8), batch_size=4, num_workers=1)
    (ref, _), *_ = loader
    moved = ref.to("cpu")
    assert isinstance(moved, torch.Tensor)
    assert torch.equal(moved, server.produce_data(ref))


QUESTIONS = {
    "shape": lambda x: x.shape,
    "dtype": lambda x: x.dtype,
    "device": lambda x: x.device,
    "ndim": lambda x: x.ndim,
    "layout": lambda x: x.layout,
    "is_cuda": lambda x: x.is_cuda,
    "requires_grad": lambda x: x.requires_grad,
    "size()": lambda x: x.size(),
    "size(0)": lambda x: x.size(0),
    "dim()": lambda x: x.dim(),
    "len": len,
    "in": lambda x: 3 in x,
    "iteration": lambda x: [row.tolist() for row in x],
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy().tolist(),
    "asarray": lambda x: np.asarray(x).tolist(),
    "asarray of a type": lambda x: np.asarray(x, np.float64).dtype,
}
ONE_NUMBER = {"float": float, "int": int, "bool": bool, "item": lambda x: x.item()}


@pytest.mark.parametrize("name", [*QUESTIONS, *ONE_NUMBER])
def test_what_needs_the_value_now_is_refused_with_what_to_do(server, name):
    ref = server.proxy(row(0))
    with pytest.raises(ProxyError, match="has no value here") as caught:
        {**QUESTIONS, **ONE_NUMBER}[name](ref)
    for text in ("ref.map", "server.produce_data(batch)", "proxy.DataLoader(server"):
        assert text in str(caught.value)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_about_a_batch_in_the_loop_are_answered(server, name, workers):
    loader = TorchLoader(Numbers(server.proxy, 8), batch_size=4, num_workers=workers)
    (ref, labels), *_ = loader
    expected = labels[:, None].expand(-1, 3) * 2 + 1
    assert QUESTIONS[name](ref) == QUESTIONS[name](expected.to(torch.int32))


@pytest.mark.parametrize("name", ONE_NUMBER)
def test_a_batch_of_one_number_is_that_number(server, name):
    got = ONE_NUMBER[name](default_collate([server.proxy(3)]))
    assert got == ONE_NUMBER[name](torch.tensor([7]))
    assert type(got) is type(ONE_NUMBER[name](torch.tensor([7])))


def test_what_was_recorded_on_a_batch_answers_too(server):
    loader = TorchLoader(Recording(server.proxy, 8), batch_size=4, num_workers=1)
    (ref, _), *_ = loader
    assert (ref.shape, ref.dtype, len(ref)) == ((4, 2, 3), torch.float32, 4)


def test_items_of_a_batch_can_be_set(server):
    ref = default_collate([server.proxy(row(i)) for i in range(2)])
    ref[0] = 9
    expected = torch.stack([torch.full((2, 3), 9.0), made(1)])
    assert torch.equal(server.produce_data(ref), expected)
    with pytest.raises(ProxyError, match="item assignment needs the value"):
        server.proxy(row(0))[0] = 9


def test_nothing_of_a_reference_hides_what_a_tensor_has():
    kinds = (SampleRef, RowRef, BrokenRef, BatchRef, Recorded, Mapped, Listed)
    own = {name for kind in kinds for name in dir(kind) if not name.startswith("_")}
    assert own & set(dir(torch.Tensor)) == {"to"}  # which does the same


def test_references_have_no_attributes_but_those_of_tensors(server):
    ref = server.proxy(row(0))
    assert not hasattr(ref, "no_method_of_tensors")
    assert "SampleRef" in repr(ref)
    assert "Recorded" in repr(ref + 1)


@pytest.mark.parametrize("form", ["sample", "recorded", "batch", "in a tuple"])
def test_transforms_of_torchvision_v2_are_no_transforms_that_do_nothing(server, form):
    sample = server.proxy(row(1))
    value = {
        "sample": sample,
        "recorded": sample / 2,
        "batch": default_collate([sample, server.proxy(row(2))]),
        "in a tuple": (sample, 3),
    }[form]
    with pytest.raises(ProxyError, match=r"put the transform into the pipeline, or call ref\.map"):
        v2.Compose([v2.RandomHorizontalFlip(1.0), v2.ToDtype(torch.float64)])(value)


def test_transforms_of_torchvision_v2_can_be_mapped(server):
    flip = v2.RandomHorizontalFlip(1.0)
    batch = default_collate([server.proxy(row(i)).map(flip) for i in range(3)])
    assert torch.equal(server.produce_data(batch), torch.stack([flip(made(i)) for i in range(3)]))
