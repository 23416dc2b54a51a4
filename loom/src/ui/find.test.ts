import { expect, test, vi } from "vitest";

import { empty } from "../api/known";

vi.stubGlobal("location", { hash: "" });
const { commands, find } = await import("./find");

function network() {
  const k = empty();
  for (let n = 1; n <= 300; n++) {
    const dpid = n.toString(16).padStart(16, "0");
    k.switches.set(dpid, { dpid, description: n === 16 ? "core" : "None", address: `192.0.2.${n % 250}:4000`, connected: true });
  }
  const host = (mac: string, ipv4: string[], ipv6: string[], vlan = 0) => k.hosts.set(`${mac}/${vlan}`, { mac, vlan, ipv4, ipv6 });
  host("02:00:00:00:00:0a", ["10.0.0.10"], ["fd00::a"]);
  host("02:00:00:00:00:01", ["10.0.0.1"], []);
  host("02:00:00:00:00:06", [], ["fd00::6"]);
  const [a, b] = ["0000000000000001", "0000000000000010"];
  k.links.set("l", { src: { dpid: a, port: 4 }, dst: { dpid: b, port: 2 } });
  return k;
}
const first = (query: string) => find(network(), ["paths", "hosts"], query)[0];

test("nothing asked for: the commands", () => {
  expect(find(empty(), [], " ")).toBe(commands);
});

test("what is called so comes first, whatever else has it in it", () => {
  expect(first("1")).toMatchObject({ kind: "switch", title: "1", address: "#/network?switch=0000000000000001" });
  expect(first("switch core")).toMatchObject({ kind: "switch", title: "core" });
  expect(first("paths")).toMatchObject({ kind: "service" });
  expect(first("flows 1")).toMatchObject({ kind: "flows", address: "#/network?switch=0000000000000001&part=flows" });
  expect(first("link 1:4")).toMatchObject({ kind: "link", title: "1:4 – core:2" });
});

test("a host is found by each of its addresses, however they are written", () => {
  for (const query of ["10.0.0.1", "02-00-00-00-00-01", "0200.0000.0001"]) expect(first(query), query).toMatchObject({ kind: "host", title: "10.0.0.1 (02:00:00:00:00:01)" });
  expect(first("FD00::A")).toMatchObject({ kind: "host", title: "10.0.0.10 (fd00::a, 02:00:00:00:00:0a)" });
  expect(first("fd00::6")).toMatchObject({ kind: "host", title: "fd00::6 (02:00:00:00:00:06)" });
});

test("two hosts are traced", () => {
  expect(first("10.0.0.1 fd00::6")).toMatchObject({ kind: "command", address: "#/network?tab=path&from=10.0.0.1&to=fd00%3A%3A6" });
});

test("flow entries are searched for on all switches, by whatever they have", () => {
  for (const query of ["0xa5000001", "owner=routes", "flow 10.9.9.9"]) {
    const last = find(network(), [], query).at(-1)!;
    expect(last.kind).toBe("flow");
    expect(decodeURIComponent(last.address)).toContain(`find=${query.replace("flow ", "")}`);
  }
  expect(find(network(), [], "0").length).toBeLessThanOrEqual(40);
  expect(find(empty(), [], "flow")).toEqual(expect.arrayContaining([expect.objectContaining({ kind: "command" })]));
});
