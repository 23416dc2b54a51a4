"""Connections to a worker of Weft, over any of its transports."""

from __future__ import annotations

import abc
import dataclasses
import json
import ssl
import urllib.parse
from typing import TYPE_CHECKING, Any, Callable, Optional

if TYPE_CHECKING:
    from .app import App

JSON = dict[str, Any]

# Kinds of errors: the status codes of gRPC.
INVALID_ARGUMENT, PERMISSION_DENIED, UNIMPLEMENTED, UNAVAILABLE, UNAUTHENTICATED = 3, 7, 12, 14, 16


class Error(Exception):
    """What Weft answers when it refuses: the kind, a gRPC status code, and a text."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code
        self.message = message

    @classmethod
    def of(cls, failure: JSON) -> "Error":
        """The error that Weft has written as JSON."""
        return cls(int(failure.get("code", 2)), str(failure.get("message", failure)))

    @property
    def final(self) -> bool:
        """Whether to try the same again is of no use."""
        return self.code in (INVALID_ARGUMENT, PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED)


class Disconnected(Exception):
    """The connection could not be made, or was lost."""


@dataclasses.dataclass(frozen=True)
class TLS:
    """The files (PEM) by which an app proves who it is, as `weft certs` makes them."""

    ca: str
    cert: str
    key: str

    def client(self) -> ssl.SSLContext:
        """What checks the worker and shows it the app's certificate."""
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.ca)
        context.load_cert_chain(self.cert, self.key)
        return context

    def server(self) -> ssl.SSLContext:
        """What a REST app serves with: only those with a certificate may ask it."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.ca)
        context.load_cert_chain(self.cert, self.key)
        context.verify_mode = ssl.CERT_REQUIRED
        return context


class Connection(abc.ABC):
    """A connection to one worker; any thread may use it, and `with` closes it."""

    @abc.abstractmethod
    def call(self, method: str, request: Optional[JSON] = None) -> JSON:
        """Calls a method, such as "hosts.FindHost", and returns its response.

        Requests and responses are those of the .proto files as JSON, with the
        names that they have there. Raises Error, or Disconnected.
        """

    @abc.abstractmethod
    def attach(self, app: "App", attached: Callable[[JSON], None] = lambda welcome: None) -> None:
        """Attaches an app, and has it decide until it is stopped.

        `attached` is called with Weft's welcome. Raises Error when Weft refuses
        the app or throws it out, Disconnected when the connection is lost.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the connection; an app that is attached by it is detached."""

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(url: str, tls: Optional[TLS] = None, timeout: float = 30) -> Connection:
    """Connects to a worker.

    The URL's scheme is the transport: http, ws or grpc, and with certificates
    https, wss or grpcs. `timeout` is how many seconds a call may take.
    """
    parts = urllib.parse.urlsplit(url)
    scheme, secure = parts.scheme, parts.scheme in ("https", "wss", "grpcs")
    if not parts.netloc or parts.path not in ("", "/"):
        raise ValueError(f"url {url!r}: want SCHEME://HOST:PORT")
    if secure != (tls is not None):
        raise ValueError(f"url {url!r}: https, wss and grpcs need tls=weft.TLS(…), and the others take none")
    # What a transport needs is imported when it is used.
    if scheme in ("http", "https"):
        from .rest import REST
        return REST(f"{scheme}://{parts.netloc}", tls, timeout)
    if scheme in ("ws", "wss"):
        from .ws import WebSocket
        return WebSocket(f"{scheme}://{parts.netloc}", tls, timeout)
    if scheme in ("grpc", "grpcs"):
        from .rpc import RPC
        return RPC(parts.netloc, tls, timeout)
    raise ValueError(f"url {url!r}: want http, ws or grpc, or https, wss or grpcs with certificates")


def read(text: "str | bytes") -> JSON:
    """Reads a JSON object."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("want a JSON object")
    return value
