"""Where a loader is, as a small dict: what the training loop has received, not what was prefetched.

A state names the epoch, the number of batches taken, and the random state from which the epoch's
order was drawn. Restoring it draws the same order again and skips the indices of the batches that
were taken, without loading them. What must be the same in both processes is in the state, and a
state that does not fit is refused with what differs.
"""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.utils.data

from forebay.errors import ArgumentError

VERSION = 1


@dataclass(frozen=True)
class LoaderState:
    """A position in the data.

    Attributes:
        version: of this form.
        epoch: number of the epoch, on which the pipeline's random numbers depend.
        batches: how many of its batches the loop has taken.
        generator: the loader's random state at the epoch's beginning, in base64; None without one.
        fits: what must be the same where the state is restored.
    """

    version: int
    epoch: int
    batches: int
    generator: str | None
    fits: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_dict(cls, state: dict[str, Any], loader: torch.utils.data.DataLoader[Any], seed: int) -> LoaderState:
        """The state that `to_dict` gave. Raises ArgumentError if it does not fit the loader."""
        try:
            read = cls(**state)
        except TypeError:
            raise ArgumentError(f"not a state of the proxy's DataLoader: {state!r:.200}") from None
        if read.version != VERSION:
            raise ArgumentError(
                f"the state has version {read.version}, but this is version {VERSION}"
            )
        ours = what_must_fit(loader, seed)
        for name in sorted(ours.keys() | read.fits.keys()):
            if ours.get(name) != read.fits.get(name):
                raise ArgumentError(
                    f"the state does not fit: its {name} is {read.fits.get(name)!r}, but this "
                    f"loader's is {ours.get(name)!r}"
                )
        return read


def what_must_fit(loader: torch.utils.data.DataLoader[Any], seed: int) -> dict[str, Any]:
    """What decides which data comes when, apart from the position."""
    sampler = loader.sampler
    found: dict[str, Any] = {
        "pipeline seed": seed,
        "dataset length": len(loader.dataset),  # type: ignore[arg-type]  # map-style, with a length
        "sampler": type(sampler).__name__,
        "batch size": loader.batch_size,
        "drop_last": loader.drop_last,
    }
    for name in ("num_replicas", "rank", "seed", "shuffle", "replacement", "num_samples"):
        if hasattr(sampler, name):
            found[f"sampler's {name}"] = getattr(sampler, name)
    return found


def save_generator(generator: torch.Generator | None) -> str | None:
    if generator is None:
        return None
    return base64.b64encode(generator.get_state().numpy().tobytes()).decode()


def load_generator(generator: torch.Generator | None, state: str | None) -> None:
    if generator is not None and state is not None:
        data = bytearray(base64.b64decode(state))
        generator.set_state(torch.frombuffer(data, dtype=torch.uint8))
