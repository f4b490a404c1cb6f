"""DALI as the oracle: the same operator call through DALI and through forebay, compared.

A `Case` is one call. `check_dali` runs it in both; `check_reference` compares forebay's kernel for
the CPU with the operator's defining body. Tests of operators are mostly lists of cases.
"""

from __future__ import annotations

import enum
import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forebay.testing import run_operator
from naming import stable


@dataclass(frozen=True)
class Tolerance:
    """How far results may differ: `most` of the elements by `usual`, all of them by `worst`.

    Differences are absolute, or relative to the expected value where `relative` allows more.
    """

    usual: float = 0.0
    worst: float = 0.0
    most: float = 1.0
    relative: float = 0.0

    def check(self, got: np.ndarray, expected: np.ndarray, what: str) -> None:
        assert got.dtype == expected.dtype, f"{what}: {got.dtype} instead of {expected.dtype}"
        assert got.shape == expected.shape, f"{what}: {got.shape} instead of {expected.shape}"
        if self == EXACT:
            np.testing.assert_array_equal(got, expected, err_msg=what)
            return
        with np.errstate(invalid="ignore"):
            a, b = got.astype(np.float64), expected.astype(np.float64)
            off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        allowed = self.relative * np.where(np.isfinite(b), np.abs(b), 0.0)
        far = off > self.usual + allowed
        assert far.mean() <= 1 - self.most if far.size else True, (
            f"{what}: {far.mean():.2%} of the elements differ by more than {self.usual}; "
            f"worst {off.max()} at {np.unravel_index(off.argmax(), off.shape)}"
        )
        assert (off <= self.worst + allowed).all(), f"{what}: worst difference {off.max()}"


EXACT = Tolerance()
ARITHMETIC = Tolerance(usual=1e-6, worst=1e-6, relative=1e-5)
RESAMPLED = Tolerance(usual=1, worst=2, most=0.99)
"""Resampling and colour on uint8: within 1 level on 99 % of the elements, 2 at most."""


@dataclass(frozen=True)
class Case:
    """One operator call. `inputs` has, for each input, a list of arrays, one a sample."""

    operator: str
    inputs: list[list[np.ndarray]]
    arguments: dict[str, Any] = field(default_factory=dict)
    per_sample: dict[str, list[Any]] = field(default_factory=dict)
    layout: str = ""
    tolerance: Tolerance = EXACT
    batch_size: int | None = None

    def __str__(self) -> str:
        shapes = ",".join(
            f"{i[0].dtype}{list(i[0].shape)}".replace(" ", "") for i in self.inputs if i
        )
        shown = {**self.arguments, **dict.fromkeys(self.per_sample, "…")}
        text = ",".join(f"{k}={getattr(v, 'name', v)}" for k, v in shown.items())
        return stable(f"{self.operator}({shapes}{self.layout};{text})")[:120]

    def run(self, *, reference: bool = False) -> list[list[Any]]:
        """Forebay's result: for each output a list of Samples."""
        result = run_operator(
            self.operator,
            *self.inputs,
            layout=self.layout,
            per_sample=self.per_sample,
            reference=reference,
            batch_size=self.batch_size,
            given=self.arguments,
        )
        return list(result) if isinstance(result, tuple) else [result]

    def check_reference(self) -> None:
        """The CPU kernel gives what the defining body gives."""
        for got, expected in zip(self.run(), self.run(reference=True), strict=True):
            for i, (a, b) in enumerate(zip(got, expected, strict=True)):
                assert a.layout == b.layout, f"kernel: layout {a.layout!r}, body: {b.layout!r}"
                self.tolerance.check(a.tensor.numpy(), b.tensor.numpy(), f"{self}, sample {i}")

    def check_dali(self) -> None:
        """The kernel gives what DALI gives, and so does the defining body."""
        expected = run_dali(self)
        for reference in (False, True):
            got = self.run(reference=reference)
            assert len(got) == len(expected)
            for samples, (arrays, layout) in zip(got, expected, strict=True):
                for i, (sample, array) in enumerate(zip(samples, arrays, strict=True)):
                    what = f"{self}, {'body' if reference else 'kernel'}, sample {i}"
                    assert sample.layout == layout, f"{what}: {sample.layout!r}, DALI {layout!r}"
                    self.tolerance.check(sample.tensor.numpy(), array, what)


def run_dali(case: Case) -> list[tuple[list[np.ndarray], str]]:
    """DALI's result: for each output the arrays of the samples, and the layout.

    Raises what DALI raises.
    """
    from nvidia import dali

    columns = [list(column) for column in case.inputs]
    values = {k: [_argument_array(v) for v in column] for k, column in case.per_sample.items()}
    size = case.batch_size or len((columns + list(values.values()))[0])
    pipe = dali.Pipeline(batch_size=size, num_threads=1, device_id=None, seed=1)
    with pipe, deprecations_hidden():
        inputs = [dali.fn.external_source(_feed(c), layout=_layout(case, c)) for c in columns]
        given = {name: dali.fn.external_source(_feed(c)) for name, c in values.items()}
        given.update({k: to_dali(v) for k, v in case.arguments.items()})
        function = functools.reduce(getattr, case.operator.split("."), dali.fn)
        result = function(*inputs, **given)
        pipe.set_outputs(*(result if isinstance(result, list | tuple) else (result,)))
    return [
        ([np.array(output.at(i)) for i in range(len(output))], output.layout())
        for output in pipe.run()
    ]


@contextmanager
def deprecations_hidden() -> Iterator[None]:
    """While a graph is written: DALI prints its deprecations whatever the filters say."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for warning in caught:
        if warning.category is not DeprecationWarning or "nvidia" not in warning.filename:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )


def _layout(case: Case, column: list[np.ndarray]) -> str | None:
    """The case's layout, for the inputs that have as many axes."""
    return case.layout if case.layout and np.ndim(column[0]) == len(case.layout) else None


def _feed(column: list[np.ndarray]) -> Callable[[], list[np.ndarray]]:
    return lambda: column


def _argument_array(value: Any) -> np.ndarray:
    array = np.asarray(value)
    if isinstance(value, np.ndarray | np.generic):
        return array
    return array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))


def to_dali(value: Any) -> Any:
    """A value with forebay's enums replaced by DALI's of the same number."""
    from nvidia.dali import types

    if isinstance(value, enum.IntEnum):
        return getattr(types, type(value).__name__)(int(value))
    if isinstance(value, list | tuple):
        return type(value)(to_dali(v) for v in value)
    return value
