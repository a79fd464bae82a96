"""Bulk and small messages through one tunnel, for window.sh: `serve` at the far end, `measure SECONDS` at the near one."""

import socket
import statistics
import sys
import threading
import time

BULK, ECHO, NEAR = 9000, 9001, 100  # ports at the far end, and how much higher they are at the near one


def serve() -> None:
    """Takes bulk and says how much has come whenever it is asked; says small messages again."""

    def take(client: socket.socket) -> None:
        total = 0
        while data := client.recv(65536):
            total += len(data)
            taken[0] = total

    def echo(client: socket.socket) -> None:
        while data := client.recv(64):
            client.sendall(data if data[:1] != b"?" else taken[0].to_bytes(64, "big"))

    def each(port: int, serve_one) -> None:
        server = socket.create_server(("127.0.0.1", port))
        while True:
            threading.Thread(target=serve_one, args=(server.accept()[0],), daemon=True).start()

    taken = [0]
    threading.Thread(target=each, args=(BULK, take), daemon=True).start()
    each(ECHO, echo)


def connect(port: int) -> socket.socket:
    """Until the tunnel is there."""
    while True:
        try:
            client = socket.create_connection(("127.0.0.1", port + NEAR))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask(client, b"x") if port == ECHO else None
            return client
        except OSError:
            time.sleep(0.3)


def ask(client: socket.socket, what: bytes) -> bytes:
    client.sendall(what.ljust(64))
    answer = b""
    while len(answer) < 64:
        answer += client.recv(64 - len(answer)) or sys.exit("the tunnel has ended")
    return answer


def measure(seconds: float) -> None:
    """Bulk for so long, and 64 bytes there and back five times a second beside it."""
    echo, bulk = connect(ECHO), connect(BULK)
    threading.Thread(target=lambda: [bulk.sendall(bytes(16384)) for _ in iter(int, 1)], daemon=True).start()
    time.sleep(1)
    before, begun, delays = int.from_bytes(ask(echo, b"?"), "big"), time.monotonic(), []
    while time.monotonic() < begun + seconds:
        asked = time.monotonic()
        ask(echo, b"x")
        delays.append((time.monotonic() - asked) * 1e3)
        time.sleep(max(0.0, 0.2 - delays[-1] / 1e3))
    rate = (int.from_bytes(ask(echo, b"?"), "big") - before) * 8e-3 / (time.monotonic() - begun)
    worst = statistics.quantiles(delays, n=20)[-1]
    print(f"{rate:.0f} kbit/s; echo median {statistics.median(delays):.0f} ms, 95 of 100 within {worst:.0f} ms", flush=True)


if sys.argv[1] == "serve":
    serve()
else:
    measure(float(sys.argv[2]))
