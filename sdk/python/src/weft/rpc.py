"""The gRPC transport. The messages are made from Weft's own descriptors, so
that no code is generated: api.binpb is a google.protobuf.FileDescriptorSet."""

from __future__ import annotations

import importlib.resources
import inspect
import queue
import threading
from typing import Any, Callable, Iterator, Optional

try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
except ImportError as e:  # pragma: no cover
    raise ImportError("grpc:// needs grpcio and protobuf: pip install 'weft-sdk[grpc]', or apt-get install python3-grpcio python3-protobuf") from e

from .connection import INVALID_ARGUMENT, UNIMPLEMENTED, JSON, TLS, Attachable, Connection, Disconnected, Error

# Fields without a value are written too, as Weft does; the option has two names.
_ALL = ("always_print_fields_with_no_presence"
        if "always_print_fields_with_no_presence" in inspect.signature(json_format.MessageToDict).parameters
        else "including_default_value_fields")


class Messages:
    """The messages and methods of Weft, by their names."""

    def __init__(self) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        files = descriptor_pb2.FileDescriptorSet.FromString(importlib.resources.files("weft").joinpath("api.binpb").read_bytes())
        for file in files.file:  # each behind those that it needs
            self._pool.AddSerializedFile(file.SerializeToString())

    def type(self, name: str) -> Any:
        """The class of a message."""
        return self._of(self._pool.FindMessageTypeByName("weft.v1." + name))

    def method(self, method: str) -> "tuple[str, Any, Any]":
        """A method's name in gRPC, and the classes of its request and response."""
        service, _, name = method.partition(".")
        try:
            found = self._pool.FindServiceByName("weft.v1." + service[:1].upper() + service[1:]).methods_by_name[name]
        except KeyError:
            raise Error(UNIMPLEMENTED, f"method {method!r} is not in Weft's .proto files") from None
        return f"/{found.containing_service.full_name}/{name}", self._of(found.input_type), self._of(found.output_type)

    def _of(self, descriptor: Any) -> Any:
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        return message_factory.MessageFactory(self._pool).GetPrototype(descriptor)


def to_json(message: Any) -> JSON:
    """A message as JSON, as Weft writes it."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=message.DESCRIPTOR.file.pool, **{_ALL: True})


def from_json(value: JSON, kind: Any) -> Any:
    """The message that JSON describes; Error if it describes none."""
    try:
        return json_format.ParseDict(value, kind())
    except json_format.ParseError as e:
        raise Error(INVALID_ARGUMENT, str(e)) from e


class RPC(Connection):
    """A worker by gRPC."""

    def __init__(self, address: str, tls: Optional[TLS], timeout: float, app: str = ""):
        self._timeout = timeout
        self._metadata = [("weft-app", app)] if app else []
        self._messages = Messages()
        options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 64 << 20)]
        if tls is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            files = [open(name, "rb").read() for name in (tls.ca, tls.key, tls.cert)]
            self._channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(*files), options)
        self._lock = threading.Lock()  # guards what follows
        self._stream: Any = None
        self._closing = False

    def call(self, method: str, request: Optional[JSON] = None) -> JSON:
        name, req, resp = self._messages.method(method)
        unary = self._channel.unary_unary(name, request_serializer=req.SerializeToString, response_deserializer=resp.FromString)
        try:
            return to_json(unary(from_json(request or {}, req), timeout=self._timeout, metadata=self._metadata))
        except grpc.RpcError as e:
            raise _error(e) from e
        except ValueError as e:  # the channel is closed
            raise Disconnected(str(e)) from e

    def attach(self, app: Attachable, attached: Callable[[JSON], None] = lambda welcome: None) -> None:
        from_app, to_app = self._messages.type("FromApp"), self._messages.type("ToApp")
        outbox: "queue.Queue[Any]" = queue.Queue()
        outbox.put(from_json({"hello": app.hello}, from_app))

        def sent() -> Iterator[Any]:
            while (message := outbox.get()) is not None:
                yield message

        attach = self._channel.stream_stream("/weft.v1.Apps/Attach", request_serializer=from_app.SerializeToString, response_deserializer=to_app.FromString)
        try:
            with self._lock:
                if self._closing:
                    return
                self._stream = attach(sent())
            for message in self._stream:
                frame = to_json(message)
                if "welcome" in frame:
                    attached(frame["welcome"])
                    continue
                decisions = app.decide(frame["packets"])
                if app.kind == "stage":
                    outbox.put(from_json({"decisions": decisions}, from_app))
            if not self._closing:
                raise Disconnected("Weft has ended the stream")
        except grpc.RpcError as e:
            if not self._closing:
                raise _error(e) from e
        finally:
            outbox.put(None)
            self._stream.cancel()

    def close(self) -> None:
        with self._lock:
            self._closing = True
            if self._stream is not None:
                self._stream.cancel()
        self._channel.close()


def _error(e: Any) -> Exception:
    """What an error of gRPC is: of the connection, or Weft's own."""
    code = e.code()
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL):
        return Disconnected(f"{code.name}: {e.details()}")
    return Error(int(code.value[0]), e.details())
