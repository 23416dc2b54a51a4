"""Choosing a transport by a URL."""

from __future__ import annotations

import urllib.parse
from typing import Optional

from .connection import TLS, Connection


def connect(url: str, tls: Optional[TLS] = None, timeout: float = 30, app: str = "") -> Connection:
    """Connects to a worker.

    The URL's scheme is the transport: http, ws or grpc, and with certificates
    https, wss or grpcs. `timeout` is how many seconds a call may take. `app` is the
    name of the app that calls, of which the plan says what it may change; without it
    only what reads may be called, unless the certificate names an app.
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
        return REST(f"{scheme}://{parts.netloc}", tls, timeout, app)
    if scheme in ("ws", "wss"):
        from .ws import WebSocket
        return WebSocket(f"{scheme}://{parts.netloc}", tls, timeout, app)
    if scheme in ("grpc", "grpcs"):
        from .rpc import RPC
        return RPC(parts.netloc, tls, timeout, app)
    raise ValueError(f"url {url!r}: want http, ws or grpc, or https, wss or grpcs with certificates")
