"""forebay keeps a training loop fed: DALI's programming model and PyTorch proxy, in open Python.

A layer imports only from layers to its left (tests/test_layers.py):

    errors, types, batch ← operators ← define ← compile ← execute ← deliver ← torch, compat, cli

`fn`, `ops` and `math` belong to define: they write nodes.
"""

from forebay import errors, fn, math, ops, types
from forebay.define.node import DataNode
from forebay.define.rewrite import do_not_convert
from forebay.deliver.pipeline import Pipeline
from forebay.deliver.pipeline_def import pipeline_def

__version__ = "0.1.0"
__all__ = [
    "DataNode",
    "Pipeline",
    "do_not_convert",
    "errors",
    "fn",
    "math",
    "ops",
    "pipeline_def",
    "types",
]
