"""`python -m deploy.fake_redis PORT`: an imitation of Redis for any platform. Handles about ten tasks a second; stores nothing."""

import sys

from fakeredis import TcpFakeServer


def main() -> None:
    """Serve until killed."""
    server = TcpFakeServer(("127.0.0.1", int(sys.argv[1])), server_type="redis")
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
