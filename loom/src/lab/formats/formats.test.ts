import { parse } from "yaml";
import { describe, expect, test } from "vitest";

import { fresh, json, read, type Fields } from "../document";
import { generate, generators } from "../generate";
import { models } from "../models";
import { Random } from "../random";
import { readClab, writeClab } from "./clab";
import { bounded, formats, readFile } from "./formats";
import { readGraphML, writeGraphML } from "./graphml";
import { readT3D, writeT3D } from "./t3d";
import { readXML } from "./xml";

const nasty = ["a<b>&\"c'", "l1\nl2\t", "  spaced ", "x: y #z", "ümläut ✓", "]]>", "{}"];

/** labOf makes a lab of anything that a file may say. */
function labOf(seed: number): Fields {
  const r = new Random(seed);
  const model = r.pick(models);
  const g = r.pick(generators.filter((x) => ["ring", "random", "ba", "star"].includes(x.name)));
  const made = generate(model, { generator: g, parameters: Object.fromEntries(g.parameters.map((p) => [p.name, p.name === "seed" ? seed : Math.max(p.least, Math.min(p.is, 6))])), hosts: r.below(3), every: 1 + r.below(2) });
  const out: Fields = { name: `lab-${seed}`, "x-note": { deep: [1, null, r.pick(nasty)] }, ...made };
  const extra = (f: Fields) => {
    if (r.next() < 0.3) f["x-extra"] = r.pick([1, true, r.pick(nasty), { k: [r.pick(nasty)] }]);
    if (r.next() < 0.2) delete f["x-position"];
  };
  for (const list of ["switches", "hosts", "links"]) {
    (out[list] as Fields[]).forEach(extra);
    if ((out[list] as Fields[]).length === 0 && r.next() < 0.5) delete out[list];
  }
  for (const l of (out.links ?? []) as Fields[]) if (r.next() < 0.4) l.rate = `${1 + r.below(100)}mbit`;
  const hosts = ((out.hosts ?? []) as Fields[]).map((h) => h.name);
  if (hosts.length > 2 && r.next() < 0.5) out["x-services"] = [{ name: "a", type: "vll", ends: hosts.slice(0, 2), rate: 3 }, { name: "vs9", type: "vss", ends: hosts.slice(0, 3) }];
  if (r.next() < 0.3) out.control = { mode: "in-band", at: (out.switches as Fields[])[0].name };
  return out;
}

/** without takes a key from everything. */
function without(v: unknown, key: string): unknown {
  if (Array.isArray(v)) return v.map((x) => without(x, key));
  if (v === null || typeof v !== "object") return v;
  return Object.fromEntries(Object.entries(v).filter(([k]) => k !== key).map(([k, x]) => [k, without(x, key)]));
}

/** ordered puts lists of objects in an order. */
function ordered(v: unknown): unknown {
  if (Array.isArray(v)) return v.map(ordered).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  if (v === null || typeof v !== "object") return v;
  return Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, x]) => [k, ordered(x)]));
}

describe("property: a lab comes back as it was", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const lab = labOf(seed);
    test(`seed ${seed}`, () => {
      expect(json(read(fresh(lab)))).toEqual(lab);
      expect(readGraphML(writeGraphML(lab))).toEqual(lab);
      expect(readClab(writeClab(lab))).toEqual(lab);
      for (const generation of [0, 1, 2]) expect(ordered(without(readT3D(writeT3D(lab, generation)), "x-t3d")), `generation ${generation}`).toEqual(ordered(lab));
    });
  }
});

const zoo = `<?xml version="1.0" encoding="utf-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="d1"/><key attr.name="Latitude" attr.type="double" for="node" id="d2"/><key attr.name="Longitude" attr.type="double" for="node" id="d3"/>
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d4"/>
  <graph edgedefault="undirected"><node id="0"><data key="d1">Rome &amp; more</data><data key="d2">41.9</data><data key="d3">12.5</data></node><node id="1"><data key="d1">Milan</data></node>
  <edge source="0" target="1"><data key="d4">10000000000.0</data></edge><edge source="1" target="1"/></graph></graphml>`;

const t3ds: Record<string, string> = {
  "2014": `{"vertices": ["COSHI#01", "AOSHI#02", "AOSHI#03", "L2SW#04", "EUH#05", "EUH#06"],
 "edges": [["AOSHI#02", "COSHI#01", {}], ["COSHI#01", "L2SW#04", {"bw": 3}], ["L2SW#04", "AOSHI#03"], ["EUH#05", "AOSHI#02", {}], ["AOSHI#03", "EUH#06", {}]],
 "pos": {"COSHI#01": [1, 2]}, "node_properties": {"EUH#05": {"a": 1}}}`,
  "1": `{"vertices": {
  "cro1": {"pos": {"x": 1.5, "y": 2}, "v": {"x": 0, "y": 0}, "info": {"frozen": false, "type": "OSHI-CR", "property": {"custom_label": "", "loopback": ""}}},
  "peo2": {"info": {"type": "OSHI-PE", "property": {"loopback": "172.16.0.2/32"}}},
  "peo3": {"info": {"property": {}}},
  "swi4": {}, "cer5": {"info": {"type": "CE"}}, "cer6": {"info": {"type": "CE"}}, "vs7": {"pos": {"x": 3, "y": 4}, "info": {"type": "VS"}},
  "ctr8": {"info": {"type": "OF Controller", "property": {"tcp_port": "6633"}}}},
 "edges": {"peo2&&cro1": {"links": [{"id": "", "view": "Data"}, {"id": "", "view": "Data"}]}, "cro1&&swi4": {"links": [{}]}, "swi4&&peo3": {"links": [{"view": "Data"}]},
  "cer5&&peo2": {"links": [{"view": "Data"}]}, "peo3&&cer6": {"links": [{"view": "Data"}]}, "cro1&&cer5": {"links": [{"view": "Data"}]},
  "cer5&&cer6": {"links": [{"view": "Vll"}, {"view": "PW"}, {"view": "PW"}]}, "vs7&&cer5": {"links": [{"view": "VS"}]}, "cer6&&vs7": {"links": [{"view": "VS", "n": 1}]},
  "ctr8&&cro1": {"links": [{"view": "Data"}]}, "cro1&&peo3": {"vlan": 3}},
 "graph_parameters": {"tunneling": "OPENVPN", "vlan": "0", "mapped": false, "generated": "", "testbed": "MININET"}}`,
  "2": `{"vertices": [{"id": "cro1", "info": {"group": [], "property": {}, "type": "OSHI-CR"}}, {"id": "peo2", "info": {"type": "OSHI-PE"}},
  {"id": "peo3", "info": {"type": "OSHI-PE"}}, {"id": "swi4", "info": {"type": "L2SW"}}, {"id": "cer5", "info": {"type": "CE"}}, {"id": "cer6", "info": {"type": "CE"}}],
 "edges": [{"source": "peo2", "target": "cro1", "group": [], "view": "Data"}, {"source": "swi4", "target": "cro1", "view": "Data"},
  {"source": "swi4", "target": "peo3", "view": "Data"}, {"source": "cer5", "target": "peo2"}, {"source": "cer6", "target": "peo3", "view": "Data"}], "extra": 1}`,
};

const clab = `name: srl02
prefix: ""
mgmt: {network: custom, ipv4-subnet: 172.100.100.0/24}
topology:
  kinds: {linux: {image: alpine}}
  nodes:
    srl1: {kind: nokia_srlinux, image: ghcr.io/nokia/srlinux, startup-config: a.cfg}
    br-1: {kind: bridge}
    r: {kind: linux, image: frrouting/frr, labels: {graph-posX: "12.5", graph-posY: "3", x: y}}
    h1: {kind: linux}
    h2: {kind: linux, exec: [ip a]}
    h3: {kind: linux}
    h4: {kind: linux}
  links:
    - endpoints: ["srl1:e1-1", "br-1:eth1"]
    - endpoints: ["r:eth1", "srl1:e1-2"]
    - endpoints: ["h1:eth1", "srl1:e1-3"]
    - {type: veth, endpoints: [{node: h2, interface: eth1}, {node: r, interface: eth2, mac: "02:00:00:00:00:01"}], mtu: 1400}
    - endpoints: ["h3:eth1", "h4:eth1"]
    - {type: host, endpoint: {node: h1, interface: eth9}, host-interface: x}
`;

test("files of others come back as they were", () => {
  for (const [generation, text] of Object.entries(t3ds)) expect(ordered(JSON.parse(writeT3D(readT3D(text, "net")))), generation).toEqual(ordered(JSON.parse(text)));
  expect(ordered(parse(writeClab(readClab(clab))))).toEqual(ordered(parse(clab)));
  const lab = readGraphML(zoo, "zoo");
  expect(readGraphML(writeGraphML(lab))).toEqual(lab);
});

test("files of others are labs without problems", () => {
  const zooLab = read(readFile("x/zoo.graphml", zoo));
  expect(zooLab.problems).toEqual([]);
  expect(zooLab.nodes.map((n) => n.name)).toEqual(["Rome-more", "Milan", "h1", "h2"]);
  expect(zooLab.links.find((l) => l.of === "link")!.fields.rate).toBe("10000000000bit");
  const one = read(readFile("net.t3d", t3ds["1"]));
  expect(one.problems).toEqual([]);
  expect([one.at, one.nodes.length, one.nodes.find((n) => n.name === "peo2")!.fields.loopback]).toEqual(["cro1", 7, "172.16.0.2"]);
  expect(one.services.map((s) => `${s.type} ${s.ends}`)).toEqual(["vll cer5,cer6", "pw cer5,cer6", "pw cer5,cer6", "vss cer5,cer6"]);
  for (const text of [t3ds["2014"], t3ds["2"], clab]) expect(read(readFile("a.json", text)).problems).toEqual([]);
  expect(read(readFile("a.clab.yml", clab)).nodes.filter((n) => n.kind === "host").map((n) => n.name)).toEqual(["h1", "h2", "h4"]);
  for (const f of formats) expect(read(readFile(`a.${f.extension}`, f.write(one))).nodes.length).toBe(7);
});

test("a node of containerlab without links is a switch, and links of a node with itself are kept", () => {
  const lab = read(readFile("a.clab.yml", "name: a\ntopology:\n  nodes: {x: {kind: linux}, y: {kind: linux}}\n  links: [{endpoints: [\"y:e1\", \"y:e2\"]}]\n"));
  expect([lab.nodes.map((n) => n.kind), lab.links.map((l) => l.id)]).toEqual([["openflow", "openflow"], ["link/y/y"]]);
  for (const f of formats) expect(read(readFile(`a.${f.extension}`, f.write(lab))).links.map((l) => l.id), f.name).toEqual(["link/y/y"]);
});

test("bad files are refused with what is wrong", () => {
  for (const [text, want] of [
    ["<graphml><graph></graph></graphml>", "has no nodes"],
    ["<graphml><graph>", "does not end"],
    ["<!DOCTYPE x [<!ENTITY a 'b'>]><graphml>&a;</graphml>", "not XML"],
    ["<a>&unknown;</a>", "no reference"],
    ["<a>".repeat(200), "100 deep"],
    ['{"vertices": ["zzz"]}', "unknown type"],
    ['{"vertices": ["cro1"], "edges": [["cro1", "cro2"]]}', "which is no vertex"],
    ['{"vertices": {"cro1": {}}, "edges": {"cro1": {}}}', "joined by &&"],
    ["topology: {}", "want topology.nodes"],
    ["topology: {nodes: {a: {}}, links: [{endpoints: [a]}]}", "1 endpoints"],
    ["- a", "not a mapping"],
    ['{"action": "x"}', "neither a lab"],
    ["a: b", "neither a lab"],
    ["switches: [", "end with a ]"],
  ]) expect(() => readFile("x", text), text).toThrow(want);
  expect(readXML("<a b='&lt;&#65;'><![CDATA[<&]]><!-- c --></a>")).toEqual({ name: "a", attributes: { b: "<A" }, children: [], text: "<&" });
  expect(() => readFile("x", "x".repeat(9 << 20))).toThrow("at most");
  expect(() => bounded(9 << 20)).toThrow("at most 8,388,608");
  const many = Array.from({ length: 60_000 }, (_, i) => `<node id="n${i}"/>`).join("");
  expect(() => readFile("x", `<graphml><graph>${many}</graph></graphml>`)).toThrow("nodes: at most 5,000 are drawn");
});
