"""Other people's programs over TPA: an MQTT client and broker, and an ASGI server. Slow: `MESHPACE_SLOW=1`."""

from __future__ import annotations

import asyncio
import http.client
import threading
from contextlib import contextmanager
from typing import Any, Awaitable, Callable, Iterator

import pytest
from conftest import slow_only

from meshpace import tpa, tpa_asyncio

pytestmark = slow_only("an MQTT client and broker, and an ASGI server, over TPA")

#: Seconds for what takes a few on a machine that is not busy.
LONG = 300.0


@contextmanager
def served(serve: Callable[[], Awaitable[tpa_asyncio.Server]]) -> Iterator[tpa.Address]:
    """Runs a server in an event loop of another thread; its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(_awaited(serve()), loop).result(LONG)
        yield server.address
        loop.call_soon_threadsafe(server.close)
        asyncio.run_coroutine_threadsafe(server.wait_closed(), loop).result(LONG)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _awaited(what: Awaitable[tpa_asyncio.Server]) -> tpa_asyncio.Server:
    return await what


def test_a_thousand_mqtt_messages_of_quality_1_arrive() -> None:
    paho: Any = pytest.importorskip("paho.mqtt.client")
    amqtt: Any = pytest.importorskip("amqtt.broker")
    plugins = {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}
    # Its own listener is of no use, but it wants one.
    config = {"listeners": {"default": {"type": "tcp", "bind": "127.0.0.1:0"}}, "plugins": plugins}

    async def serve() -> tpa_asyncio.Server:
        broker = amqtt.Broker(config)
        await broker.start()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await broker.stream_connected(reader, writer, "default")

        return await tpa_asyncio.start_server(connected, "127.0.0.1", 0)

    with served(serve) as address:

        class Client(paho.Client):  # type: ignore[misc]
            def _create_socket_connection(self) -> tpa.socket:
                return tpa.create_connection(address, timeout=LONG)

        got: list[bytes] = []
        subscribed, whole = threading.Event(), threading.Event()

        def on_message(client: Any, data: Any, message: Any) -> None:
            got.append(message.payload)
            if len(set(got)) == 1000:
                whole.set()

        listener, sender = (Client(paho.CallbackAPIVersion.VERSION2, client_id=name) for name in ("listener", "sender"))
        listener.on_message = on_message
        listener.on_connect = lambda client, *_: client.subscribe("hills/#", qos=1)
        listener.on_subscribe = lambda *_: subscribed.set()
        for client in (listener, sender):
            client.connect("x", 1883)
            client.loop_start()
        assert subscribed.wait(LONG)
        sent = [f"message {number}".encode() for number in range(1000)]
        published = [sender.publish("hills/far", text, qos=1) for text in sent]
        for message in published:
            message.wait_for_publish(LONG)
        assert whole.wait(LONG)
        assert sorted(set(got)) == sorted(sent)
        for client in (sender, listener):
            client.disconnect()
            client.loop_stop()


async def application(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that answers with the path and the length of the body."""
    length, more = 0, True
    while more:
        message = await receive()
        length, more = length + len(message.get("body", b"")), message.get("more_body", False)
    body = f"{scope['path']} {length}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})


def test_an_asgi_server_answers_two_hundred_requests() -> None:
    uvicorn: Any = pytest.importorskip("uvicorn")
    pytest.importorskip("h11")
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.server import ServerState

    async def serve() -> tpa_asyncio.Server:
        config = uvicorn.Config(application, lifespan="off", log_level="warning")
        config.load()
        state = ServerState()
        return await tpa_asyncio.create_server(lambda: H11Protocol(config, state, {}), "127.0.0.1", 0)

    with served(serve) as address:
        client: Any = http.client.HTTPConnection("over.the.hills")
        client.sock = tpa.create_connection(address, timeout=LONG)
        for number in range(200):
            client.request("POST", f"/{number}", body=bytes(100 * number))
            answer = client.getresponse()
            assert (answer.status, answer.read()) == (200, f"/{number} {100 * number}".encode())
        client.close()
