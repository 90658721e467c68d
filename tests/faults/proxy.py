"""A TCP proxy whose link can be cut as networks cut links: without closing the connections.

A silent connection is not even acknowledged. A socket filter drops all packets before TCP sees them (Linux, without privileges),
so time-outs, keepalives and retransmissions work as on a cut cable.
"""

import asyncio
import contextlib
import ctypes
import socket
import struct
import threading
from collections.abc import Iterator

_ATTACH, _DETACH = 26, 27  # SO_ATTACH_FILTER, SO_DETACH_FILTER
_DROP_ALL = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: return 0 bytes of every packet
_PROGRAM = struct.pack("HP", 1, ctypes.addressof(_DROP_ALL))


class _Link:
    """One connection and its other half."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.speaks = asyncio.Event()
        self.speaks.set()


class Proxy:
    """Listens on `port` of loopback and forwards to another port."""

    def __init__(self, to_port: int) -> None:
        self._to = to_port
        self._links: set[_Link] = set()
        self._loop = asyncio.new_event_loop()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._call(self._serve())

    def cut(self) -> None:
        """Silence all connections, old and new ones, from now on."""
        self._drop(self._socket)
        self.forget()

    def forget(self) -> None:
        """Silence the present connections for good, unnoticed at both ends. New connections work."""
        self._call(self._forget())

    def heal(self) -> None:
        """Let new connections work. Silent ones stay silent, as behind a router that forgot them."""
        with contextlib.suppress(FileNotFoundError):  # not cut
            self._socket.setsockopt(socket.SOL_SOCKET, _DETACH, 0)

    def hang_up(self) -> None:
        """Close the present connections, as a proxy that is replaced does. New connections work."""
        for link in list(self._links):
            link.sock.shutdown(socket.SHUT_RDWR)

    @property
    def silent(self) -> int:
        """The number of silent connections that the server behind the proxy has not closed yet."""
        return sum(not link.speaks.is_set() for link in self._links)

    def close(self) -> None:
        """Close the proxy with all of its connections."""
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def _call(self, work: "asyncio.coroutines.CoroutineType[object, object, None]") -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    @staticmethod
    def _drop(sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, _ATTACH, _PROGRAM)

    async def _serve(self) -> None:
        self._server = await asyncio.start_server(self._accept, sock=self._socket)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(writer.get_extra_info("socket"))
        self._links.add(link)
        with contextlib.closing(writer), contextlib.suppress(OSError):
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
            with contextlib.closing(back):
                ways = [asyncio.ensure_future(self._pass(link, *way)) for way in ((reader, back), (there, writer))]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
        self._links.discard(link)

    @staticmethod
    async def _pass(link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await link.speaks.wait()
                writer.write(data)
                await writer.drain()
            await link.speaks.wait()  # an end is not passed on either

    async def _forget(self) -> None:
        for link in self._links:
            link.speaks.clear()
            with contextlib.suppress(OSError):
                self._drop(link.sock)

    async def _close(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def proxied(to_port: int) -> Iterator[Proxy]:
    """Run a proxy until the block ends."""
    proxy = Proxy(to_port)
    try:
        yield proxy
    finally:
        proxy.close()
