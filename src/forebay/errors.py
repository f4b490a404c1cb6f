"""The tree of all errors. Whose fault it is decides the class.

- `DefinitionError`: the line that wrote the graph. It is raised before anything runs.
- `OperatorError`: data that an operator could not process, with its sample, source and line.
- `SourceError`: a reader, an external source or what feeds it.
- `ProxyError`: the proxy, its server or a worker process.

Every error is a `RuntimeError` besides, which is what DALI raises, so that scripts written for DALI
catch what they always caught.
"""

from __future__ import annotations

from typing import Any


class ForebayError(RuntimeError):
    """The root of all errors that forebay raises on purpose."""


class DefinitionError(ForebayError):
    """The graph cannot be what the user's code says it is."""


class ArgumentError(DefinitionError, TypeError, ValueError):
    """An argument has an unknown name, a wrong type or a value out of range."""


class UnknownArgumentError(ArgumentError, KeyError):
    """An argument of this name does not exist. Also a `KeyError`, as in DALI."""

    __str__ = RuntimeError.__str__  # KeyError would print the repr of the text


class UnknownOperatorError(DefinitionError, AttributeError):
    """There is no operator of this name."""


class PlacementError(DefinitionError):
    """A node was asked to run on a device that is not there or that it does not support."""


class GraphError(DefinitionError):
    """The nodes do not make a graph that can run: names twice, foreign nodes, wrong outputs."""


class NodeUseError(GraphError, TypeError):
    """A node was used as if it already held a value: in `if`, `len`, `float`, or iteration."""


class OperatorError(ForebayError):
    """An operator failed on one sample, while running. The cause is chained.

    Attributes:
        operator: the operator's name, e.g. ``"decoders.image"``.
        sample: the position of the sample in its batch, or None if the whole batch failed.
        source: where the sample came from: a path or a dataset index; None if unknown.
        line: the user's line that wrote the node, ``"file:line"``.
        reason: the cause, as ``"ClassName: message"``.
    """

    def __init__(
        self, operator: str, sample: int | None, source: str | None, line: str, reason: str
    ) -> None:
        self.operator = operator
        self.sample = sample
        self.source = source
        self.line = line
        self.reason = reason
        where = "" if sample is None else f" at sample {sample}"
        came_from = "" if source is None else f" ({source})"
        super().__init__(f"{operator}{where}{came_from}, defined at {line}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.operator, self.sample, self.source, self.line, self.reason)


class SourceError(ForebayError):
    """A source of data gave something that cannot be used, or nothing at all."""


class ReaderError(OperatorError, SourceError):
    """A reader failed to load one sample. The cause is chained."""


class UnknownInputError(SourceError, KeyError):
    """A pipeline has no input of this name. Also a `KeyError`, as in DALI."""

    __str__ = RuntimeError.__str__  # KeyError would print the repr of the text


class ProxyError(ForebayError):
    """Something between a worker process and the server went wrong."""


class NoValueYet(ProxyError, AttributeError):  # noqa: N818 - an event rather than a mistake
    """A reference was asked for what only its data has. So `hasattr` says that it has it not."""


class ServerStopped(ProxyError):  # noqa: N818 - an event rather than a mistake
    """The server was stopped while, or before, its data was waited for."""


class WorkerDied(ProxyError):  # noqa: N818 - an event rather than a mistake
    """A worker process ended while its data was waited for."""


class TooManyErrors(ProxyError):  # noqa: N818 - an event rather than a mistake
    """More samples failed than the server's `max_errors`; the text lists them."""


class RequestRefused(ProxyError, ValueError):  # noqa: N818 - an event rather than a mistake
    """What a worker asked of the server cannot be done."""
