"""Files of the archive, at `ASSENT_ARCHIVE_URL`: in a folder, in S3, or wherever else fsspec has a driver. Never in a transaction.

Drivers for networks run an event loop. So one native thread of the process does all operations, one after the other.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from gevent.monkey import is_module_patched
from gevent.threadpool import ThreadPool

from models.errors import Busy
from models.settings import settings
from models.settings.archive import storage_options

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

T = TypeVar("T")

SECONDS = 20.0
"""Longest time of one operation over the network."""


class ArchiveAway(Busy):
    """The archive cannot be read or written now. Nothing was changed; try again."""


class _Loop(asyncio.SelectorEventLoop):
    """An event loop without further threads, such as those that look up names: a process would wait for them at its end."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]
        """Call the function at once: the loop's one operation waits for it in any case."""
        del executor
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - who awaits the future gets it
            future.set_exception(error)
        return future


@dataclass
class _Place:
    """The file system, as the native thread has it."""

    system: "AbstractFileSystem"
    root: str
    runner: asyncio.Runner

    @classmethod
    def open(cls) -> "_Place":
        """Open the file system. Only here, and not at a process's start, is fsspec imported: most processes have no archive."""
        from fsspec.core import url_to_fs

        text = settings().archive_options
        options = storage_options(text.get_secret_value() if text else "")
        system, root = url_to_fs(settings().archive_url, asynchronous=True, skip_instance_cache=True, **options)
        return cls(system, root.rstrip("/"), asyncio.Runner(loop_factory=_Loop))

    def do(self, operation: str, key: str, *arguments: Any) -> Any:
        """Return the result of an operation of the file system on the file `key`."""
        path = f"{self.root}/{key}"
        if self.system.async_impl:
            return self.runner.run(_within_time(getattr(self.system, f"_{operation}")(path, *arguments)))
        return getattr(self.system, operation)(path, *arguments)

    def close(self) -> None:
        """Close the connections, of S3's driver above all, which has no public verb for it."""
        creator = getattr(self.system, "_s3creator", None)
        if creator is not None:
            self.runner.run(creator.__aexit__(None, None, None))
        self.runner.close()

    def put(self, key: str, content: bytes) -> None:
        """Store a file. In a folder, the file is whole and on the disk, or it is not there."""
        from fsspec.implementations.local import LocalFileSystem

        if not isinstance(self.system, LocalFileSystem):
            self.do("pipe_file", key, content)
            return
        path = f"{self.root}/{key}"
        self.system.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH120 - fsspec's path
        with open(f"{path}.part", "wb") as file:  # noqa: PTH123 - likewise
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.part", path)  # noqa: PTH105 - likewise
        folder = os.open(os.path.dirname(path), os.O_RDONLY)  # noqa: PTH120 - likewise
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


async def _within_time(operation: Awaitable[T]) -> T:
    return await asyncio.wait_for(operation, SECONDS)


def put(key: str, content: bytes) -> None:
    """Store a file. Raises ArchiveAway."""
    _in_thread(lambda place: place.put(key, content))


def get(key: str) -> bytes | None:
    """Return a file's content, or None if there is no such file. Raises ArchiveAway."""
    try:
        content: bytes = _in_thread(lambda place: place.do("cat_file", key))
    except FileNotFoundError:
        return None
    return content


def remove(key: str) -> None:
    """Remove a file. Idempotent. Raises ArchiveAway."""
    try:
        _in_thread(lambda place: place.do("rm_file", key))
    except FileNotFoundError:
        return


def close() -> None:
    """Close the process's connections. The next operation opens others."""
    thread = _threads.pop(os.getpid(), None)
    if thread:
        thread.close()


class _Thread:
    """The process's native thread for files, and the file system that it has opened."""

    def __init__(self) -> None:
        # gevent's own threads are native ones where gevent has replaced Python's.
        patched = is_module_patched("threading")
        self.pool: ThreadPool | ThreadPoolExecutor = ThreadPool(1) if patched else ThreadPoolExecutor(1)
        self.place: tuple[tuple[Any, ...], _Place] | None = None

    def run(self, function: Callable[[_Place], T]) -> T | Exception:
        """Return the function's result or its exception, which gevent would print."""
        pool = self.pool
        if isinstance(pool, ThreadPoolExecutor):
            return pool.submit(self._result, function).result()
        result: T | Exception = pool.apply(self._result, (function,))
        return result

    def close(self) -> None:
        """Close the file system's connections, and end the thread."""
        self.run(_Place.close)
        if isinstance(self.pool, ThreadPoolExecutor):
            self.pool.shutdown()
        else:
            self.pool.kill()

    def _result(self, function: Callable[[_Place], T]) -> T | Exception:
        place_settings = (settings().archive_url, settings().archive_options)
        try:
            if self.place is None or self.place[0] != place_settings:
                self.place = (place_settings, _Place.open())
            return function(self.place[1])
        except Exception as error:  # noqa: BLE001 - a driver raises what it likes
            return error


_threads: dict[int, _Thread] = {}
"""By process: a fork has none."""


def _in_thread(function: Callable[[_Place], T]) -> T:
    if not settings().archive_url:
        raise FileNotFoundError("ASSENT_ARCHIVE_URL is not set")
    process = os.getpid()
    if process not in _threads:
        _threads[process] = _Thread()
    result = _threads[process].run(function)
    if isinstance(result, FileNotFoundError):
        raise result
    if isinstance(result, Exception):
        raise ArchiveAway(f"The archive is away ({type(result).__name__}); try again in a moment.") from result
    return result
