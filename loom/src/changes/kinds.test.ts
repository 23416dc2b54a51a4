import { expect, test } from "vitest";

import { fieldOf, FieldError, firewall, firewallDefaults, flows, objects, vips, type Form, type Kind } from "./kinds";
import { auditPath, configChange } from "./texts";

const form = <T>(k: Kind<T>, f: Form): Form => ({ ...Object.fromEntries(k.fields.map((x) => [x.name, x.start])), ...f });
const fails = (f: () => unknown): FieldError => {
  try {
    f();
  } catch (err) {
    return err as FieldError;
  }
  throw new Error("it does not fail");
};

test("a form of a flow rule is the request that the northbound takes", () => {
  const v = flows.fromForm(form(flows, { dpid: " 1 ", match: "in_port=1\neth_type=0x0800, ipv4_dst=10.0.0.0/8", actions: "output:2\nset_field:5->vlan_vid" }));
  expect(flows.add([v], true)).toEqual([
    { method: "POST", path: "v1/flows", body: { flows: [{ dpid: "1", priority: 32768, match: { in_port: "1", eth_type: "0x0800", ipv4_dst: "10.0.0.0/8" }, actions: ["output:2", "set_field:5->vlan_vid"] }], dry_run: true } },
  ]);
  expect(flows.fromForm(flows.toForm(v))).toEqual(v);
});

test("a form of a firewall rule is the request that the northbound takes", () => {
  const v = firewall.fromForm(form(firewall, { id: "ssh", match: "tcp_dst=22", vlan: "10" }));
  expect(firewall.add([v], false)[0]).toEqual({ method: "POST", path: "v1/firewall/rules", body: { rules: [{ id: "ssh", action: "deny", priority: 32768, match: { tcp_dst: "22" }, vlan: 10 }], dry_run: false } });
  expect(firewall.fromForm(firewall.toForm(v))).toEqual(v);
  expect(firewall.remove(v, true).body).toEqual({ ids: ["ssh"], dry_run: true });
});

test("a form of the firewall's default is the request that the northbound takes", () => {
  const status = { default_action: "allow", switches: [{ dpid: "0000000000000001", default_action: "deny", own_default: true }, { dpid: "0000000000000002", default_action: "allow" }] };
  const [everywhere, one] = firewallDefaults.listed(status);
  expect([everywhere, one]).toEqual([{ action: "allow" }, { dpid: "0000000000000001", action: "deny" }]);
  expect(firewallDefaults.listed(status)).toHaveLength(2);
  expect(firewallDefaults.foreign(everywhere)).not.toBe("");
  expect(firewallDefaults.add([firewallDefaults.fromForm({ dpid: "1", action: "inherit" }), { action: "deny" }], true).map((r) => r.body)).toEqual([{ dpid: "1", dry_run: true }, { action: "deny", dry_run: true }]);
  expect(firewallDefaults.remove(one, false).body).toEqual({ dpid: "0000000000000001", dry_run: false });
  expect(firewallDefaults.removed({ effect: "replaced", before: "deny" }, one)[0]).toMatchObject({ what: "default of switch 0000000000000001", effect: "deleted" });
  expect(firewallDefaults.added([{ effect: "replaced", before: "allow" }], [{ action: "deny" }], [])).toEqual([{ what: "default everywhere", effect: "replaced", before: { action: "allow" }, after: { action: "deny" } }]);
  expect(fails(() => firewallDefaults.fromForm({ dpid: "", action: "inherit" })).field).toBe("action");
});

test("a form of a virtual IP is the request that the northbound takes", () => {
  const v = vips.fromForm(form(vips, { name: "web", address: "10.0.0.100", pool: "10.0.0.1:8080@2\n10.0.0.2", check: "tcp" }));
  expect(vips.add([v], true)).toEqual([
    { method: "POST", path: "v1/balancer/vips?dry_run=true", body: { name: "web", address: "10.0.0.100", protocol: "tcp", port: 80, policy: "weighted", health: { kind: "tcp" }, pool: [{ address: "10.0.0.1", port: 8080, weight: 2 }, { address: "10.0.0.2" }] } },
  ]);
  expect(vips.fromForm(vips.toForm(v))).toEqual(v);
  expect(vips.remove(v, true)).toEqual({ method: "DELETE", path: "v1/balancer/vips/web?dry_run=true" });
  const watched = { name: "web", address: "10.0.0.100", protocol: "tcp", port: 80, policy: "least", health: { kind: "icmp", interval_ms: 2000, timeout_ms: 1000, rise: 2, fall: 3 } };
  expect(vips.fromForm(vips.toForm(watched))).toEqual(watched);
  const six = vips.fromForm(form(vips, { name: "six", address: "fd00::100", pool: "[fd00::1]:80\nfd00::2\nfd00::3@4" }));
  expect(six.pool).toEqual([{ address: "fd00::1", port: 80 }, { address: "fd00::2" }, { address: "fd00::3", weight: 4 }]);
});

test("what is wrong in a form is said of its field", () => {
  expect(fails(() => flows.fromForm(form(flows, {}))).field).toBe("dpid");
  expect(fails(() => flows.fromForm(form(flows, { dpid: "1", priority: "70000" })))).toMatchObject({ field: "priority", message: "70000: want a number of 0 to 65535" });
  expect(fails(() => firewall.fromForm(form(firewall, { match: "tcp_dst" }))).field).toBe("match");
  expect(fails(() => firewall.fromForm(form(firewall, { match: "tcp_dst=1,tcp_dst=2" }))).message).toBe("tcp_dst is there twice");
});

test("what the controller says is wrong is shown beside the field", () => {
  expect(fieldOf('vip web: address "x": want an IPv4 or IPv6 address of one host, such as 10.0.0.100 or fd00::100', vips.fields)).toBe("address");
  expect(fieldOf("vip web: port 70000: want 1 to 65535", vips.fields)).toBe("port");
  expect(fieldOf('vip web: member "x": want the IPv4 or IPv6 address of a host', vips.fields)).toBe("pool");
  expect(fieldOf('flow entry: datapath id "zz": want up to 16 hex digits, such as 00000000000000a1', flows.fields)).toBe("dpid");
  expect(fieldOf('vip web: ethernet address "zz": want six hex octets', vips.fields)).toBe("mac");
  expect(fieldOf("the controller does not answer", vips.fields)).toBe("");
});

test("JSON is one object or a list of them", () => {
  expect(objects('{"id": "a"}')).toEqual([{ id: "a" }]);
  expect(objects('[{"id": "a"}, {"id": "b"}]')).toHaveLength(2);
  for (const bad of ["", "[]", "1", "[1]", "null", "{"]) expect(() => objects(bad)).toThrow();
});

test("no number becomes another one because JavaScript cannot hold it", () => {
  expect(() => objects('{"cookie": 18446744073709551615}')).toThrow("the number of cookie is too large");
  expect(objects('{"cookie": "18446744073709551615", "priority": 5}')).toEqual([{ cookie: "18446744073709551615", priority: 5 }]);
});

test("a rule that the form has no field for keeps all that it says", () => {
  const v = { dpid: "0000000000000001", priority: 5, flags: 5, write_actions: ["output:1"], meter: 3 };
  expect(flows.tidy({ ...v, owner: "operator", cookie: "1", packets: "0" } as never)).toEqual(v);
  expect(flows.tidy({ dpid: "1", flags: 1 })).toEqual({ dpid: "1" });
  expect(flows.columns.find((c) => c.title === "Actions")!.text(v)).toBe("meter 3, write output:1");
});

test("the answer of a dry run is what would happen to each", () => {
  const answer = { ids: ["a", "b"], effects: ["replaced", "added"], before: [{ id: "a", action: "deny" }] };
  expect(firewall.added([answer], [{ action: "allow" }, { action: "deny" }], [])).toEqual([
    { what: "rule a", effect: "replaced", before: { id: "a", action: "deny" }, after: { action: "allow", id: "a" } },
    { what: "rule b", effect: "added", before: undefined, after: { action: "deny", id: "b" } },
  ]);
  expect(flows.removed({ deleted: 0, flows: [{ flow: { dpid: "1" }, effect: "absent" }] }, {})[0].effect).toBe("absent");
});

test("filters of the audit log", () => {
  const of = (f: object) => auditPath({ who: "", method: "", since: "", before: "", ...f }, Date.UTC(2026, 0, 1, 12));
  expect(of({ who: "ann", method: "flowrules.AddFlows", since: "2h" })).toBe("v1/audit?limit=200&who=ann&method=flowrules.AddFlows&since=2026-01-01T10%3A00%3A00.000Z");
  expect(of({ before: "2026-01-01T10:00:00.123456789Z" })).toBe("v1/audit?limit=200&before=2026-01-01T10%3A00%3A00.123456789Z");
  expect(of({})).toBe("v1/audit?limit=200");
  expect(() => of({ since: "yesterday" })).toThrow("yesterday: want");
  expect(() => of({ since: "999999999999d" })).toThrow();
});

test("a difference of configurations", () => {
  expect(configChange({ section: "hosts", key: "limit", old: "1\n", new: "2\n", effect: "restart" })).toBe("hosts.limit: 1 → 2; the service is started again");
});
