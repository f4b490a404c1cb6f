"""Which names of forebay stand for which modules of DALI, and the finder that imports them so."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

ROOT = "nvidia.dali"
DALI_VERSION = "2.4.0"
"""The version of DALI whose names, arguments and results forebay follows."""

_MODULES: dict[str, str | dict[str, str]] = {
    "": {
        "Pipeline": "forebay.Pipeline",
        "pipeline_def": "forebay.pipeline_def",
        "DataNode": "forebay.DataNode",
    },
    "backend": {
        "TensorCPU": "forebay.batch.Sample",
        "TensorListCPU": "forebay.batch.Batch",
    },
    "data_node": {"DataNode": "forebay.DataNode"},
    "external_source": {"external_source": "forebay.fn.external_source"},
    "fn": "forebay.fn",
    "math": "forebay.math",
    "ops": "forebay.ops",
    "pipeline": {
        "Pipeline": "forebay.Pipeline",
        "pipeline_def": "forebay.pipeline_def",
        "do_not_convert": "forebay.do_not_convert",
        "DataNode": "forebay.DataNode",
    },
    "pipeline.experimental": {"pipeline_def": "forebay.pipeline_def"},
    "plugin": {},
    "plugin.base_iterator": {"LastBatchPolicy": "forebay.torch.LastBatchPolicy"},
    "plugin.pytorch": "forebay.torch",
    "plugin.pytorch.experimental": {},
    "plugin.pytorch.experimental.proxy": "forebay.torch.proxy",
    "tensors": {
        "TensorCPU": "forebay.batch.Sample",
        "TensorListCPU": "forebay.batch.Batch",
    },
    "tfrecord": "forebay.tfrecord",
    "types": "forebay.types",
}
"""DALI's module → the module of ours that has its names, or each name and what it stands for."""


def install() -> None:
    """Make `import nvidia.dali` give forebay in this process. Idempotent.

    It wins over a DALI that is installed, and leaves it untouched.

    Raises:
        ImportError: DALI itself was imported before.
    """
    found = sys.modules.get(ROOT)
    if found is not None and not isinstance(found, _Module):
        raise ImportError(
            f"{ROOT} was imported from {found.__file__} before forebay.compat.install(): call it "
            f"first, or use `forebay run SCRIPT`"
        )
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


class _Module(ModuleType):
    """A module of DALI whose names are forebay's."""

    def __getattr__(self, name: str) -> Any:
        path = self.__name__.removeprefix(ROOT).lstrip(".")
        names = _names(path)
        assert names is not None
        if isinstance(names, str):
            home = importlib.import_module(names)
            if name == "__all__":
                return [n for n in dir(home) if not n.startswith("_")]
            if hasattr(home, name) or path.startswith(("fn", "ops")):
                return getattr(home, name)  # they suggest the nearest operator
        elif name in names:
            return _resolve(names[name])
        elif name == "__version__" and not path:
            return DALI_VERSION
        elif name == "__all__":
            return list(names)
        if _names(f"{path}.{name}".lstrip(".")) is not None:
            return importlib.import_module(f"{self.__name__}.{name}")
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(_lacking(f"{self.__name__}.{name}"))


def _names(path: str) -> str | dict[str, str] | None:
    """What stands for a module of DALI; None if nothing does."""
    if path.startswith(("fn.", "ops.")):  # namespaces of operators are modules too
        importlib.import_module("forebay.ops")
        return f"forebay.{path}" if f"forebay.{path}" in sys.modules else None
    return _MODULES.get(path)


def _resolve(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _lacking(name: str) -> str:
    return (
        f"forebay has no '{name}'. `forebay operators` lists what it has of DALI's operators, and "
        f"what it lacks"
    )


class _Finder:
    """Finds `nvidia.dali` and what is in it; the rest of `nvidia` is somebody else's."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        if name == "nvidia" and PathFinder.find_spec(name) is None:
            return ModuleSpec(name, None, is_package=True)
        if name != ROOT and not name.startswith(f"{ROOT}."):
            return None
        inner = name.removeprefix(ROOT).lstrip(".")
        if _names(inner) is None:
            raise ImportError(_lacking(name), name=name)
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]  # it is a loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


_FINDER = _Finder()
