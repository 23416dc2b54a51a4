"""Following the events."""

from __future__ import annotations

import unittest
from typing import Optional

import weft


class Log(weft.Connection):
    """A controller whose answers are given; it notes from where it was asked."""

    def __init__(self, *answers: dict):
        self.answers, self.asked = list(answers), []

    def call(self, method: str, request: Optional[dict] = None) -> dict:
        self.asked.append(request["position"])
        if not self.answers:
            raise weft.Disconnected("it is gone")
        return self.answers.pop(0)

    def attach(self, app, attached=lambda welcome: None) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


def answer(number: int, state: int, *events: int, of_state: bool = False, restarted: bool = False) -> dict:
    return {"position": {"epoch": "7", "number": str(number), "state": str(state)}, "restarted": restarted,
            "events": [{"number": str(n), "state": of_state, "subject": "hosts.HostChanged"} for n in events]}


class TestEvents(unittest.TestCase):
    def test_positions(self) -> None:
        log = Log(answer(2, 9, 1, 2, of_state=True, restarted=True), answer(9, 0, 8, of_state=True), answer(11, 0, 10, 11), answer(11, 0))
        got = []
        with self.assertRaises(weft.Disconnected):
            for event in log.events("hosts"):
                got.append(event and tuple(int(event["position"][k]) for k in ("epoch", "number", "state")))
        self.assertEqual(got, [None, (7, 1, 9), (7, 2, 9), (7, 8, 9), (7, 10, 0), (7, 11, 0)])
        self.assertEqual([p and int(p["number"]) for p in log.asked], [None, 2, 9, 11, 11])


if __name__ == "__main__":
    unittest.main()
