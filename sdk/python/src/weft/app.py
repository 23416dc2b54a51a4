"""Apps: what decides on, or observes, the packets that switches send to Weft."""

from __future__ import annotations

import base64
import logging
import threading
from typing import Any, Callable, Iterable, Mapping, Optional

from .connection import JSON, TLS, Connection, Disconnected, Error
from .transports import connect

log = logging.getLogger("weft")

# The verdicts of a stage.
NEXT = "next"  # the following stage sees the packet too
DONE = "done"  # it is dealt with
DROP = "drop"  # it is refused

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds between attempts to connect


class Packet:
    """A packet-in, and what is to be done because of it.

    The methods add operations, which are carried out in their order whatever
    the verdict. An empty dpid is the packet's own switch.
    """

    def __init__(self, message: JSON):
        self.message = message  # as Weft has sent it
        self.dpid: str = message.get("dpid", "")
        self.in_port: int = int(message.get("in_port", 0))
        self.reason: str = message.get("reason", "no_match")
        self.role: str = message.get("role", "unsettled")  # of the port
        self.fields: dict[str, str] = message.get("fields") or {}  # as a match has them
        self.src: Optional[JSON] = message.get("src")  # {"dpid", "port"} of the sender, if known
        self.dst: Optional[JSON] = message.get("dst")  # of the destination, if known
        self.held_by: list[str] = message.get("held_by") or []  # stages that have not approved one of its hosts
        self.operations: list[JSON] = []

    @property
    def data(self) -> bytes:
        """The packet itself, from its Ethernet header."""
        return base64.b64decode(self.message.get("data") or "")

    def match(self, *fields: str) -> dict[str, str]:
        """A match of those of the packet's own fields that are named, if it has them."""
        return {name: self.fields[name] for name in fields if name in self.fields}

    def add_flow(self, match: Mapping[str, Any], actions: Iterable[str] = (), *, priority: int = 32768, dpid: str = "", **more: Any) -> None:
        """Adds a flow entry, or replaces it; without actions it drops.

        `more` are further fields of a FlowEntry, such as idle_timeout=60.
        """
        self._add("add_flow", {"dpid": dpid, "priority": priority, "match": _texts(match), "actions": list(actions), **more})

    def delete_flow(self, match: Mapping[str, Any], *, priority: int = 32768, dpid: str = "", **more: Any) -> None:
        """Deletes the flow entry with this match, priority, table and cookie."""
        self._add("delete_flow", {"dpid": dpid, "priority": priority, "match": _texts(match), **more})

    def send(self, *actions: str, data: Optional[bytes] = None, dpid: str = "", in_port: int = 0) -> None:
        """Has a switch send a packet, by default this one: packet.send("output:2")."""
        out: JSON = {"dpid": dpid, "actions": list(actions), "in_port": in_port}
        if data is not None:
            out["data"] = base64.b64encode(data).decode()
        self._add("packet_out", out)

    def add_group(self, id: int, type: str, buckets: Iterable[JSON], *, dpid: str = "") -> None:
        """Adds a group: add_group(1, "all", [{"actions": ["output:1"]}])."""
        self._add("add_group", {"dpid": dpid, "id": id, "type": type, "buckets": list(buckets)})

    def modify_group(self, id: int, type: str, buckets: Iterable[JSON], *, dpid: str = "") -> None:
        """Replaces what a group does."""
        self._add("modify_group", {"dpid": dpid, "id": id, "type": type, "buckets": list(buckets)})

    def delete_group(self, id: int, *, dpid: str = "") -> None:
        """Deletes a group."""
        self._add("delete_group", {"dpid": dpid, "id": id})

    def fence(self) -> None:
        """Has what follows wait until the switches have confirmed what is before."""
        self._add("fence", True)

    def _add(self, operation: str, value: Any) -> None:
        self.operations.append({operation: value})

    def __repr__(self) -> str:
        return f"Packet({self.dpid}/{self.in_port} {self.fields})"


def _texts(match: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in match.items()}


class App:
    """An app; use Stage or Observer.

    Its function is called for one packet at a time, in the order in which Weft
    sends them.
    """

    kind = ""

    def __init__(self, name: str, filter: Optional[Mapping[str, Any]] = None):
        self.name = name
        self.filter = _texts(filter or {})
        self.holds: "Optional[list[JSON]]" = None  # places whose hosts are held; none of them: everywhere
        self.welcome: Optional[JSON] = None  # Weft's, while attached
        self.stopped = threading.Event()
        self._function: Callable[[Packet], Optional[str]] = lambda packet: NEXT
        self._one = threading.Lock()  # held while the function runs
        self._guard = threading.Lock()  # guards _connection
        self._connection: Optional[Connection] = None

    def packet(self, function: Callable[[Packet], Optional[str]]) -> Callable[[Packet], Optional[str]]:
        """Decorates the function that is given each packet and returns a verdict; None is NEXT."""
        self._function = function
        return function

    @property
    def hello(self) -> JSON:
        """What the app says of itself."""
        return {"name": self.name, "kind": self.kind, "filter": self.filter}

    def decide(self, packets: JSON) -> JSON:
        """Answers one Packets message with a Decisions message, both as JSON.

        If the function raises, its packet is dropped and nothing else done.
        """
        decisions = []
        with self._one:
            for message in packets.get("packets") or []:
                packet = Packet(message)
                try:
                    verdict = self._function(packet) or NEXT
                    if verdict not in (NEXT, DONE, DROP):
                        raise ValueError(f"verdict {verdict!r}: want weft.NEXT, weft.DONE or weft.DROP")
                    decisions.append({"verdict": verdict, "operations": packet.operations})
                except Exception:
                    log.exception("%s: %r", self.name, packet)
                    decisions.append({"verdict": DROP, "operations": []})
        return {"id": packets.get("id", 0), "decisions": decisions}

    def call(self, method: str, request: Optional[JSON] = None) -> JSON:
        """Calls a method of Weft by the connection that the app is attached by."""
        with self._guard:
            connection = self._connection
        if connection is None:
            raise Disconnected(f"app {self.name} is not attached")
        return connection.call(method, request)

    def run(self, url: str, tls: Optional[TLS] = None) -> None:
        """Connects and decides until stop is called; a lost connection is made again.

        Raises Error if Weft refuses the app and would refuse it again.
        """
        pause = _FIRST_PAUSE

        def attached(welcome: JSON) -> None:
            nonlocal pause
            pause = _FIRST_PAUSE
            self.welcome = welcome
            if self.holds is not None:
                self.call("hosts.SetHold", {"hold": {"at": self.holds}})
            log.info("%s is attached to %s", self.name, url)

        while not self.stopped.is_set():
            try:
                with connect(url, tls, app=self.name) as connection:
                    with self._guard:
                        self._connection = connection
                    if not self.stopped.is_set():
                        connection.attach(self, attached)
            except Error as e:
                if e.final:
                    raise
                log.warning("%s: %s: trying again", self.name, e)
            except Disconnected as e:
                log.warning("%s: %s: trying again", self.name, e)
            finally:
                with self._guard:
                    self._connection = None
                self.welcome = None
            self.stopped.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def stop(self) -> None:
        """Detaches the app and has run return."""
        self.stopped.set()
        with self._guard:
            connection = self._connection
        if connection is not None:
            connection.close()


class Stage(App):
    """An app that decides: Weft waits for its answer.

    With `holds`, hosts are held until the stage has approved them: no flow entry
    carries packets from or to them, and each of their packets comes to the stage,
    whatever its filter. True is all hosts; else it is a list of places, as
    {"dpid": "1", "port": 3}, or {"dpid": "1"} for a switch.
    """

    kind = "stage"

    def __init__(self, name: str, filter: Optional[Mapping[str, Any]] = None, holds: "bool | Iterable[JSON]" = False):
        super().__init__(name, filter)
        if holds is not False:
            self.holds = [] if holds is True else list(holds)

    def approve(self, mac: str, vlan: int = 0) -> None:
        """Has a host held no more, now and in future; it need not be known yet."""
        self.call("hosts.ApproveHost", {"mac": mac, "vlan": vlan})

    def revoke(self, mac: str, vlan: int = 0) -> None:
        """Takes an approval back: the host is held again, and its routes go."""
        self.call("hosts.RevokeHost", {"mac": mac, "vlan": vlan})


class Observer(App):
    """An app that is sent copies, which Weft does not wait for; what it returns does not matter."""

    kind = "observer"
