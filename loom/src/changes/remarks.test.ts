import { expect, test } from "vitest";

import { empty } from "../api/known";
import { firewall } from "./kinds";
import { away, firewallRemarks, flowRemarks, hidden } from "./remarks";

function known() {
  const k = empty();
  k.switches.set("00000000000000a1", { dpid: "00000000000000a1", connected: true });
  k.switches.set("0000000000000002", { dpid: "0000000000000002", connected: false });
  k.ports.set("00000000000000a1", new Map([[1, { port: 1 }], [2, { port: 2 }]]));
  return k;
}

test("a rule for a switch that is away, or a port that is not there, is tried with a remark", () => {
  expect(away("", known())).toBe("");
  expect(away(" A1", known())).toBe("");
  expect(away("2", known())).toContain("is not connected now");
  expect(away("77", known())).toContain("switch 77 is not known now");
  expect(flowRemarks({ dpid: "a1", match: { in_port: "1" }, actions: ["output:2", "controller"] }, known())).toEqual([]);
  expect(flowRemarks({ dpid: "a1", match: { in_port: "7" }, actions: ["output:9"], write_actions: ["output:9"] }, known())).toEqual(["switch a1 has no port 7 now", "switch a1 has no port 9 now"]);
  expect(flowRemarks({ dpid: "77", actions: ["output:9"] }, known())).toHaveLength(1);
  expect(flowRemarks({ dpid: "a1", priority: 5 }, known())[0]).toContain("drops every packet");
});

test("a firewall rule that never decides is marked, with the one that comes first", () => {
  const ssh = { id: "ssh", priority: 500, action: "deny", match: { tcp_dst: "22" } };
  const one = { id: "one", priority: 400, action: "allow", match: { tcp_dst: "22", ipv4_src: "10.0.0.1" } };
  const other = { id: "other", priority: 400, action: "allow", match: { tcp_dst: "23" } };
  expect([...hidden([one, ssh, other])]).toEqual([["one", "ssh"]]);
  expect(hidden([{ ...ssh, priority: 300 }, one])).toEqual(new Map());
  // Of equal priorities the id decides; what holds on one switch hides nothing elsewhere.
  expect([...hidden([{ ...one, priority: 500 }, ssh]).keys()]).toEqual([]);
  expect([...hidden([{ ...one, id: "z", priority: 500 }, ssh]).keys()]).toEqual(["z"]);
  expect(hidden([{ ...ssh, dpid: "1" }, one])).toEqual(new Map());
  expect([...hidden([{ ...ssh, dpid: "1" }, { ...one, dpid: "0000000000000001" }]).keys()]).toEqual(["one"]);
  expect(hidden([{ ...ssh, tenant: "red" }, one])).toEqual(new Map());
  expect(hidden([{ ...ssh, vlan: 5 }, one])).toEqual(new Map());
  expect(firewallRemarks(one, empty(), [ssh])).toEqual(["it never decides: ssh comes first for all of its packets"]);
  expect(firewallRemarks(ssh, empty(), [one, other])).toEqual(["one never decides then: this comes first for all of their packets"]);
  expect(firewallRemarks({ ...one, id: "a", priority: 600 }, empty(), [ssh])).toEqual([]);
  const listed = firewall.listed({ rules: [ssh, one] });
  expect(firewall.columns.at(-1)!.text(listed[1])).toBe("never: ssh comes first");
  expect(firewall.tidy(listed[1])).toEqual(one);
});
