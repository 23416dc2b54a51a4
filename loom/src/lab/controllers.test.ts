import { expect, test } from "vitest";

import { addressProblem, sessions, unusedAddress } from "./controllers";
import { read } from "./document";

test("sessions are those of the file, and of the switches when the lab runs", () => {
  const lab = read("controller: [tcp:127.0.0.1:6653, tcp:127.0.0.1:6654]\ncontrol: {mode: in-band, at: a}\nswitches: [{name: a, kind: hybrid}, {name: b, kind: hybrid}, {name: r, kind: router}]");
  expect(sessions(lab, null).map((s) => [s.node, s.controller.slice(-4), s.how, s.state].join())).toEqual(["a,6653,in band, linked here,", "a,6654,in band, linked here,", "b,6653,in band, by a,", "b,6654,in band, by a,"]);
  const running = { controllers: ["tcp:127.0.0.1:7000"], graph: { nodes: [{ name: "a", sessions: [{ controller: "tcp:127.0.0.1:7000", connected: true, role: "master" }] }] } };
  expect(sessions(lab, running)[0]).toMatchObject({ node: "a", controller: "tcp:127.0.0.1:7000", state: "connected", role: "master" });
  expect(sessions(lab, running)[1]).toMatchObject({ node: "b", state: "" });
  expect(sessions(read("switches: [{name: s1}]"), null)).toMatchObject([{ controller: "tcp:127.0.0.1:6653", how: "out of band" }]);
  expect(sessions(read("controller: none\nswitches: [{name: s1}]"), null)).toEqual([]);
  expect(["tcp:10.0.0.1:6653", "ssl:[::1]:6653", "unix:/a", "direct"].map(addressProblem)).toEqual(["", "", "", ""]);
  expect(addressProblem("<b>")).toContain("is no controller's address");
  expect(unusedAddress(["tcp:127.0.0.1:6653"])).toBe("tcp:127.0.0.1:6654");
});
