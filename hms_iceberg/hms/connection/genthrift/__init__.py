"""The Thrift code that `hmsclient` brings, imported a second time under a name of this package.

Its modules are found in hmsclient's folder, and are objects of their own: what `thrift_types` adds to these classes,
another user of hmsclient in the process does not see.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def _folder() -> str:
    spec = find_spec("hmsclient")  # which does not import it
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("hmsclient is not installed: pip install hmsclient", name="hmsclient")
    return str(Path(spec.submodule_search_locations[0]) / "genthrift")


__path__ = [_folder()]
