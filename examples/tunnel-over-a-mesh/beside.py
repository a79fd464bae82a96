"""Small messages and files beside bulk, for beside.sh: `serve NAME` at a far end, `measure WHAT [HOST]` and `neighbour` at a near one.

With HOST nothing goes through a tunnel: small messages go to HOST by the kernel's TCP, and `meshpace send` brings the bulk; or nobody does, and small
messages are datagrams (TRANSPORT=udp). beside.sh has what the variables of the environment mean.
"""

import contextlib
import json
import os
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

# Ports at the far end, and how much higher they are at the near one: for the tunnel, and for the tunnel of the neighbour.
BULK, ASK, MESSAGES, DATAGRAMS, OTHERS, FILES, NEAR, NEXT = 9000, 9001, 9002, 9003, 9004, 9005, 100, 200
SIZE = {"messages": 200, "keys": 64}
# Seconds in which what is late still comes.
LATER = 3
NEIGHBOUR = os.environ.get("NEIGHBOUR", "none")
# All nodes see one file system, so that what came is asked for beside the mesh and not through it; and so is the neighbour to begin.
RUN_DIR = os.environ["RUN_DIR"]
BEGIN = os.path.join(RUN_DIR, "begin")
# The far end that counts the neighbour's bulk.
OTHER = "far" if os.environ["FAR"] == os.environ["HOPS"] else "other"


def summary(delays: list[float], sent: int = 0) -> str:
    """All nodes of an emulation have one clock. What has not come is counted as never, beside those that came."""
    if len(delays) < 20:
        return f"only {len(delays)} measured"
    lost = max(0, sent - len(delays))
    parts = statistics.quantiles(sorted(delays) + [float("inf")] * lost, n=20, method="inclusive")
    told = f"{len(delays)}, p50 {parts[9] * 1e3:.1f} ms, p95 {parts[18] * 1e3:.1f} ms, at most {max(delays) * 1e3:.1f} ms"
    return told + (f", {lost} lost" if sent else "")


def exactly(client: socket.socket, count: int) -> bytes:
    block = b""
    while len(block) < count:
        block += client.recv(count - len(block)) or sys.exit("the connection has ended")
    return block


class Far:
    """What has come since it was asked last, by port."""

    def __init__(self) -> None:
        self.taken, self.delays, self.samples = {BULK: 0, OTHERS: 0}, {MESSAGES: [], DATAGRAMS: []}, []

    def sample(self) -> None:
        while True:
            self.samples.append((self.taken[BULK], self.taken[OTHERS]))
            time.sleep(2)

    def take(self, client: socket.socket, port: int) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                self.taken[port] += len(data)

    def note(self, client: socket.socket, port: int) -> None:
        while True:
            sent = struct.unpack_from("!d", exactly(client, SIZE["messages"]))[0]
            self.delays[port].append(time.monotonic() - sent)

    def datagrams(self) -> None:
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("", DATAGRAMS))
        while True:
            sent = struct.unpack_from("!d", server.recv(2000))[0]
            self.delays[DATAGRAMS].append(time.monotonic() - sent)

    def echo(self, client: socket.socket, _: int) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            client.sendall(exactly(client, SIZE["keys"]))

    def file(self, client: socket.socket, _: int) -> None:
        """A file to the client, or one from there, which is answered with a byte."""
        fetches, size = struct.unpack("!?I", exactly(client, 5))
        if fetches:
            client.sendall(bytes(size))
        else:
            exactly(client, size)
            client.sendall(b"x")
        client.close()

    def answer(self, name: str) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.bind(os.path.join(RUN_DIR, name))
        server.listen()
        while True:
            client = server.accept()[0]
            told = [self.taken[BULK], self.taken[OTHERS], self.delays[MESSAGES], self.delays[DATAGRAMS], self.samples]
            client.sendall(json.dumps(told).encode())
            client.close()
            self.delays, self.samples = {MESSAGES: [], DATAGRAMS: []}, []

    def serve(self, name: str) -> None:
        def each(port: int, serve_one) -> None:
            server = socket.create_server(("", port), backlog=512)
            while True:
                threading.Thread(target=serve_one, args=(server.accept()[0], port), daemon=True).start()

        ports = ((BULK, self.take), (OTHERS, self.take), (MESSAGES, self.note), (FILES, self.file), (ASK, self.echo))
        for port, serve_one in ports:
            threading.Thread(target=each, args=(port, serve_one), daemon=True).start()
        for also in (self.datagrams, self.sample):
            threading.Thread(target=also, daemon=True).start()
        self.answer(name)


def come(name: str = "far") -> list:
    """What has come at a far end since this was asked last; of bulk all since the start."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(os.path.join(RUN_DIR, name))
    return json.loads(client.makefile().read())


def connect(port: int, host: str | None, above: int = NEAR) -> socket.socket:
    """Until the way is there."""
    while True:
        try:
            client = socket.create_connection((host, port) if host else ("127.0.0.1", port + above))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask(client) if port == ASK else None
            return client
        except OSError:
            time.sleep(0.3)


def ask(client: socket.socket) -> None:
    client.sendall(b"x".ljust(SIZE["keys"]))
    exactly(client, SIZE["keys"])


def pour(client: socket.socket) -> None:
    """Bulk without end."""
    with contextlib.suppress(OSError):
        while True:
            client.sendall(bytes(16384))


def neighbour() -> None:
    """Bulk of somebody else: by the kernel's TCP, or through a tunnel of his own."""
    while not os.path.exists(BEGIN):
        time.sleep(0.1)
    if NEIGHBOUR == "tunnel":
        return pour(connect(OTHERS, None, NEXT))
    client = socket.socket()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NEIGHBOUR.encode())
    client.connect((f"n{os.environ['FAR']}", OTHERS))
    pour(client)


def crowd(count: int, period: float) -> None:
    """So many streams through the tunnel: each has bulk without end, or 200 bytes every `period` seconds."""
    clients = [connect(BULK, None) for _ in range(count)]

    def bulk() -> None:
        selector = selectors.DefaultSelector()
        for client in clients:
            client.setblocking(False)
            selector.register(client, selectors.EVENT_WRITE)
        while True:
            for key, _ in selector.select():
                with contextlib.suppress(BlockingIOError):
                    key.fileobj.send(bytes(16384))

    def little() -> None:
        while True:
            for client in clients:
                client.sendall(bytes(200))
                time.sleep(period / count)

    threading.Thread(target=little if period else bulk, daemon=True).start()


def every(period: float, seconds: float, act) -> int:
    """Has something done at even times, whatever it waits for; how often."""
    begin, count = time.monotonic(), 0
    while count * period < seconds:
        due = begin + count * period
        time.sleep(max(0.0, due - time.monotonic()))
        act(due)
        count += 1
    return count


def messages(seconds: float, host: str | None) -> int:
    size = SIZE["messages"]
    if host and os.environ["TRANSPORT"] == "udp":
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        return every(0.1, seconds, lambda due: probe.sendto(struct.pack("!d", due).ljust(size), (host, DATAGRAMS)))
    client = connect(MESSAGES, host)
    return every(0.1, seconds, lambda due: client.sendall(struct.pack("!d", due).ljust(size)))


def datagrams(seconds: float, host: str | None) -> int:
    client, size = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), int(os.environ.get("DATAGRAM", "200"))
    to = (host, DATAGRAMS) if host else ("127.0.0.1", DATAGRAMS + NEAR)
    return every(0.05, seconds, lambda due: client.sendto(struct.pack("!d", due).ljust(size), to))


def files(fetches: bool) -> str:
    """50 files of 20 kB, one after the other, each with a connection of its own."""
    delays, size = [], 20_000
    for _ in range(50):
        begin = time.monotonic()
        client = connect(FILES, None)
        client.sendall(struct.pack("!?I", fetches, size) + (b"" if fetches else bytes(size)))
        exactly(client, size if fetches else 1)
        client.close()
        delays.append(time.monotonic() - begin)
    return f"in {sum(delays):.2f} s: {summary(delays)}"


def small(what: str, seconds: float, ask_by: socket.socket, host: str | None) -> str:
    """Small messages for so long; what became of them."""
    if what == "keys":
        delays, begin = [], time.monotonic()
        while time.monotonic() < begin + seconds:
            asked = time.monotonic()
            ask(ask_by)
            delays.append(time.monotonic() - asked)
            time.sleep(max(0.0, 0.2 - delays[-1]))
        return summary(delays)
    if what in ("fetch", "store"):
        return files(what == "fetch")
    if what == "none":
        time.sleep(seconds)
        return "none"
    sent, counts = {}, [threading.Thread(target=lambda: sent.update(messages=messages(seconds, host)))]
    if what == "robot":
        counts.append(threading.Thread(target=lambda: sent.update(datagrams=datagrams(seconds, host))))
    for one in counts:
        one.start()
    for one in counts:
        one.join()
    # Bulk goes on meanwhile.
    time.sleep(LATER)
    came = come()
    if host and os.environ["TRANSPORT"] == "udp":
        return summary(came[3], sent["messages"])
    told = summary(came[2], sent["messages"])
    return told + (f"; datagrams: {summary(came[3], sent['datagrams'])}" if what == "robot" else "")


def jain(samples: list) -> float:
    """Mean of Jain's index of two over windows of 2 s."""
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(samples, samples[1:])]
    return statistics.mean((x + y) ** 2 / (2 * (x * x + y * y)) for x, y in steps if x + y)


def measure(what: str, host: str | None) -> None:
    seconds, is_probe = float(os.environ["SECONDS_LONG"]), os.environ["TRANSPORT"] == "udp"
    asking, sending = connect(ASK, host), None
    count, _, period = os.environ.get("CROWD", "0").partition("/")
    first = 1 if NEIGHBOUR == "none" and count == "0" else 5
    if host and not is_probe:
        command = [os.environ["MESHPACE"], "send", host, "--transport", "quiet-train", "--interface", "udp"]
        # As long as what is measured of a tunnel's bulk, and its beginning.
        command += ["--path-rate", "11 Mbit/s", "--seconds", str(first + seconds + LATER), "--format", "json"]
        sending = subprocess.Popen(command, stdout=subprocess.PIPE)
    elif not is_probe and os.environ.get("BULK", "yes") == "yes":
        threading.Thread(target=pour, args=(connect(BULK, host),), daemon=True).start()
    crowd(int(count), float(period or 0))
    open(BEGIN, "w").close()
    time.sleep(first)
    (before, other), begun = (come(), come(OTHER)), time.monotonic()
    told = small(what, seconds, asking, host)
    (after, other_after), took = (come(), come(OTHER)), time.monotonic() - begun
    rates = [(now - then) * 8e-3 / took for now, then in ((after[0], before[0]), (other_after[1], other[1]))]
    if sending:
        rates[0] = json.loads(sending.communicate()[0])["aggregate_goodput_bps"] * 1e-3
    text = f"bulk {rates[0]:.0f} kbit/s; {what}: {told}"
    if NEIGHBOUR != "none":
        # Answers about messages have taken samples away: those since then.
        text += f"; neighbour {rates[1]:.0f} kbit/s, share {rates[0] / (sum(rates) or 1):.3f}"
        # Of one far end alone: two do not take their samples at once.
        text += f", J2 {jain(after[4]):.3f}" if OTHER == "far" and len(after[4]) > 5 else ""
    print(text, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        Far().serve(sys.argv[2])
    elif sys.argv[1] == "neighbour":
        neighbour()
    else:
        measure(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
