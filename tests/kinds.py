"""Which kinds of input (element type, number of axes, layout) DALI takes, for every operator.

``python tests/kinds.py [OPERATOR …]`` asks DALI and writes the answers to tests/data/kinds.json. It
does so in processes of their own, because some inputs make DALI crash.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calls import ALL, CALLED, DALIS, enough

from oracle import Case, run_dali

FILE = Path(__file__).parent / "data" / "kinds.json"
TAKEN, REFUSED, CRASHED = "+-x"


@dataclass(frozen=True)
class Kind:
    """One kind of data: its element type, its layout, and a shape that fits."""

    dtype: str
    layout: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}{self.layout}".replace(" ", "")

    def case(self, operator: str) -> Case:
        """The least call of the operator with two equal samples of this kind in every input."""
        count = max(1, ALL[operator].schema.min_inputs)
        array = (np.arange(np.prod(self.shape, dtype=int)) % 3 + 1).astype(self.dtype)
        column = [array.reshape(self.shape)] * 2
        return Case(operator, [column] * count, enough(operator), layout=self.layout)


EXTENTS = {"F": 2, "D": 3, "H": 4, "W": 5, "C": 3, "X": 3}
LAYOUTS = ["W", "HW", "HWC", "CHW", "FHW", "FHWC", "FCHW", "DHWC", "CDHW", "FDHWC", "FCDHW", "HXC"]
DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
DTYPES += ["float16", "float32", "float64"]
PLAIN = (2, 3, 3, 4, 5, 3)


def _kinds() -> list[Kind]:
    found = [Kind("uint8", layout, tuple(EXTENTS[a] for a in layout)) for layout in LAYOUTS]
    found += [Kind("uint8", "", PLAIN[6 - ndim :]) for ndim in range(7)]
    found += [Kind(dtype, "HWC", (4, 5, 3)) for dtype in DTYPES if dtype != "uint8"]
    return found + [Kind(dtype, "", (3,)) for dtype in DTYPES if dtype != "uint8"]


KINDS = _kinds()
OPERATORS = [
    name
    for name in CALLED
    if name in DALIS and ALL[name].schema.max_inputs and name != "python_function"
]
"""Those with inputs that DALI has. It runs Python functions only in pipelines of a special sort."""


def _answers(operator: str) -> str:
    """A letter for each kind."""
    found = ""
    while len(found) < len(KINDS):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            for kind in KINDS[len(found) :]:
                os.write(writing, _answer(kind.case(operator)).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            found += pipe.read()
        if os.waitpid(child, 0)[1]:
            found += CRASHED
    return found


def _answer(case: Case) -> str:
    try:
        run_dali(case)
    except Exception:
        return REFUSED
    return TAKEN


def _record(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    known = json.loads(FILE.read_text())["operators"] if FILE.exists() else {}
    answers = {name: _answers(name) if name in names else known[name] for name in OPERATORS}
    table = {"kinds": [str(kind) for kind in KINDS], "operators": answers}
    FILE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    _record(sys.argv[1:] or OPERATORS)
