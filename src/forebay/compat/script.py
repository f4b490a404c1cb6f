"""Run a script as `python SCRIPT` or `python -m MODULE` would, with `nvidia.dali` as forebay.

Processes that multiprocessing spawns import the main module anew: they find this one named as it,
and it runs the script for them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from forebay.compat.modules import install

_SCRIPT, _PACKAGE = "FOREBAY_SCRIPT", "FOREBAY_PACKAGE"
"""The environment variables that tell spawned processes which script it is, of which package."""


def run(script: Path, arguments: Sequence[str]) -> None:
    """Run a script in the main module. An error is printed as Python prints it, and exits."""
    path = script.resolve()
    install()
    sys.path.insert(0, str(path.parent))
    _run(path, "", [str(script), *arguments])


def run_module(name: str, arguments: Sequence[str]) -> None:
    """The same for a module, or for the module `__main__` of a package.

    Raises:
        ImportError: there is no such module, or its package cannot be imported.
    """
    install()
    sys.path.insert(0, str(Path.cwd()))
    spec = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = find_spec(f"{name}.__main__")
    if spec is None or not spec.has_location or spec.origin is None:
        raise ImportError(f"no module {name} that is a file of Python", name=name)
    _run(Path(spec.origin), spec.parent or "", [spec.origin, *arguments])


def _run(path: Path, package: str, argv: list[str]) -> None:
    os.environ[_SCRIPT], os.environ[_PACKAGE] = str(path), package
    main = sys.modules["__main__"] = ModuleType("__main__")
    sys.argv = argv
    try:
        _execute(path, package, main)
    except Exception as error:
        own = error.__traceback__
        while own is not None and own.tb_frame.f_code.co_filename != str(path):
            own = own.tb_next
        sys.excepthook(type(error), error.with_traceback(own), own)
        raise SystemExit(1) from None


def _execute(path: Path, package: str, module: ModuleType) -> None:
    spec = _Spec("forebay.compat.script", None)
    spec.package = package
    vars(module).update(__file__=str(path), __package__=package or None, __spec__=spec)
    exec(compile(path.read_bytes(), str(path), "exec"), vars(module))


class _Spec(ModuleSpec):
    """Its name is this file's, for spawned processes; relative imports begin at the package."""

    package: str

    @property
    def parent(self) -> str:
        return self.package


if __name__ == "__mp_main__":
    install()
    _execute(Path(os.environ[_SCRIPT]), os.environ[_PACKAGE], sys.modules[__name__])
