"""What connections to a worker of Weft have in common, whichever the transport."""

from __future__ import annotations

import abc
import dataclasses
import json
import ssl
from typing import Any, Callable, Iterator, Optional, Protocol

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


class Attachable(Protocol):
    """What a connection attaches: a weft.App."""

    name: str
    kind: str

    @property
    def hello(self) -> JSON:
        """What it says of itself."""

    def decide(self, packets: JSON) -> JSON:
        """Answers one Packets message with a Decisions message, both as JSON."""


class Connection(abc.ABC):
    """A connection to one worker; any thread may use it, and `with` closes it."""

    @abc.abstractmethod
    def call(self, method: str, request: Optional[JSON] = None) -> JSON:
        """Calls a method, such as "hosts.FindHost", and returns its response.

        Requests and responses are those of the .proto files as JSON, with the
        names that they have there. Raises Error, or Disconnected.
        """

    def events(self, *subjects: str, position: Optional[JSON] = None) -> Iterator[Optional[JSON]]:
        """The controller's events, for as long as they are wanted.

        First comes the state, the last event about each thing, then each event as
        it happens: a dict with number, time, subject, state, event and position.
        With the position of the last one that was seen, those that follow it
        come. None says that what was known before is void, because events were
        missed or the controller was started again: the state follows. So does
        every beginning. Raises Error, or Disconnected; then go on by position.
        """
        while True:
            answer = self.call("gateway.ReadEvents", {"position": position, "subjects": list(subjects), "wait_ms": 10_000})
            if answer["restarted"]:
                yield None
            position = answer["position"]
            for event in answer["events"]:
                # Of an answer with state, all is; the last of it ends with the number that it is told up to.
                upto = (position["state"] if int(position["state"]) else position["number"]) if event["state"] else 0
                yield {**event, "position": {"epoch": position["epoch"], "number": event["number"], "state": upto}}

    @abc.abstractmethod
    def attach(self, app: Attachable, attached: Callable[[JSON], None] = lambda welcome: None) -> None:
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


def read(text: "str | bytes") -> JSON:
    """Reads a JSON object."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("want a JSON object")
    return value
