"""What opening a session may import: a program that starts waits for each module.

Lists, not clocks: a module that is not listed here is named by the test that fails. What
`import zenlake` and `zenlake --version` may load is in `tests/build/test_project.py` and
`tests/cli/test_imports.py`.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

#: Rooms of ours that a session takes.
ROOMS = {
    "api", "clock", "config", "engine", "errors", "keys", "lazy", "links", "node",
    "printable", "records", "routing", "scouting", "transport", "values", "wire",
}  # fmt: skip
#: Modules of these rooms that only some programs need.
LATER = {
    "zenlake.api.filtered",
    "zenlake.api.log",
    "zenlake.api.scout",
    "zenlake.config.document",
    "zenlake.config.model_remote",
    "zenlake.config.model_storages",
    "zenlake.config.model_web",
    "zenlake.keys.format",
    "zenlake.keys.time_range",
    "zenlake.links.c_interfaces",
    "zenlake.links.certificates",
    "zenlake.links.layered",
    "zenlake.links.quic",
    "zenlake.links.serial",
    "zenlake.links.tls",
    "zenlake.links.udp",
    "zenlake.links.unix",
    "zenlake.links.ws",
    "zenlake.values.serial",
    "zenlake.values.sized",
}
#: Libraries beside asyncio and uvloop, which runs it, and what these two load.
LIBRARIES = {
    "__future__",
    "copy",
    "dataclasses",
    "datetime",
    "ipaddress",
    "mypy_extensions",
}
#: Classes whose methods `dataclass` compiles at each start, which takes nearly a millisecond. This
#: one is made hundreds of times, so that making it fast counts more.
DATACLASSES = {"zenlake.config.declare.Key"}

EVENT_LOOP = (
    "import asyncio, importlib.util as found\nfound.find_spec('uvloop') and __import__('uvloop')\n"
)
OPEN = (
    "import zenlake\n"
    "config = zenlake.Config()\n"
    "config.insert_json5('scouting/multicast/enabled', 'false')\n"
    "config.insert_json5('listen/endpoints', '[]')\n"
    "zenlake.open(config).close()\n"
)
MODULES = "import json, sys; print(json.dumps(sorted(sys.modules)))\n"
CLASSES = (
    "import json, sys\n"
    "made = {f'{one.__module__}.{one.__qualname__}'\n"
    "    for name, module in list(sys.modules.items()) if name.startswith('zenlake')\n"
    "    for one in vars(module).values()\n"
    "    if isinstance(one, type) and '__dataclass_fields__' in vars(one)\n"
    "    and getattr(getattr(one.__init__, '__code__', None), 'co_filename', '') == '<string>'}\n"
    "print(json.dumps(sorted(made)))\n"
)


def told(program: str) -> set[str]:
    """The names that a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that are there when a session was opened and closed."""
    return told(OPEN + MODULES)


def test_opening_a_session_loads_the_rooms_of_a_node_and_no_service(loaded: set[str]) -> None:
    ours = {name for name in loaded if name.startswith("zenlake.")}
    assert {name.split(".")[1] for name in ours} == ROOMS
    assert ours & LATER == set()


def test_what_is_loaded_later_exists() -> None:
    assert {name for name in LATER if find_spec(name) is None} == set()


def test_opening_a_session_loads_few_libraries_beside_the_event_loop(loaded: set[str]) -> None:
    others = {name for name in loaded if not name.startswith(("zenlake", "_"))}
    beside = {name.split(".")[0] for name in others - told(EVENT_LOOP + MODULES)}
    assert beside - LIBRARIES == set()


def test_opening_a_session_compiles_no_methods_of_dataclasses() -> None:
    assert told(OPEN + CLASSES) - DATACLASSES == set()


def test_packages_that_fetch_names_when_they_are_used_have_all_of_them() -> None:
    for name in ("zenlake", "zenlake.keys", "zenlake.values"):
        package = importlib.import_module(name)
        assert [one for one in package.__all__ if not hasattr(package, one)] == []
        with pytest.raises(AttributeError, match=f"'{name}' has no attribute 'nothing_like_it'"):
            package.nothing_like_it  # noqa: B018
