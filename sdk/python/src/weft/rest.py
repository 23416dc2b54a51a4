"""The REST transport: calls are POSTs to Weft, packets are POSTs to the app."""

from __future__ import annotations

import http.client
import http.server
import json
import logging
import secrets
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
from typing import Callable, Optional

from .connection import JSON, TLS, Attachable, Connection, Disconnected, Error, read

log = logging.getLogger("weft")

_LARGEST = 64 << 20  # octets of packets that are taken at once


class REST(Connection):
    """A worker by REST."""

    def __init__(self, url: str, tls: Optional[TLS], timeout: float, app: str = ""):
        self._url, self._tls, self._timeout = url, tls, timeout
        self._headers = {"Content-Type": "application/json", **({"Weft-App": app} if app else {})}
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if tls is not None:
            handlers.append(urllib.request.HTTPSHandler(context=tls.client()))
        self._opener = urllib.request.build_opener(*handlers)
        self._closed = threading.Event()

    def call(self, method: str, request: Optional[JSON] = None) -> JSON:
        return self._request("POST", "/v1/call/" + urllib.parse.quote(method), request or {})

    def attach(self, app: Attachable, attached: Callable[[JSON], None] = lambda welcome: None) -> None:
        # A path that nobody else knows: others on this machine cannot ask the app.
        path = "/" + secrets.token_urlsafe(16)
        server = _Server(self._own_address(), app, path)
        scheme = "http"
        if self._tls is not None:
            scheme = "https"
            server.socket = self._tls.server().wrap_socket(server.socket, server_side=True)
        host, port = server.server_address[:2]
        host = f"[{host}]" if ":" in str(host) else host
        hello = {**app.hello, "url": f"{scheme}://{host}:{port}{path}"}
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        serving.start()
        registered = False
        try:
            while not self._closed.is_set():
                welcome = self._request("POST", "/v1/apps", hello)
                if not registered:
                    registered = True
                    attached(welcome)
                elif welcome.get("last_error"):  # it was thrown out, and is back
                    log.warning("%s had been detached: %s", app.name, welcome["last_error"])
                self._closed.wait(max(0.2, int(welcome.get("lease_seconds", 15)) / 3))
        finally:
            if registered:
                try:
                    self._request("DELETE", "/v1/apps/" + app.name)
                except (Error, Disconnected):
                    pass  # it has thrown the app out, or is not there
            server.shutdown()
            serving.join()
            server.server_close()

    def close(self) -> None:
        self._closed.set()

    def _own_address(self) -> str:
        """The address of this machine that Weft can reach."""
        parts = urllib.parse.urlsplit(self._url)
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind, protocol) as s:
                s.connect(address)
                return str(s.getsockname()[0])
        except OSError as e:
            raise Disconnected(f"{self._url}: {e}") from e

    def _request(self, method: str, path: str, body: Optional[JSON] = None) -> JSON:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return read(response.read())
        except urllib.error.HTTPError as e:
            with e:
                text = e.read()
            try:
                raise Error.of(read(text)) from None
            except ValueError:
                raise Disconnected(f"{self._url}{path}: {e}") from e
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise Disconnected(f"{self._url}{path}: {e}") from e


class _Server(http.server.ThreadingHTTPServer):
    """Where Weft POSTs packets."""

    daemon_threads = True

    def __init__(self, host: str, app: Attachable, path: str):
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.app, self.path = app, path
        super().__init__((host, 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a connection of Weft's that has ended


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        if self.path != self.server.path or not 0 < length <= _LARGEST:
            self.close_connection = True
            self.send_error(404)
            return
        try:
            packets = read(self.rfile.read(length))
        except ValueError:
            self.send_error(400)
            return
        body = json.dumps(self.server.app.decide(packets)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass  # one line for each packet is too many
