"""Questions and answers over TPA in Python, for `latency`: `latency.py one|two|http COUNT` prints the milliseconds per question.

Both ends are threads of one process. HTTP is that of `http.client` and `http.server`.
"""

import http.client
import http.server
import sys
import threading
import time

from meshpace import tpa


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers each request with two bytes, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Writes no log."""


def receive(socket: tpa.socket, length: int) -> bool:
    """Receives so many bytes; `False` at the end of the stream."""
    while length:
        part = len(socket.recv(length))
        if not part:
            return False
        length -= part
    return True


def answer(listener: tpa.socket, kind: str, length: int) -> None:
    socket, peer = listener.accept()
    with socket:
        if kind == "http":
            Handler(socket, peer, None)
            return
        while receive(socket, length):
            socket.sendall(b"answered")


def main() -> None:
    kind, count = sys.argv[1], int(sys.argv[2])
    writes = 2 if kind == "two" else 1
    with tpa.create_server(("127.0.0.1", 0)) as listener:
        answers = threading.Thread(target=answer, args=(listener, kind, 8 * writes))
        answers.start()
        client = tpa.create_connection(listener.getsockname())
        requests = http.client.HTTPConnection("localhost")
        requests.sock = client
        start = time.monotonic()
        for _ in range(count):
            if kind == "http":
                requests.request("GET", "/")
                assert requests.getresponse().read() == b"ok"
            else:
                for _ in range(writes):
                    client.sendall(b"question")
                assert receive(client, 8)
        print((time.monotonic() - start) * 1e3 / count)
        client.close()
        answers.join()


main()
