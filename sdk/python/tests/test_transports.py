"""One suite for all transports, against the fakes."""

from __future__ import annotations

import base64
import logging
import threading
import unittest
from typing import Callable

import fakes
import weft

logging.getLogger("weft").addHandler(logging.NullHandler())
logging.getLogger("weft").propagate = False


def packets(number: int, *ports: int) -> dict:
    """A batch of packets to these TCP ports."""
    return {"id": str(number), "packets": [
        {"dpid": "0000000000000007", "in_port": 3, "reason": "no_match", "role": "edge", "src": {"dpid": "0000000000000007", "port": 3},
         "fields": {"in_port": "3", "eth_type": "0x0800", "ip_proto": "6", "tcp_dst": str(p)}, "data": base64.b64encode(b"frame").decode()}
        for p in ports]}


class Suite:
    """What holds for every transport."""

    fake: Callable[[], fakes.Fake]

    def setUp(self) -> None:
        self.weft = type(self).fake()
        self.addCleanup(self.weft.close)

    def start(self, app: weft.App) -> "list[Exception]":
        """Runs an app until the test ends; returns what run raises."""
        raised: "list[Exception]" = []

        def run() -> None:
            try:
                app.run(self.weft.address)
            except Exception as e:
                raised.append(e)

        thread = threading.Thread(target=run)
        thread.start()

        def stop() -> None:
            app.stop()
            thread.join(10)
            self.assertFalse(thread.is_alive(), "run does not return after stop")

        self.addCleanup(stop)
        self.thread = thread
        return raised

    def test_stage(self) -> None:
        app = weft.Stage("blocker", filter={"eth_type": 0x800})

        @app.packet
        def block(packet: weft.Packet):
            self.assertEqual((packet.dpid, packet.in_port, packet.role, packet.data), ("0000000000000007", 3, "edge", b"frame"))
            if packet.fields["tcp_dst"] == "23":
                packet.add_flow(packet.match("eth_type", "ip_proto", "tcp_dst", "udp_dst"), priority=7)
                return weft.DROP
            if packet.fields["tcp_dst"] == "80":
                packet.send("output:1", data=b"hi", dpid="a")
                return weft.DONE
            return None

        self.start(app)
        hello = self.weft.hellos.get(timeout=5)
        self.assertEqual((hello["name"], hello["kind"], hello["filter"]), ("blocker", "stage", {"eth_type": "2048"}))
        answer = self.weft.ask(packets(5, 22, 23, 80))
        self.assertEqual(str(answer["id"]), "5")
        self.assertEqual([d["verdict"] for d in answer["decisions"]], ["next", "drop", "done"])
        flow = answer["decisions"][1]["operations"][0]["add_flow"]
        self.assertEqual((flow["priority"], flow["match"]), (7, {"eth_type": "0x0800", "ip_proto": "6", "tcp_dst": "23"}))
        out = answer["decisions"][2]["operations"][0]["packet_out"]
        self.assertEqual((out["dpid"], out["actions"], base64.b64decode(out["data"])), ("a", ["output:1"], b"hi"))
        app.stop()
        self.assertTrue(self.weft.left.wait(5), "it has not left")

    def test_raises(self) -> None:
        app = weft.Stage("broken")
        app.packet(lambda packet: packet.send("output:1") or {"22": "perhaps"}.get(packet.fields["tcp_dst"]) or 1 / 0)
        self.start(app)
        self.weft.hellos.get(timeout=5)
        answer = self.weft.ask(packets(1, 22, 23))
        for decision in answer["decisions"]:
            self.assertEqual((decision["verdict"], decision["operations"]), ("drop", []))

    def test_call(self) -> None:
        with weft.connect(self.weft.address) as connection:
            self.assertEqual(connection.call("hosts.FindHost", {"address": "10.0.0.1"})["ipv4"], ["10.0.0.1"])
            with self.assertRaises(weft.Error) as e:
                connection.call("hosts.FindHost", {"address": "192.0.2.1"})
            self.assertEqual((e.exception.code, e.exception.message), (5, "host is not known"))
            with self.assertRaises(weft.Error) as e:
                connection.call("hosts.LoseHost")
            self.assertEqual(e.exception.code, 12)

    def test_names_its_app(self) -> None:
        for options, want in (({}, ""), ({"app": "blocker"}, "blocker")):
            with weft.connect(self.weft.address, **options) as connection:
                connection.call("hosts.FindHost", {"address": "10.0.0.1"})
            self.assertEqual(self.weft.callers.get(timeout=5), want)
        app = weft.Stage("asker")
        app.packet(lambda packet: app.call("hosts.FindHost", {"address": "10.0.0.9"}) and None)
        self.start(app)
        self.weft.hellos.get(timeout=5)
        self.weft.ask(packets(1, 1))
        self.assertEqual(self.weft.callers.get(timeout=5), "asker")

    def test_call_while_deciding(self) -> None:
        app = weft.Stage("asker")

        @app.packet
        def ask(packet: weft.Packet):
            packet.send(app.call("hosts.FindHost", {"address": "10.0.0.9"})["ipv4"][0])

        self.start(app)
        self.weft.hellos.get(timeout=5)
        answer = self.weft.ask(packets(1, 1))
        self.assertEqual(answer["decisions"][0]["operations"][0]["packet_out"]["actions"], ["10.0.0.9"])

    def test_holds(self) -> None:
        app = weft.Stage("portal", holds=[{"dpid": "1"}])
        app.packet(lambda packet: app.approve("02:00:00:00:00:01") if packet.held_by == ["portal"] else weft.DROP)
        self.start(app)
        self.weft.hellos.get(timeout=5)
        self.assertEqual(self.weft.holds.get(timeout=5)["hold"]["at"][0]["dpid"], "1")
        asked = packets(1, 1, 2)
        asked["packets"][0]["held_by"] = ["portal"]
        self.assertEqual([d["verdict"] for d in self.weft.ask(asked)["decisions"]], ["next", "drop"])
        self.assertEqual(self.weft.holds.get(timeout=5)["mac"], "02:00:00:00:00:01")

    def test_refused(self) -> None:
        self.weft.refusal = {"code": 3, "message": "name: want lower-case letters"}
        raised = self.start(weft.Stage("BLOCKER"))
        self.thread.join(5)
        self.assertEqual([str(e) for e in raised], ["name: want lower-case letters"])
        self.assertIsInstance(raised[0], weft.Error)

    def test_refused_for_now(self) -> None:
        self.weft.refusal = {"code": 6, "message": "attached already"}
        raised = self.start(weft.Stage("blocker"))
        self.weft.hellos.get(timeout=5)
        self.assertEqual(raised, [])

    def test_comes_back(self) -> None:
        app = weft.Stage("blocker")
        self.start(app)
        self.weft.hellos.get(timeout=5)
        self.weft.drop()
        self.weft.hellos.get(timeout=5)  # over REST, that is the lease
        self.assertEqual(self.weft.ask(packets(1, 1))["decisions"][0]["verdict"], "next")

    def test_nobody_there(self) -> None:
        address = self.weft.address
        self.weft.close()
        with self.assertRaises(weft.Disconnected):
            with weft.connect(address, timeout=5) as connection:
                connection.call("hosts.FindHost")


class TestREST(Suite, unittest.TestCase):
    fake = fakes.FakeREST

    def test_others_cannot_ask(self) -> None:
        app = weft.Stage("blocker")
        self.start(app)
        self.weft.hellos.get(timeout=5)
        self.weft.url = self.weft.url.rsplit("/", 1)[0] + "/guess"
        with self.assertRaisesRegex(Exception, "404") as e:
            self.weft.ask(packets(1, 1))
        e.exception.close()


class TestWebSocket(Suite, unittest.TestCase):
    fake = fakes.FakeWS


class TestGRPC(Suite, unittest.TestCase):
    fake = fakes.FakeRPC


class TestApp(unittest.TestCase):
    def test_operations(self) -> None:
        packet = weft.Packet({"fields": {"in_port": "1"}})
        packet.add_flow({"in_port": 1}, ["output:2"], idle_timeout=5)
        packet.delete_flow(packet.match("in_port", "eth_dst"))
        packet.add_group(1, "all", [{"actions": ["output:1"]}])
        packet.modify_group(1, "all", [])
        packet.delete_group(1)
        packet.fence()
        packet.send("flood", in_port=3)
        self.assertEqual(packet.operations, [
            {"add_flow": {"dpid": "", "priority": 32768, "match": {"in_port": "1"}, "actions": ["output:2"], "idle_timeout": 5}},
            {"delete_flow": {"dpid": "", "priority": 32768, "match": {"in_port": "1"}}},
            {"add_group": {"dpid": "", "id": 1, "type": "all", "buckets": [{"actions": ["output:1"]}]}},
            {"modify_group": {"dpid": "", "id": 1, "type": "all", "buckets": []}},
            {"delete_group": {"dpid": "", "id": 1}},
            {"fence": True},
            {"packet_out": {"dpid": "", "actions": ["flood"], "in_port": 3}},
        ])

    def test_not_attached(self) -> None:
        with self.assertRaises(weft.Disconnected):
            weft.Stage("a").call("hosts.FindHost")

    def test_urls(self) -> None:
        for url in ("127.0.0.1:80", "ftp://127.0.0.1", "http://", "http://127.0.0.1/path", "https://127.0.0.1", "wss://127.0.0.1"):
            with self.assertRaises(ValueError, msg=url):
                weft.connect(url)
        with self.assertRaises(ValueError):
            weft.connect("http://127.0.0.1", weft.TLS("ca", "cert", "key"))


if __name__ == "__main__":
    unittest.main()
