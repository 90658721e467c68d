"""What an open page of the inbox costs beside an idle stream: `make bench ARGS="open_pages [N]"`, by default 500.

Opens N streams over N sessions, and then, against a fresh web process, N streams of open pages of one person. Prints for both the
memory of one, and the CPU of the web process over 20 s in which nothing happens. Read the ratio of the memory: both are readers of
one hub. The CPU of other processes on the machine is printed too: it spoils the figures. Fails above a ratio of 1.5.
"""

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.idle_streams import Clients, idle, say, sessions, stack, web

BOUND = 1.5


class Pages(Clients):
    """The streams of open pages. The key is the secret of a sign-in."""

    def request(self, session_id: str) -> str:
        """Return the request of one page."""
        path = f"/inbox/stream?mark=&session={session_id}"
        return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\ncookie: assent-{self.port}={self.key}\r\n\r\n"


def measured(kind: type[Clients], secret: str, ids: list[str]) -> tuple[float, float]:
    """Return kB per stream, and CPU of the web process in percent of a core, and print them."""
    with web(len(ids)) as (port, process):
        clients = kind(port, secret)
        clients.open(ids[:1])
        before = process.memory_info().rss
        clients.open(ids[1:])
        memory = (process.memory_info().rss - before) / len(ids) / 1024
        cpu, others = idle(clients, process)
        say(f"{len(ids)} {kind.__name__.lower()}: {memory:.1f} kB each, idle CPU {cpu:.1f} % of a core (others {others:.0f} %)")
        return memory, cpu


def main() -> int:
    """Measure, and print. Returns 1 if pages cost more than the bound."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    from faults.own_redis import own_redis

    with tempfile.TemporaryDirectory() as place, stack(Path(place)) as urls, own_redis(Path(place)) as redis:
        os.environ |= {"DATABASE_URL": urls["app"], "DATABASE_SYSTEM_URL": urls["system"], "REDIS_URL": redis.url}
        import people
        from doors.served import key
        from rows.stage import Stage

        stage = Stage()
        ids = sessions(urls["postgres"], stage.session(), count)
        streams = measured(Clients, key(stage), ids)
        pages = measured(Pages, people.member(stage, "admin").secret, ids)
    memory, cpu = pages[0] / streams[0], pages[1] / max(streams[1], 0.1)
    say(f"a page costs {memory:.2f} times the memory of a stream (bound {BOUND}) and {cpu:.2f} times its CPU")
    return int(memory > BOUND)


if __name__ == "__main__":
    sys.exit(main())
