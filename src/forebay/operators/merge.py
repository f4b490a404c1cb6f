"""Where the branches of an `if` come together."""

from __future__ import annotations

from forebay.batch import Sample
from forebay.operators._operator import operator


@operator(hidden=True)
def merge(chosen: Sample, then: Sample, otherwise: Sample) -> Sample:
    """The value of the branch that the sample took. The other one has no value.

    Args:
        chosen: the condition, a bool.
        then: the value where it holds.
        otherwise: the value where it does not.
    """
    return then if chosen.array else otherwise
