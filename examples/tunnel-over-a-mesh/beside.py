"""Small messages beside bulk, for beside.sh: `serve` at the far end, `measure SECONDS WHAT [HOST]` at the near one.

WHAT is `messages` (200 bytes, ten times a second, one way), `keys` (64 bytes there and back, five times a second) or `none`. With HOST nothing
goes through a tunnel: small messages go to HOST by the kernel's TCP, and `meshpace send` brings the bulk.
"""

import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

BULK, ASK, MESSAGES, NEAR = 9000, 9001, 9002, 100  # ports at the far end, and how much higher they are at the near one
SIZE = {"messages": 200, "keys": 64}


def summary(delays: list[float]) -> str:
    """All nodes of an emulation have one clock."""
    if len(delays) < 20:
        return f"only {len(delays)} measured"
    parts = statistics.quantiles(delays, n=20)
    return f"{len(delays)}, p50 {parts[9] * 1e3:.1f} ms, p95 {parts[18] * 1e3:.1f} ms, at most {max(delays) * 1e3:.1f} ms"


def exactly(client: socket.socket, count: int) -> bytes:
    block = b""
    while len(block) < count:
        block += client.recv(count - len(block)) or sys.exit("the connection has ended")
    return block


def serve() -> None:
    """Takes bulk and messages, says keystrokes again, and tells what has come whenever it is asked."""
    taken, delays = [0], []

    def take(client: socket.socket) -> None:
        while data := client.recv(65536):
            taken[0] += len(data)

    def note(client: socket.socket) -> None:
        while True:
            sent = struct.unpack_from("!d", exactly(client, SIZE["messages"]))[0]
            delays.append(time.monotonic() - sent)

    def answer(client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            asked = exactly(client, SIZE["keys"])
            answers = {b"?": str(taken[0]), b"!": summary(delays)}
            client.sendall(answers[asked[:1]].encode().ljust(len(asked)) if asked[:1] in answers else asked)
            if asked[:1] == b"?":
                delays.clear()

    def each(port: int, serve_one) -> None:
        server = socket.create_server(("", port))
        while True:
            threading.Thread(target=serve_one, args=(server.accept()[0],), daemon=True).start()

    for port, serve_one in ((BULK, take), (MESSAGES, note)):
        threading.Thread(target=each, args=(port, serve_one), daemon=True).start()
    each(ASK, answer)


def connect(port: int, host: str | None) -> socket.socket:
    """Until the way is there."""
    while True:
        try:
            client = socket.create_connection((host, port) if host else ("127.0.0.1", port + NEAR))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask(client, b"x") if port == ASK else None
            return client
        except OSError:
            time.sleep(0.3)


def ask(client: socket.socket, what: bytes) -> str:
    client.sendall(what.ljust(SIZE["keys"]))
    return exactly(client, SIZE["keys"]).decode().strip()


def small(what: str, seconds: float, ask_by: socket.socket, host: str | None) -> str:
    """Small messages for so long; what became of them."""
    period, delays = {"messages": 0.1, "keys": 0.2, "none": 1.0}[what], []
    messages = connect(MESSAGES, host) if what == "messages" else None
    due = begin = time.monotonic()
    while due < begin + seconds:
        if messages:
            messages.sendall(struct.pack("!d", time.monotonic()).ljust(SIZE["messages"]))
        elif what == "keys":
            asked = time.monotonic()
            ask(ask_by, b"x")
            delays.append(time.monotonic() - asked)
        due = max(due + period, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
    time.sleep(1)
    return ask(ask_by, b"!") if messages else summary(delays) if delays else "none"


def measure(seconds: float, what: str, host: str | None) -> None:
    asking = connect(ASK, host)
    if host:
        command = [os.environ["MESHPACE"], "send", host, "--transport", "quiet-train", "--interface", "udp"]
        command += ["--path-rate", "11 Mbit/s", "--seconds", str(seconds + 2), "--format", "json"]
        sending = subprocess.Popen(command, stdout=subprocess.PIPE)
        time.sleep(1)
        ask(asking, b"?")
        told = small(what, seconds, asking, host)
        rate = json.loads(sending.communicate()[0])["aggregate_goodput_bps"] * 1e-3
    else:
        bulk = connect(BULK, host)
        threading.Thread(target=lambda: [bulk.sendall(bytes(16384)) for _ in iter(int, 1)], daemon=True).start()
        time.sleep(1)
        before, begun = int(ask(asking, b"?")), time.monotonic()
        told = small(what, seconds, asking, host)
        rate = (int(ask(asking, b"?")) - before) * 8e-3 / (time.monotonic() - begun)
    print(f"bulk {rate:.0f} kbit/s; {what}: {told}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        measure(float(sys.argv[2]), sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None)
