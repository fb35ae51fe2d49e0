"""The storages of a node, as its configuration names them, at its start and while it runs.

    plugins/storage_manager/volumes/<name>      options of a volume; `memory` needs none
    plugins/storage_manager/storages/<name>     a storage

A storage that cannot be opened is reported and left out; the others run. In the admin space
`status/plugins/storage_manager/{version, volumes/<name>, storages/<name>}` shows them.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from zenlake.clock.backoff import Backoff
from zenlake.config.config import masked
from zenlake.config.json5 import Plain
from zenlake.config.model_storages import StorageManager, StorageSettings, storage_manager
from zenlake.config.nearest import nearest
from zenlake.errors import ConfigError, ZError
from zenlake.keys import intersects
from zenlake.node.inspection import metrics
from zenlake.storage_manager.storage import Storage
from zenlake.volumes import Option, Volume, VolumeError, VolumeUnreachable, volume_class
from zenlake.volumes.place import root_of
from zenlake.volumes.stripped import Stripped

if TYPE_CHECKING:
    from zenlake.config import Config
    from zenlake.engine.runtime import Runtime
    from zenlake.node.inspection.metrics import Row

__all__ = ["PATH", "Storages", "start"]

log = logging.getLogger("zenlake.storage_manager")

#: Which member of a storage's status each metric tells.
COUNTED: Final = {
    metrics.STORAGE_KEYS: "keys",
    metrics.STORAGE_WAITING: "waiting",
    metrics.STORAGE_WAITING_BYTES: "waiting_bytes",
    metrics.STORAGE_LAG: "lag",
    metrics.STORAGE_DROPPED: "dropped",
    metrics.STORAGE_FAILURES: "failures",
    metrics.STORAGE_REFUSED: "values_refused",
}
#: The same of the replication of a storage that has one.
REPLICATED: Final = {
    metrics.REPLICATION_EVENTS: "events",
    metrics.REPLICATION_DIFFERENCES: "differences",
    metrics.REPLICATION_PUTS: "puts",
    metrics.REPLICATION_DELETES: "deletes",
    metrics.REPLICATION_MALFORMED: "malformed",
    metrics.REPLICATION_REFUSED: "refused",
    metrics.REPLICATION_FAILURES: "failures",
}
PATH: Final = "plugins/storage_manager"
#: While a server cannot be reached.
RETRY: Final = Backoff(0.5, 30.0)
#: Keys of a volume's configuration that say which volume it is.
NAMING: Final = ("id", "backend", "private", "__path__", "__required__")


def start(runtime: Runtime) -> Storages:
    """Open the storages that the configuration of a node names."""
    storages = Storages(runtime)
    storages.change(runtime.config)
    return storages


class Storages:
    """All storages of one node."""

    def __init__(self, runtime: Runtime) -> None:
        """None yet."""
        from zenlake.api.session import session_beside

        self._session = session_beside(runtime)
        self._lock = threading.Lock()
        self._settings = StorageManager()
        self._running: dict[str, Storage] = {}
        self._refused: dict[str, str] = {}
        #: Storages whose servers cannot be reached: they are tried again until the end.
        self._unreachable: dict[str, StorageSettings] = {}
        self._end = threading.Event()
        self._trying: threading.Thread | None = None

    @property
    def running(self) -> Mapping[str, Storage]:
        """The storages that are open, by name."""
        return dict(self._running)

    @property
    def serves(self) -> bool:
        """Always: a storage can be added to it at any time."""
        return True

    def troubles(self) -> list[str]:
        """Which storages are not open or cannot be written, and why."""
        # Without the lock: it is held while a storage is opened, and a server may take its time.
        refused, running = dict(self._refused), self.running
        closed = [f"storage '{name}' is not open: {why}" for name, why in refused.items()]
        return closed + [trouble for one in running.values() if (trouble := one.trouble)]

    # -------------------------------------------------------------------------- configuration

    def change(self, config: Config) -> None:
        """Make the storages those of a configuration: close, open, and leave alone."""
        plugins = json.loads(config.get_json("plugins"))
        wanted = storage_manager(plugins, config.mode) or StorageManager()
        settings = wanted.storages
        with self._lock:
            before = self._settings.storages
            for name in list(self._running):
                same_volume = _volume_of(wanted, settings.get(name)) == _volume_of(
                    self._settings, before.get(name)
                )
                if settings.get(name) != before.get(name) or not same_volume:
                    self._running.pop(name).close()
                    log.info("storage '%s' is closed", name)
            self._settings = wanted
            self._refused = {}
            self._unreachable = {}
            for name, storage in settings.items():
                if name not in self._running:
                    self._open(name, storage)

    def _open(self, name: str, settings: StorageSettings) -> None:
        try:
            self._running[name] = self._opened(name, settings)
        except (ZError, OSError) as error:
            self._refused[name] = str(error)
            log.error("storage '%s' is not open: %s", name, error)
            # What the system refuses now, it may give later: a disk without room or inodes.
            if isinstance(error, VolumeUnreachable | OSError):
                self._unreachable[name] = settings
                self._try_again()

    def _opened(self, name: str, settings: StorageSettings) -> Storage:
        """A storage that hears and answers; raises if its volume cannot be opened."""
        kind, options = _volume_of(self._settings, settings)
        made = volume_class(kind)
        chosen = checked_options(kind, made, options)
        if settings.history == "all" and made.CAPABILITY.history != "all":
            raise VolumeError(
                f"the volume '{kind}' keeps no history: write history: \"latest\", or choose "
                "sqlite or memory"
            )
        volume: Volume | None = None
        if kind != "memory" or settings.history == "all":
            volume = made(name, chosen)
            if settings.strip_prefix is not None:
                volume = Stripped(volume, str(settings.strip_prefix))
        read_only = bool(chosen.get("read_only", False))
        try:
            storage = Storage(self._session, name, settings, volume, read_only=read_only)
        except BaseException:
            if volume is not None:
                volume.close()
            raise
        log.info("storage '%s' stores %s in %s", name, settings.key_expr, kind)
        return storage

    # ------------------------------------------------------------- servers that are not there

    def _try_again(self) -> None:
        """Go on trying to open storages whose servers cannot be reached; the lock is held."""
        if self._trying is None or not self._trying.is_alive():
            self._trying = threading.Thread(
                target=self._try_on, name="zenlake storages", daemon=True
            )
            self._trying.start()

    def _try_on(self) -> None:
        pause = RETRY.first
        while not self._end.wait(pause):
            pause = RETRY.after(pause)
            with self._lock:
                left = dict(self._unreachable)
                if not left:
                    self._trying = None
                    return
            for name, settings in left.items():
                if self._retried(name, settings):
                    pause = RETRY.first

    def _retried(self, name: str, settings: StorageSettings) -> bool:
        """Try to open a storage, and tell whether it is open now."""
        # Without the lock: a server may take its time, and operators look meanwhile.
        storage: Storage | None = None
        why = ""
        try:
            storage = self._opened(name, settings)
        except (VolumeUnreachable, OSError) as error:
            why = str(error)
        except ZError as error:
            log.error("storage '%s' is not open: %s", name, error)
            why = str(error)
            with self._lock:
                if self._unreachable.get(name) is settings:
                    del self._unreachable[name]
        with self._lock:
            wanted = not self._end.is_set() and self._settings.storages.get(name) is settings
            if wanted and storage is not None:
                self._running[name] = storage
                self._refused.pop(name, None)
                self._unreachable.pop(name, None)
                return True
            if wanted:
                self._refused[name] = why
        if storage is not None:
            storage.close()
        return False

    # -------------------------------------------------------------------------- what is shown

    def documents(self, root: str, asked: str) -> Iterator[tuple[str, object]]:
        """The records below a node's admin space `root` that answer a query, as JSON values."""
        below = f"{root}/status/plugins/storage_manager"
        if not intersects(asked, f"{below}/**"):
            return
        from zenlake import __version__

        with self._lock:
            documents: dict[str, object] = {f"{below}/version": __version__}
            for name, kind in self._volumes().items():
                configured = self._configured_volume(name)
                documents[f"{below}/volumes/{name}"] = configured | _about_volume(kind)
                if (path := _path_of_volume(kind)) is not None:
                    documents[f"{below}/volumes/{name}/__path__"] = path
            for name, storage in self._running.items():
                configured = _configured(storage.settings)
                documents[f"{below}/storages/{name}"] = configured | storage.status()
            for name, why in self._refused.items():
                configured = _configured(self._settings.storages[name])
                documents[f"{below}/storages/{name}"] = configured | {"failure": why}
        for key, content in documents.items():
            if intersects(asked, key):
                yield key, content

    def metrics(self) -> Iterator[Row]:
        """What its storages count."""
        for name, storage in self.running.items():
            status = storage.status()
            yield from _rows(COUNTED, status, name)
            replication = status["replication"]
            if isinstance(replication, dict):
                yield from _rows(REPLICATED, replication, name)

    def _volumes(self) -> dict[str, str]:
        """The volumes that are configured or used, by name, with their kind."""
        volumes = {"memory": "memory"}
        configured = self._settings.volumes
        if isinstance(configured, Mapping):
            for name, options in configured.items():
                backend = options.get("backend") if isinstance(options, Mapping) else None
                volumes[name] = backend if isinstance(backend, str) else name
        for storage in self._settings.storages.values():
            name = _volume_name(storage)
            volumes.setdefault(name, name)
        return volumes

    def _configured_volume(self, name: str) -> dict[str, object]:
        """What Eclipse's volumes show of themselves: their options, but nothing private."""
        configured = self._settings.volumes
        options = configured.get(name) if isinstance(configured, Mapping) else None
        shown = _public(options if isinstance(options, Mapping) else {})
        required = shown.pop("__required__", False)
        return shown if required else shown | {"__required__": False}

    def close(self) -> None:
        """Close all of them; what they heard is written."""
        self._end.set()
        if self._trying is not None:
            self._trying.join()
        with self._lock:
            for storage in self._running.values():
                storage.close()
            self._running.clear()


def _rows(
    counted: Mapping[metrics.Metric, str], status: Mapping[str, object], name: str
) -> Iterator[Row]:
    for metric, member in counted.items():
        value = status[member]
        assert isinstance(value, int | float)
        yield metric, {"storage": name}, value


# ------------------------------------------------------------------------------------ options


def _volume_name(storage: StorageSettings) -> str:
    volume = storage.volume
    return str(volume["id"]) if isinstance(volume, Mapping) else str(volume)


def _volume_of(
    settings: StorageManager, storage: StorageSettings | None
) -> tuple[str, dict[str, object]]:
    """The kind of a storage's volume, and its options: those of the volume, then its own."""
    if storage is None:
        return "", {}
    name = _volume_name(storage)
    configured = settings.volumes.get(name) if isinstance(settings.volumes, Mapping) else None
    options: dict[str, object] = {}
    kind = name
    for part in (configured, storage.volume):
        if not isinstance(part, Mapping):
            continue
        backend = part.get("backend")
        if isinstance(backend, str):
            kind = backend
        private = part.get("private")
        for more in (part, private if isinstance(private, Mapping) else {}):
            options |= {key: value for key, value in more.items() if key not in NAMING}
    return kind, options


def checked_options(
    kind: str, made: type[Volume], options: Mapping[str, object]
) -> dict[str, object]:
    """The options of a volume, complete; raises `ConfigError` for those it does not know."""
    for name, value in options.items():
        option = made.OPTIONS.get(name)
        if option is None:
            hint = nearest(name, made.OPTIONS)
            meant = f"; did you mean '{hint}'?" if hint else ""
            known = ", ".join(made.OPTIONS) or "none"
            raise ConfigError(
                f"the volume '{kind}' has no option '{name}'{meant} (it has: {known})"
            )
        if not _fits(option, value):
            shown = "…" if option.secret else json.dumps(value, default=str)
            raise ConfigError(
                f"option '{name}' of the volume '{kind}' is {shown}: write a "
                f"{option.kind.__name__}; {option.doc}"
            )
    for name, option in made.OPTIONS.items():
        if option.required and name not in options:
            raise ConfigError(f"the volume '{kind}' needs the option '{name}': {option.doc}")
    folder = options.get("dir")
    if isinstance(folder, str) and ".." in folder.split("/"):
        raise ConfigError(f"dir '{folder}' leaves its root {root_of(kind)}: write it without '..'")
    defaults = {name: option.default for name, option in made.OPTIONS.items()}
    return defaults | dict(options)


def _fits(option: Option, value: object) -> bool:
    if option.kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if option.kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, option.kind)


def _configured(storage: StorageSettings) -> dict[str, object]:
    """What Eclipse's storages show of themselves: their configuration, but nothing private."""
    volume = storage.volume
    shown: dict[str, object] = {"key_expr": str(storage.key_expr)}
    if storage.strip_prefix is not None:
        shown["strip_prefix"] = str(storage.strip_prefix)
    shown["volume"] = _public(volume) if isinstance(volume, Mapping) else str(volume)
    return shown | {"complete": storage.complete}


def _public(options: Mapping[str, Plain]) -> dict[str, object]:
    """The options of a volume that may be shown."""
    shown = masked(PATH, {name: value for name, value in options.items() if name != "private"})
    assert isinstance(shown, dict)
    return {str(name): value for name, value in shown.items()}


def _path_of_volume(kind: str) -> str | None:
    """Where the code of a volume lies; Eclipse's own words for those that are built in."""
    try:
        module = volume_class(kind).__module__
    except VolumeError:
        return None
    return "__static_lib__" if module.startswith("zenlake.") else module


def _about_volume(kind: str) -> dict[str, object]:
    try:
        made = volume_class(kind)
    except VolumeError as error:
        return {"kind": kind, "failure": str(error)}
    capability = made.CAPABILITY
    return {
        "kind": kind,
        "persistence": capability.persistence,
        "history": capability.history,
        "options": {name: option.doc for name, option in made.OPTIONS.items()},
    }
