"""Stages, observers and clients of the Weft SDN controller.

A stage decides on the packets that switches send to the controller; an
observer sees copies of them; a client calls the methods of Weft's services.
All three work over REST (http://), the WebSocket (ws://) and gRPC (grpc://):
the URL says which, and nothing else changes. docs/apps.md of Weft is the
contract that this package speaks.
"""

from .app import DONE, DROP, NEXT, App, Observer, Packet, Stage
from .connection import TLS, Connection, Disconnected, Error
from .transports import connect

__all__ = [
    "DONE", "DROP", "NEXT", "App", "Connection", "Disconnected", "Error",
    "Observer", "Packet", "Stage", "TLS", "connect",
]
