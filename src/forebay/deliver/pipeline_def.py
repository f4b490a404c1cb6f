"""`@pipeline_def`: a function that writes a graph becomes one that makes pipelines."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, overload

from forebay.define.call import default_device, guarded
from forebay.define.options import not_in_this_version
from forebay.define.rewrite import convert
from forebay.deliver.pipeline import Pipeline
from forebay.errors import ArgumentError, GraphError, UnknownArgumentError
from forebay.operators._argument import suggestion

_PIPELINE = tuple(inspect.signature(Pipeline.__init__).parameters)[1:]

Factory = Callable[..., Pipeline]


@overload
def pipeline_def(fn: Callable[..., Any], **pipeline_kwargs: Any) -> Factory: ...
@overload
def pipeline_def(
    fn: None = None, **pipeline_kwargs: Any
) -> Callable[[Callable[..., Any]], Factory]: ...
def pipeline_def(
    fn: Callable[..., Any] | None = None,
    *,
    enable_conditionals: bool = False,
    debug: bool = False,
    **pipeline_kwargs: Any,
) -> Factory | Callable[[Callable[..., Any]], Factory]:
    """Make a pipeline factory of a function that writes a graph and returns its outputs.

    Calling the factory takes the function's own arguments and, as keywords, those of `Pipeline`;
    arguments given to the decorator are their defaults. A parameter of the function that is named
    like one of `Pipeline`'s gets the value; the pipeline has it only if the decorator does not say
    another. ``device="cpu"`` is the device of operators
    that say none, if the function has no parameter of that name.

    Args:
        fn: the function.
        enable_conditionals: `if`, `and`, `or` and `not` may be used on nodes, in the function and
            in those of yours that it calls: each sample takes its own branch. The function's source
            must be at hand. `do_not_convert` marks functions to leave alone.
        debug: refused; `forebay.testing` runs operators and pipelines at once.
        pipeline_kwargs: defaults of the `Pipeline` arguments.

    Raises:
        UnknownArgumentError: an argument is neither the function's nor `Pipeline`'s.
        GraphError: the function returned None.
    """
    _refuse_debug(debug)
    if fn is None:
        return functools.partial(
            pipeline_def, enable_conditionals=enable_conditionals, debug=debug, **pipeline_kwargs
        )
    own = inspect.signature(fn).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in own.values())
    _refuse_unknown(fn, pipeline_kwargs, ())

    @functools.wraps(fn)
    def factory(*args: Any, **kwargs: Any) -> Pipeline:
        for_function, for_pipeline = {}, dict(pipeline_kwargs)
        conditionals = kwargs.pop("enable_conditionals", enable_conditionals)
        _refuse_debug("debug" not in own and kwargs.pop("debug", False))
        device = None if "device" in own else kwargs.pop("device", None)
        if device not in (None, "cpu", "gpu", "mixed"):
            raise ArgumentError(f"device is 'cpu', 'gpu' or 'mixed', but got {device!r}")
        if not takes_any:
            _refuse_unknown(fn, kwargs, own)
        for name, value in kwargs.items():
            if name in _PIPELINE and not (name in own and name in pipeline_kwargs):
                for_pipeline[name] = value
            if name in own or name not in _PIPELINE:
                for_function[name] = value
        pipeline = Pipeline(**for_pipeline)
        written = _converted(fn) if conditionals else fn
        with pipeline, default_device(device), guarded():
            outputs = written(*args, **for_function)
        if outputs is None:
            raise GraphError(
                f"{fn.__name__} returned None: return the nodes that are the pipeline's outputs"
            )
        pipeline.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
        return pipeline

    return factory


def _refuse_debug(debug: bool) -> None:
    if debug:
        not_in_this_version(
            "debug=True", "leave it out; forebay.testing.run_pipeline runs one batch at once"
        )


def _refuse_unknown(fn: Callable[..., Any], given: Any, own: Any) -> None:
    for name in given:
        if name not in _PIPELINE and name not in own:
            raise UnknownArgumentError(
                f"'{name}' is an argument neither of {fn.__name__} nor of Pipeline"
                f"{suggestion(name, (*_PIPELINE, *own))}"
            )


def _converted(fn: Any) -> Callable[..., Any]:
    try:
        return convert(fn)
    except (OSError, TypeError, SyntaxError) as error:
        raise ArgumentError(
            f"enable_conditionals needs a function whose source is at hand, but {fn!r}: {error}"
        ) from error


def check_pipeline(value: Any) -> None:
    """Raise ArgumentError for what is no pipeline; it may be what makes one."""
    if isinstance(value, Pipeline):
        return
    hint = ""
    if callable(value):
        name = getattr(value, "__name__", repr(value))
        hint = f". What makes a pipeline is called first: {name}(batch_size=...)"
    raise ArgumentError(
        f"Expected a forebay pipeline, got: {value!r} ({type(value).__name__}){hint}"
    )
