"""Operations on references: what was recorded is what the same operations do to the tensors."""

from __future__ import annotations

import operator
import pickle
import re
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import default_collate
from torchvision.transforms import v2

from forebay.deliver.proxy.recorded import BrokenRef, Listed, Mapped, Recorded
from forebay.deliver.proxy.reference import BatchRef, RowRef, SampleRef
from forebay.errors import ProxyError
from forebay.torch.proxy import DataLoader, Server
from proxies import Numbers, as_list, failure, in_thread, twice


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


def rounded(x):
    """`round`, which tensors lack."""
    return torch.round(x, decimals=1) if isinstance(x, torch.Tensor) else round(x, 1)


def pair_sum(a, b):
    """Quotient and remainder, in one number. Tensors lack `divmod`."""
    tensors = isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor)
    quotient, remainder = (a // b, a % b) if tensors else divmod(a, b)
    return quotient * 100 + remainder


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
    "round": lambda x: x.round() if isinstance(x, torch.Tensor) else round(x),
    "round to a digit": lambda x: rounded(x / 7),
    "divmod": lambda x: pair_sum(x, 3),
    "reflected divmod": lambda x: pair_sum(7, x),
    "shift": lambda x: (x.int() << 2) + (2 << x.int()) + (x.int() >> 1) + (64 >> x.int()),
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


class Mixed(Numbers):
    """Some samples are tensors, one is a reference, others are recorded."""

    def __init__(self, proxy, tensors):
        super().__init__(proxy, 4)
        self.tensors = tensors

    def __getitem__(self, index):
        if index in self.tensors:
            return made(index)
        ref = self.proxy(row(index))
        return ref if index == 2 else ref / 1


@pytest.mark.parametrize("tensors", [(1,), (0, 1), (3,)])
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("own", [True, False])
def test_a_batch_of_references_and_tensors_is_right_or_refused(server, workers, own, tensors):
    loader = partial(DataLoader, server) if own else TorchLoader
    batches = loader(Mixed(server.proxy, tensors), batch_size=4, num_workers=workers)
    if 0 in tensors and not workers:  # then torch stacks them, and so can we
        (batch,) = map(server.produce_data, batches)
        assert torch.equal(batch, torch.stack([made(i) for i in range(4)]))
        return
    assert re.search("mixes (references and )?tensors", str(failure(lambda: list(batches))))


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


class Unsendable:
    def __reduce__(self):
        raise OSError("it stays here")


def of_a_parameter():
    """A tensor that torch does not send: it has a history."""
    return torch.ones(1, requires_grad=True) * 2


UNSENDABLE = {
    "lambda": lambda ref: ref.map(lambda x: x),
    "lambda and more": lambda ref: ref.map(lambda x: x).clamp(0, 9) + 1,
    "object": lambda ref: ref.map(shifted, Unsendable()),
    "nested": lambda ref: ref.map(shifted, by={"a": [Unsendable()]}),
    "tensor": lambda ref: ref + of_a_parameter(),
    "array": lambda ref: ref.map(shifted, np.array([Unsendable()])),
}


class Unsent(Numbers):
    def __init__(self, proxy, name):
        super().__init__(proxy, 4)
        self.name = name

    def __getitem__(self, index):
        return UNSENDABLE[self.name](super().__getitem__(index)[0])


@pytest.mark.parametrize("collate", [None, as_list])
@pytest.mark.parametrize("name", UNSENDABLE)
def test_what_cannot_be_sent_is_an_error_in_the_loop(server, name, collate):
    dataset = Unsent(server.proxy, name)
    loader = DataLoader(server, dataset, batch_size=2, num_workers=1, collate_fn=collate)
    text = str(in_thread(lambda: failure(lambda: list(loader))))
    assert "can't be sent from the worker" in text
    if "lambda" in name:
        assert "<lambda>" in text
        assert "one that a module has" in text
    else:
        assert "arguments of" in text
    loader = TorchLoader(Numbers(server.proxy, 4), batch_size=4, num_workers=1)
    assert torch.equal(server.produce_data(next(iter(loader)))[1], torch.arange(4))


def test_recorded_arguments_survive_pickling(server):
    array, tensor = np.full(1, 5), torch.arange(3)
    batch = default_collate([server.proxy(row(i)).map(first_of, array) + tensor for i in range(2)])
    again = pickle.loads(pickle.dumps(batch))
    expected = torch.stack([made(i) + 5 + tensor for i in range(2)])
    assert torch.equal(server.produce_data(again), expected)


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
ONE_NUMBER = {
    "float": float,
    "int": int,
    "index": operator.index,
    "bool": bool,
    "item": lambda x: x.item(),
}


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


def add_to(tensor, ref):
    tensor += ref


IN_PLACE = {
    "items of a tensor": lambda ref, buf: operator.setitem(buf, slice(0, 1), ref),
    "items by a mask": lambda ref, buf: operator.setitem(buf, ref > 1, 0),
    "items of a reference": lambda ref, buf: operator.setitem(ref, 0, 9),
    "copy_": lambda ref, buf: buf[:1].copy_(ref),
    "a tensor's +=": lambda ref, buf: add_to(buf, ref),
    "a tensor's |=": lambda ref, buf: operator.ior(buf.int(), ref),
    "out=": lambda ref, buf: torch.add(ref, 1, out=buf),
    "out= of several": lambda ref, buf: torch.max(ref, 0, out=(buf[0], buf[0].long())),
    "a method": lambda ref, buf: ref.add_(10),
    "a method without another": lambda ref, buf: ref.normal_(),
    "a function": lambda ref, buf: torch.relu_(input=ref),
    "an initialiser": lambda ref, buf: torch.nn.init.zeros_(ref),
    "inplace=True": lambda ref, buf: torch.nn.functional.relu(ref, inplace=True),
    "a module": lambda ref, buf: torch.nn.ReLU(inplace=True)(ref),
}
NAMES = list(IN_PLACE)
OF_REFERENCES = ["items of a reference", *NAMES[NAMES.index("a method") :]]
OF_TENSORS = ["items of a tensor", "items by a mask", "copy_", "a tensor's +=", "out="]


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_changes_a_tensor_in_place_is_refused_with_what_to_do(server, name):
    sample, buf = server.proxy(row(0)), torch.zeros(2, 3)
    for ref in (sample, sample + 1):
        with pytest.raises(ProxyError, match=r"in place can't be recorded.*produce_data"):
            IN_PLACE[name](ref, buf)
    assert not buf.any()


@pytest.mark.parametrize("name", OF_REFERENCES)
def test_what_would_change_the_data_of_a_batch_is_refused(server, name):
    batch = default_collate([server.proxy(row(i)) for i in range(2)])
    with pytest.raises(ProxyError, match="in place can't be recorded"):
        IN_PLACE[name](batch, torch.zeros(2, 2, 3))
    assert torch.equal(server.produce_data(batch), torch.stack([made(0), made(1)]))


@pytest.mark.parametrize("name", OF_TENSORS)
def test_data_that_is_there_can_be_written_into_a_tensor(server, name):
    batch = default_collate([server.proxy(row(0))])
    got, expected = torch.ones(1, 2, 3), torch.ones(1, 2, 3)
    IN_PLACE[name](batch, got)
    IN_PLACE[name](made(0)[None], expected)
    assert torch.equal(got, expected)


def test_the_refusal_names_the_operation_to_use(server):
    for change, instead in [
        (lambda ref: ref.add_(10), r"ref\.add\("),
        (lambda ref: torch.add(ref, 1, out=torch.zeros(1)), "take what add returns"),
        (lambda ref: add_to(torch.zeros(1), ref), r"x = x\.add\("),
        (lambda ref: operator.ior(torch.zeros(1).int(), ref), "x = x"),
        (lambda ref: ref.normal_(), r"ref\.map\(function\)"),
    ]:
        with pytest.raises(ProxyError, match=instead):
            change(server.proxy(row(0)))


def test_an_operator_and_assignment_makes_another_reference(server):
    ref = before = server.proxy(row(0))
    ref += 1
    got = server.produce_data(default_collate([(before, ref)]))
    assert torch.equal(torch.cat(got), torch.stack([made(0), made(0) + 1]))


def add_hundred_in_place(tensor, other=None):
    if other is not None:
        other.add_(100)
    return tensor.add_(100)


@pytest.mark.parametrize("form", ["samples", "batch", "recorded in the batch"])
def test_a_mapped_function_that_changes_its_argument_changes_nothing_else(server, form):
    refs = [server.proxy(row(i)) for i in range(2)]
    expected = torch.stack([made(0), made(1)])
    if form == "samples":
        pair = default_collate([(r, r.map(add_hundred_in_place, other=r[:])) for r in refs])
    else:
        batch = default_collate(refs)
        other = [batch] if form == "batch" else [batch + 0]
        pair = (batch, batch.map(torch.Tensor.add_, 100))
        batch.map(lambda tensor, others: others[0].add_(100), other)
    for _ in range(2):
        data, changed = server.produce_data(pair)
        assert torch.equal(data, expected)
        assert torch.equal(changed, expected + 100)


def first_of(tensor, argument):
    """The tensor plus the one number that is somewhere in the argument."""
    while isinstance(argument, list | tuple | dict | set):
        argument = next(iter(argument.values() if isinstance(argument, dict) else argument))
    return tensor + (argument[0] if isinstance(argument, np.ndarray | bytearray) else argument)


class Held(NamedTuple):
    value: Any


ARGUMENTS = {
    "tensor": (torch.zeros(()), lambda held, i: held.fill_(i)),
    "array": (np.zeros(1, np.float32), lambda held, i: held.fill(i)),
    "bytearray": (bytearray(1), lambda held, i: operator.setitem(held, 0, i)),
    "list": ([0], lambda held, i: operator.setitem(held, 0, i)),
    "dict": ({"a": 0}, lambda held, i: operator.setitem(held, "a", i)),
    "set": ({0}, lambda held, i: (held.clear(), held.add(i))),
    "named tuple": (Held(torch.zeros(())), lambda held, i: held.value.fill_(i)),
    "nested": ({"a": ([np.zeros(1)],)}, lambda held, i: held["a"][0][0].fill(i)),
}


@pytest.mark.parametrize("collated", [True, False])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_taken_as_they_are_when_recorded(server, name, collated):
    held, fill = ARGUMENTS[name]
    refs = []
    for i in range(4):
        fill(held, i)
        refs.append(server.proxy(row(i)).map(first_of, held))
    fill(held, 99)
    got = server.produce_data(default_collate(refs) if collated else refs)
    for i, tensor in enumerate(got):
        assert torch.equal(tensor.float(), made(i) + i)


def test_operators_take_a_tensor_as_it_is_when_recorded(server):
    buf = torch.zeros(3)
    refs = [server.proxy(row(i)) + buf.fill_(i) for i in range(4)]
    got = server.produce_data(default_collate(refs))
    assert torch.equal(got, torch.stack([made(i) + i for i in range(4)]))


def dtype_number(tensor):
    return torch.tensor([torch.int32, torch.float64].index(tensor.dtype))


def test_arguments_of_another_type_in_each_row_are_each_rows_own(server):
    arrays = [np.ones(3, np.int32), np.ones(3, np.float64)]
    refs = [server.proxy(np.zeros(3, np.int32)).map(shifted, torch.from_numpy(a)) for a in arrays]
    batch = default_collate([(ref.map(dtype_number),) for ref in refs])
    assert server.produce_data(batch)[0].tolist() == [0, 1]


@dataclass
class Box:
    content: Any


def add_content(tensor, box):
    return tensor + box.content.sum()


@pytest.mark.parametrize("what", ["array", "reference"])
def test_objects_that_cannot_be_compared_are_each_rows_own(server, what):
    refs = [server.proxy(row(i)) for i in range(3)]
    boxes = [Box(torch.full((2,), float(i)) if what == "array" else refs[i]) for i in range(3)]
    batch = default_collate([r.map(add_content, b) for r, b in zip(refs, boxes, strict=True)])
    added = [2 * i if what == "array" else made(i).sum() for i in range(3)]
    assert torch.equal(
        server.produce_data(batch), torch.stack([made(i) + added[i] for i in range(3)])
    )


def same(tensor, *arguments):
    return tensor, arguments


def test_other_arguments_are_the_same_objects(server):
    arguments = (object(), torch.nn.Linear(1, 1), torch.ones(1, requires_grad=True), (1, "text"))
    _, got = server.produce_data(server.proxy(row(0)).map(same, *arguments))
    assert all(a is b for a, b in zip(got, arguments, strict=True))


def test_what_is_done_at_once_gets_the_arguments_themselves(server):
    batch, seen = default_collate([server.proxy(row(0))]), []
    batch.map(lambda tensor, into: into.append(tensor), seen)
    assert torch.equal(seen[0], made(0)[None])


def test_nothing_of_a_reference_hides_what_a_tensor_has():
    kinds = (SampleRef, RowRef, BrokenRef, BatchRef, Recorded, Mapped, Listed)
    own = {name for kind in kinds for name in dir(kind) if not name.startswith("_")}
    assert own & set(dir(torch.Tensor)) == {"to"}  # which does the same


def test_a_reference_without_a_value_has_not_what_only_data_has(server):
    sample = server.proxy(row(0))
    for ref in (sample, sample + 1):
        assert not any(hasattr(ref, name) for name in ("shape", "dtype", "ndim", "numpy", "item"))
        assert hasattr(ref, "flip")
    assert default_collate([sample]).shape == (1, 2, 3)


def test_references_are_told_apart_in_sets_and_dicts(server):
    sample, other = server.proxy(row(0)), server.proxy(row(1))
    refs = [sample, other, sample + 1, sample + 1, default_collate([sample, other])]
    assert len({*refs, *refs}) == len(refs)
    assert [dict.fromkeys(refs, 3).get(ref) for ref in refs] == [3] * len(refs)
    assert {sample: 1, other: 2}[other] == 2


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
