#!/usr/bin/env python3
"""Messages over plain TCP that know when they were sent.

robot.py receive NAME PORT                            takes one connection; at its end prints NAME, count, p50 and p99 of the latency
robot.py send HOST PORT BYTES PERIOD SECONDS [CONTROL]  a message of BYTES every PERIOD s, 0 for one after the other

All nodes of an emulation have the same clock, so latency is one way: from the moment at which a message should leave to its last byte.
"""

import signal
import socket
import struct
import sys
import time

HEADER = struct.Struct("!dI")


def exactly(connection, count):
    block = bytearray()
    while len(block) < count:
        part = connection.recv(count - len(block))
        if not part:
            raise EOFError
        block += part
    return bytes(block)


def receive(name, port):
    latencies, size = [], 0

    def tell(*_):
        latencies.sort()
        if latencies:
            p50, p99 = (latencies[min(int(len(latencies) * share), len(latencies) - 1)] * 1e3 for share in (0.5, 0.99))
            print(f"{name}: {len(latencies)} messages of {size} bytes, p50 {p50:.1f} ms, p99 {p99:.1f} ms", flush=True)
        else:
            print(f"{name}: nothing", flush=True)
        sys.exit(0)

    signal.signal(signal.SIGTERM, tell)
    listener = socket.create_server(("", port))
    connection, _ = listener.accept()
    try:
        while True:
            sent, size = HEADER.unpack(exactly(connection, HEADER.size))
            exactly(connection, size)
            latencies.append(time.monotonic() - sent)
    except (EOFError, ConnectionError):
        tell()


def connect(host, port, control):
    patience = time.monotonic() + 30
    while True:
        try:
            connection = socket.socket()
            if control:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
            connection.connect((host, port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except ConnectionRefusedError:
            if time.monotonic() > patience:
                raise
            time.sleep(0.2)


def send(host, port, size, period, seconds, control=""):
    connection = connect(host, port, control)
    begin = time.monotonic()
    due = begin
    while due < begin + seconds:
        # One that could not leave in time, because those before it were not out, is late from then on.
        connection.sendall(HEADER.pack(due if period else time.monotonic(), size) + bytes(size))
        due = due + period if period else time.monotonic()
        time.sleep(max(0, due - time.monotonic()))
    connection.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["receive"] and len(sys.argv) == 4:
        receive(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["send"] and len(sys.argv) in (7, 8):
        host, port, size, period, seconds, *control = sys.argv[2:]
        send(host, int(port), int(size), float(period), float(seconds), *control)
    else:
        sys.exit(__doc__)
