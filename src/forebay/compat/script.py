"""Run a script as `python SCRIPT` would, with `nvidia.dali` standing for forebay.

Processes that multiprocessing spawns import the main module anew: they find this one named as it,
and it runs the script for them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from forebay.compat.modules import install

_SCRIPT = "FOREBAY_SCRIPT"
"""The environment variable that tells spawned processes which script it is."""


def run(script: Path, arguments: Sequence[str]) -> None:
    """Run a script in the main module. An error is printed as Python prints it, and exits."""
    path = script.resolve()
    os.environ[_SCRIPT] = str(path)
    install()
    main = ModuleType("__main__")
    main.__spec__ = find_spec(__name__)
    sys.modules["__main__"] = main
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(path.parent))
    try:
        _execute(path, main)
    except Exception as error:
        own = error.__traceback__
        while own is not None and own.tb_frame.f_code.co_filename != str(path):
            own = own.tb_next
        sys.excepthook(type(error), error.with_traceback(own), own)
        raise SystemExit(1) from None


def _execute(path: Path, module: ModuleType) -> None:
    module.__dict__["__file__"] = str(path)
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)


if __name__ == "__mp_main__":
    install()
    _execute(Path(os.environ[_SCRIPT]), sys.modules[__name__])
