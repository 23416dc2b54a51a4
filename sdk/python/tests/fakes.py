"""Fakes of Weft's side, one for each transport. They attach one app at a time,
ask it, and answer the method hosts.FindHost."""

from __future__ import annotations

import base64
import concurrent.futures
import hashlib
import http.server
import json
import queue
import socket
import struct
import threading
import urllib.request
from typing import Any, Optional

import grpc

from weft.rpc import Messages, from_json, to_json

WELCOME = {"name": "app", "timeout_ms": 1000, "max_batch": 256, "lease_seconds": 1}
NOT_FOUND = {"code": 5, "message": "host is not known"}


def find_host(request: dict) -> Optional[dict]:
    """The answer of hosts.FindHost; None if it knows no such host."""
    address = request.get("address", "")
    return {"mac": "02:00:00:00:00:01", "ipv4": [address]} if address.startswith("10.") else None


class Fake:
    """What the fakes have in common."""

    def __init__(self) -> None:
        self.hellos: "queue.Queue[dict]" = queue.Queue()
        self.left = threading.Event()
        self.holds: "queue.Queue[dict]" = queue.Queue()  # requests of hosts.SetHold and hosts.ApproveHost
        self.callers: "queue.Queue[str]" = queue.Queue()  # the app's name that each call has come with
        self.refusal: Optional[dict] = None  # the error that the next hello gets

    def ask(self, packets: dict) -> dict:
        """Has the app decide."""
        raise NotImplementedError

    def drop(self) -> None:
        """Cuts the app's connection."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class FakeREST(Fake):
    def __init__(self) -> None:
        super().__init__()
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/v1/apps":
                    if fake.refusal:
                        refusal, fake.refusal = fake.refusal, None
                        self.answer(400, refusal)
                        return
                    fake.url = body.pop("url")
                    fake.hellos.put(body)
                    self.answer(200, WELCOME)
                elif self.path == "/v1/call/hosts.FindHost":
                    fake.callers.put(self.headers.get("Weft-App", ""))
                    host = find_host(body)
                    self.answer(404 if host is None else 200, NOT_FOUND if host is None else host)
                elif self.path in ("/v1/call/hosts.SetHold", "/v1/call/hosts.ApproveHost"):
                    fake.holds.put(body)
                    self.answer(200, {})
                else:
                    self.answer(501, {"code": 12, "message": "there is no such method"})

            def do_DELETE(self) -> None:
                fake.left.set()
                self.answer(200, {})

            def answer(self, status: int, value: dict) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = "http://127.0.0.1:%d" % self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def ask(self, packets: dict) -> dict:
        request = urllib.request.Request(self.url, json.dumps(packets).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=5) as response:
            return json.load(response)

    def drop(self) -> None:
        pass  # there is no connection

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class FakeWS(Fake):
    """A WebSocket server, as far as it is needed here (RFC 6455)."""

    def __init__(self) -> None:
        super().__init__()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "ws://127.0.0.1:%d" % self._listener.getsockname()[1]
        self._answers: "queue.Queue[dict]" = queue.Queue()
        self._app: Optional[socket.socket] = None
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                conn, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn: socket.socket) -> None:
        with conn, conn.makefile("rb") as file:
            key, name = b"", ""
            while (line := file.readline().strip()):
                if line.lower().startswith(b"weft-app:"):
                    name = line.split(b":")[1].strip().decode()
                if line.lower().startswith(b"sec-websocket-key:"):
                    key = line.split(b":")[1].strip()
            accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            conn.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
            while True:
                head = file.read(2)
                if len(head) < 2 or head[0] & 15 == 8:
                    if len(head) == 2:
                        conn.sendall(b"\x88\x00")
                    self.left.set()
                    return
                length = head[1] & 127
                if length == 126:
                    length = struct.unpack(">H", file.read(2))[0]
                mask, body = file.read(4), file.read(length)
                self._frame(conn, name, json.loads(bytes(b ^ mask[i & 3] for i, b in enumerate(body))))

    def _frame(self, conn: socket.socket, name: str, frame: dict) -> None:
        if "hello" in frame:
            if self.refusal:
                refusal, self.refusal = self.refusal, None
                self._send(conn, {"error": refusal})
                conn.sendall(b"\x88\x00")
                return
            self._app = conn
            self._send(conn, {"welcome": WELCOME})
            self.hellos.put(frame["hello"])
        elif "decisions" in frame:
            self._answers.put(frame["decisions"])
        elif frame["call"] == "hosts.FindHost":
            self.callers.put(name)
            host = find_host(frame["request"])
            self._send(conn, {"id": frame["id"], "error": NOT_FOUND} if host is None else {"id": frame["id"], "response": host})
        elif frame["call"] in ("hosts.SetHold", "hosts.ApproveHost"):
            self.holds.put(frame["request"])
            self._send(conn, {"id": frame["id"], "response": {}})
        else:
            self._send(conn, {"id": frame["id"], "error": {"code": 12, "message": "there is no such method"}})

    def _send(self, conn: socket.socket, frame: dict) -> None:
        body = json.dumps(frame).encode()
        conn.sendall((bytes([0x81, len(body)]) if len(body) < 126 else b"\x81\x7e" + struct.pack(">H", len(body))) + body)

    def ask(self, packets: dict) -> dict:
        assert self._app is not None
        self._send(self._app, {"packets": packets})
        return self._answers.get(timeout=5)

    def drop(self) -> None:
        assert self._app is not None
        self._app.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._listener.fileno() >= 0:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self._thread.join()


class FakeRPC(Fake):
    def __init__(self) -> None:
        super().__init__()
        messages = Messages()
        self._from_app, self._to_app = messages.type("FromApp"), messages.type("ToApp")
        self._outbox: "queue.Queue[Any]" = queue.Queue()
        self._answers: "queue.Queue[dict]" = queue.Queue()
        name, req, resp = messages.method("hosts.FindHost")

        def call(request: Any, context: Any) -> Any:
            self.callers.put(dict(context.invocation_metadata()).get("weft-app", ""))
            host = find_host(to_json(request))
            if host is None:
                context.abort(grpc.StatusCode.NOT_FOUND, NOT_FOUND["message"])
            return from_json(host, resp)

        def hold(answer: Any) -> Any:
            return lambda request, context: self.holds.put(to_json(request)) or answer()

        handlers = {
            name: grpc.unary_unary_rpc_method_handler(call, req.FromString, resp.SerializeToString),
            "/weft.v1.Apps/Attach": grpc.stream_stream_rpc_method_handler(self._attach, self._from_app.FromString, self._to_app.SerializeToString),
        }

        for method in ("hosts.SetHold", "hosts.ApproveHost"):
            path, asks, answers = messages.method(method)
            handlers[path] = grpc.unary_unary_rpc_method_handler(hold(answers), asks.FromString, answers.SerializeToString)

        class Generic(grpc.GenericRpcHandler):
            def service(self, details: Any) -> Any:
                return handlers.get(details.method)

        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), [Generic()])
        self.address = "grpc://127.0.0.1:%d" % self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def _attach(self, stream: Any, context: Any) -> Any:
        hello = to_json(next(stream))["hello"]
        if self.refusal:
            refusal, self.refusal = self.refusal, None
            context.abort(next(c for c in grpc.StatusCode if c.value[0] == refusal["code"]), refusal["message"])
        outbox = self._outbox = queue.Queue()
        context.add_callback(lambda: (outbox.put(None), self.left.set()))

        def read() -> None:
            try:
                for message in stream:
                    self._answers.put(to_json(message)["decisions"])
            except Exception:
                pass  # it has left

        threading.Thread(target=read, daemon=True).start()
        yield from_json({"welcome": WELCOME}, self._to_app)
        self.hellos.put(hello)
        while (frame := outbox.get()) is not None:
            yield from_json(frame, self._to_app)

    def ask(self, packets: dict) -> dict:
        self._outbox.put({"packets": packets})
        return self._answers.get(timeout=5)

    def drop(self) -> None:
        self._outbox.put(None)

    def close(self) -> None:
        self._server.stop(0).wait()
