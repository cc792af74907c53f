"""The state in which each run starts: that of a new interpreter.

Programs change more than their own names: options of the language, attributes of modules and classes, the environment,
warnings, files. `remember` notes what these were when Python was ready, and `restore` puts it back.
"""

import asyncio
import builtins
import logging
import os
import random
import shutil
import signal
import sys
import types
import warnings
from typing import Any

# The working folder of programs. It is emptied for each new one, except for the files that the reader gave.
FOLDER = "/home/pyodide"

_modules: dict[str, tuple[types.ModuleType, dict[str, Any]]] = {}
_classes: list[tuple[type, dict[str, Any]]] = []
_given: dict[str, bytes] = {}  # files of the reader, by name
_options: dict[str, Any] = {}
_environment: dict[str, str] = {}
_process: dict[str, Any] = {}

# Attributes of classes that the interpreter itself manages.
_OWN = frozenset({"__dict__", "__weakref__", "__doc__", "__abstractmethods__", "_abc_impl", "__annotations_cache__"})


def _is_definition(value: Any) -> bool:
    """Whether a name with this value is a definition, which only a patch replaces; other values may be caches."""
    return callable(value) or isinstance(value, (types.ModuleType, property, staticmethod, classmethod))


def remember() -> None:
    """Notes the state to go back to."""
    seen: set[type] = set()
    for name, module in list(sys.modules.items()):
        if not isinstance(module, types.ModuleType) or name == "__main__":
            continue
        _modules[name] = module, dict(module.__dict__)
        for value in module.__dict__.values():
            if type(value) is type and value.__module__ == name and value not in seen:
                seen.add(value)
                _classes.append((value, {k: v for k, v in vars(value).items() if k not in _OWN}))
    _environment.update(os.environ)
    _options.update(_options_now())
    _process.update(
        path=list(sys.path),
        argv=list(sys.argv),
        streams=(sys.stdin, sys.stdout, sys.stderr),
        hooks=(sys.excepthook, sys.displayhook),
        recursion=sys.getrecursionlimit(),
        filters=list(warnings.filters),
        interrupt=signal.getsignal(signal.SIGINT),
        level=logging.root.level,
        handlers=list(logging.root.handlers),
    )


def _options_now() -> dict[str, Any]:
    import weft

    return dict(weft.config.values)


def give(name: str, data: bytes) -> None:
    """Keeps a file of the reader for this and every later run.

    Raises:
        ValueError: the name would not stay in the folder.
    """
    if not name or name in (".", "..") or len(name.encode()) > 255 or any(c in name for c in "/\\\0"):
        raise ValueError(f"{name!r} can't be the name of a file")
    _given[name] = data
    with open(os.path.join(FOLDER, name), "wb") as file:
        file.write(data)


def restore(files: set[str]) -> None:
    """Restores the noted state for the next program. `files` are the file names of the sources of the last one."""
    _restore_definitions()
    _restore_process()
    _restore_options()
    _restore_folder()
    _end_tasks(files)
    random.seed()
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
        pyplot.rcdefaults()
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def _restore_definitions() -> None:
    for name, (module, held) in _modules.items():
        sys.modules[name] = module
        now = module.__dict__
        for key, value in held.items():
            if now.get(key) is not value and _is_definition(value):
                now[key] = value
        for key in [key for key in now if key not in held and not key.startswith("__")]:
            # Later names are the program's, or ones that their module defines again when they are next used.
            of_program = getattr(now[key], "__module__", None) == "__main__"
            if of_program or module is builtins or "__getattr__" in held and not isinstance(now[key], types.ModuleType):
                del now[key]
    for cls, held in _classes:
        now = vars(cls)
        for key, value in held.items():
            if now.get(key) is not value and _is_definition(value):
                setattr(cls, key, value)
        for key in [key for key in now if key not in held and key not in _OWN and not key.startswith("__")]:
            if isinstance(now[key], types.FunctionType) and now[key].__module__ == "__main__":
                delattr(cls, key)
    # Modules that lie in the program's folder may have changed since.
    for name, module in list(sys.modules.items()):
        if name not in _modules and str(getattr(module, "__file__", None) or "").startswith(FOLDER):
            del sys.modules[name]


def _restore_process() -> None:
    os.environ.clear()
    os.environ.update(_environment)
    sys.path[:] = _process["path"]
    sys.argv[:] = _process["argv"]
    sys.stdin, sys.stdout, sys.stderr = _process["streams"]
    sys.excepthook, sys.displayhook = _process["hooks"]
    sys.setrecursionlimit(_process["recursion"])
    signal.signal(signal.SIGINT, _process["interrupt"])
    sys.settrace(None)
    sys.setprofile(None)
    warnings.filters[:] = _process["filters"]
    logging.root.setLevel(_process["level"])
    logging.root.handlers[:] = _process["handlers"]


def _restore_options() -> None:
    import weft

    for name, value in _options_now().items():
        if name in _options and value != _options[name]:
            weft.config.update(name, _options[name])


def _restore_folder() -> None:
    os.chdir(FOLDER)
    for entry in os.scandir(FOLDER):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.name not in _given:
            os.remove(entry.path)
    for name, data in _given.items():
        with open(os.path.join(FOLDER, name), "wb") as file:
            file.write(data)


def _end_tasks(files: set[str]) -> None:
    """Cancels tasks that an earlier program left in the event loop. The page's own tasks go on."""
    for task in asyncio.all_tasks():
        code = getattr(task.get_coro(), "cr_code", None)
        if code is not None and code.co_filename in files:
            task.cancel()
