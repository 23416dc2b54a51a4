"""The WebSocket transport: packets, decisions and calls are frames of JSON."""

from __future__ import annotations

import json
import queue
import socket
import threading
from typing import Any, Callable, Optional

try:
    import websocket
except ImportError as e:  # pragma: no cover
    raise ImportError("ws:// needs websocket-client: pip install 'weft-sdk[ws]', or apt-get install python3-websocket") from e

from .connection import JSON, TLS, Attachable, Connection, Disconnected, Error, read


class WebSocket(Connection):
    """A worker by WebSocket."""

    def __init__(self, url: str, tls: Optional[TLS], timeout: float, app: str = ""):
        self._url, self._timeout = url, timeout
        options: JSON = {"suppress_origin": True, "enable_multithread": True, "http_no_proxy": ["*"], "timeout": timeout}
        if app:
            options["header"] = {"Weft-App": app}
        if tls is not None:
            options["sslopt"] = {"context": tls.client()}
        try:
            self._socket = websocket.create_connection(url + "/v1/apps", **options)
        except (OSError, websocket.WebSocketException) as e:
            raise Disconnected(f"{url}: {e}") from e
        self._socket.settimeout(None)
        self._lock = threading.Lock()  # guards what follows
        self._last = 0
        self._calls: dict[int, "queue.Queue[Any]"] = {}
        self._why: Optional[Exception] = None  # the connection is over
        self._inbox: "queue.Queue[Any]" = queue.Queue()  # welcome, packets; None at the end
        self._closing = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def call(self, method: str, request: Optional[JSON] = None) -> JSON:
        answer: "queue.Queue[Any]" = queue.Queue(1)
        with self._lock:
            if self._why is not None:
                raise self._why
            self._last += 1
            number = self._last
            self._calls[number] = answer
        try:
            self._send({"id": number, "call": method, "request": request or {}})
            frame = answer.get(timeout=self._timeout)
        except queue.Empty:
            raise Disconnected(f"{method}: no answer within {self._timeout} s") from None
        finally:
            with self._lock:
                self._calls.pop(number, None)
        if isinstance(frame, Exception):
            raise frame
        if "error" in frame:
            raise Error.of(frame["error"])
        return frame["response"]

    def attach(self, app: Attachable, attached: Callable[[JSON], None] = lambda welcome: None) -> None:
        self._send({"hello": app.hello})
        while True:
            frame = self._inbox.get()
            if frame is None:
                if self._closing:
                    return
                raise self._why or Disconnected(self._url)
            if "welcome" in frame:
                attached(frame["welcome"])
                continue
            decisions = app.decide(frame["packets"])
            if app.kind == "stage":
                self._send({"decisions": decisions})

    def close(self) -> None:
        self._closing = True
        try:
            self._socket.send_close()
        except (OSError, websocket.WebSocketException):
            pass  # it is closed
        self._wait(1)  # for Weft to say the same
        plain = self._socket.sock
        if plain is not None:
            try:
                plain.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is closed
        self._wait(1)
        self._socket.shutdown()

    def _wait(self, seconds: float) -> None:
        """Waits for the reader to end."""
        if self._reader is not threading.current_thread():
            self._reader.join(seconds)

    def _send(self, frame: JSON) -> None:
        try:
            self._socket.send(json.dumps(frame))
        except (OSError, websocket.WebSocketException) as e:
            self._wait(2)  # for the reader, which may know more
            raise self._why or Disconnected(f"{self._url}: {e}") from e

    def _read(self) -> None:
        why: Exception = Disconnected(f"{self._url}: the connection is closed")
        try:
            while True:
                text = self._socket.recv()
                if not text:
                    break
                frame = read(text)
                if "id" in frame:
                    with self._lock:
                        answer = self._calls.get(int(frame["id"]))
                    if answer is not None:
                        answer.put(frame)
                elif "error" in frame:
                    why = Error.of(frame["error"])
                else:
                    self._inbox.put(frame)
        except (OSError, ValueError, websocket.WebSocketException) as e:
            if not isinstance(why, Error):
                why = Disconnected(f"{self._url}: {e}")
        with self._lock:
            self._why = why
            for answer in self._calls.values():
                answer.put(why)
        self._inbox.put(None)
