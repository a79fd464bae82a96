"""The hub of examples/hub.rs in Python: it gives two peers different rights by their keys. One may write a notice, both may read it.

    python3 hub.py 4000 hub.key WRITER READER

hub.key is a file with the private key, 64 hexadecimal digits; WRITER and READER are public keys. A connection carries one request, a
line: "put TEXT" or "get".
"""

import sys

from meshpace import tpa


def serve(peer: tpa.socket, writer: bytes, notice: str) -> str:
    """Answers one request, and returns the notice as it then is. The peer has proved that it holds its key before the connection was open."""
    with peer, peer.makefile("rw", encoding="utf-8", newline="\n") as lines:
        command, _, text = lines.readline().rstrip("\n").partition(" ")
        if command == "put" and peer.peer_key == writer:
            notice = text
            lines.write("done\n")
        else:
            lines.write("denied\n" if command == "put" else f"{notice}\n")
    return notice


def main(port: str, own: str, writer: str, reader: str) -> None:
    with open(own, encoding="ascii") as file:
        key = bytes.fromhex(file.readline().split()[0])
    peers = {bytes.fromhex(writer), bytes.fromhex(reader)}
    # Asked whenever somebody connects: the set can be changed meanwhile. Nobody else can connect.
    with tpa.create_server(("", int(port)), key=key, admits=lambda asking: asking in peers) as hub:
        print("listening", flush=True)
        notice = ""
        while True:
            peer, _ = hub.accept()
            try:
                notice = serve(peer, bytes.fromhex(writer), notice)
            except OSError as error:
                # A peer that breaks off harms nobody else.
                print(error, file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
