import { beforeEach, expect, test, vi } from "vitest";

import { memory } from "./memory";

const room = { most: Infinity };
const store = memory(room);
vi.stubGlobal("localStorage", store);
const { Design } = await import("./design.svelte");

beforeEach(() => {
  store.clear();
  room.most = Infinity;
});

function drawn() {
  const d = new Design();
  d.restore();
  const [sw, , host] = d.model.nodes;
  d.addNode(sw, [0, 0]);
  d.addNode(sw, [100, 0]);
  d.addNode(host, [0, 100]);
  d.connect("s1", "s2");
  d.connect("h1", "s1");
  return d;
}

test("drawing writes the text, undo takes it back, and typing draws", () => {
  const d = drawn();
  expect(d.lab.text).toBe("name: my-lab\nswitches:\n  - {name: s1, x-position: [0, 0]}\n  - {name: s2, x-position: [100, 0]}\nhosts:\n  - {name: h1, x-position: [0, 100], switch: s1}\nlinks:\n  - {a: s1, b: s2}\n");
  expect(d.problems).toEqual([]);
  d.connect("h1", "s2");
  expect([d.said, d.bad]).toEqual(["host h1 is attached to s1 already: delete that link first", true]);
  expect(d.rename(d.node("s1")!, "s2")).toContain("already another node's");
  expect(d.rename(d.node("s1")!, "<b>")).toContain("is not a name");
  d.undo();
  d.undo();
  expect(d.lab.links.filter((l) => l.of === "link")).toEqual([]);
  d.redo();
  d.edit(d.lab.text + "  - {a: s2, b: s1}\n", "typing");
  expect(d.lab.links.filter((l) => l.of === "link").length).toBe(2);
  d.edit(d.lab.text + "links: [", "typing");
  d.addNode(d.model.nodes[0], [0, 0]);
  expect([d.bad, d.said]).toEqual([true, "the text cannot be read: mend what the list of problems says, then draw"]);
  expect(d.problems[0].line).toBeGreaterThan(0);
});

test("what is pasted has names, and no addresses, of others", () => {
  const d = drawn();
  d.set(d.node("h1")!, { ipv4: "10.0.0.9/24", vlan: 3 }, "addresses");
  d.chosen = new Set(["s1", "s2", "h1"]);
  d.copy();
  d.paste();
  expect(d.lab.nodes.map((n) => n.name)).toEqual(["s1", "s2", "s3", "s4", "h1", "h2"]);
  expect(d.node("h2")!.fields).toMatchObject({ switch: "s3", vlan: 3 });
  expect(d.node("h2")!.fields.ipv4).toBeUndefined();
  expect(d.lab.links.map((l) => l.id)).toContain("link/s3/s4");
  d.align("row");
  expect(new Set(d.chosenNodes().map((n) => n.at![1])).size).toBe(1);
  d.remove();
  expect(d.lab.nodes.length).toBe(3);
});

test("what is copied is text: it goes into other drafts, where the model of those counts", () => {
  const d = drawn();
  d.chosen = new Set(["s1", "s2", "h1"]);
  const clip = d.copy();
  expect(clip).toContain("switches:\n  - {name: s1");
  d.start("name: other\nx-model: oshi\n");
  d.paste(clip);
  expect([d.bad, d.lab.nodes.length]).toEqual([true, 0]);
  expect(d.said).toContain("not pasted: s1 is of the kind openflow, which the model Hybrid OSHI does not have");
  d.start("name: other\nswitches: [{name: s1}]\n");
  d.paste(clip);
  d.paste();
  expect(d.lab.nodes.map((n) => n.name)).toEqual(["s1", "s2", "s3", "s4", "s5", "h1", "h2"]);
  expect(d.node("s2")!.at).toEqual([40, 40]);
  expect(d.node("s4")!.at).toEqual([80, 80]);
  expect(d.lab.links.map((l) => l.id)).toEqual(["host/s2/h1", "host/s4/h2", "link/s2/s3", "link/s4/s5"]);
  d.paste("- no lab");
  expect(d.said).toContain("no part of a lab");
  d.chosen = new Set(["h1"]);
  const host = d.copy();
  d.start("name: third\nswitches: [{name: s9}]\n");
  d.paste(host);
  expect(d.node("h1")!.fields.switch).toBeUndefined();
});

test("groups, notes and services are copied with their nodes", () => {
  const d = new Design();
  d.restore();
  d.start("x-model: oshi\nswitches: [{name: pe1, kind: hybrid, x-type: pe}]\nhosts: [{name: ce1, switch: pe1, x-type: ce}, {name: ce2, switch: pe1, x-type: ce}]\nx-services: [{name: a, type: vll, ends: [ce1, ce2], rate: 5mbit}]\nx-groups: [{name: g, colour: red, nodes: [ce1, ce2]}]\nx-notes: [{text: n, x-position: [5, 5]}]\n");
  d.chosen = new Set(["ce1", "ce2", "note/0"]);
  d.paste(d.copy());
  expect(d.said).toBe("3 pasted");
  expect(d.lab.services.map((s) => s.fields)).toEqual([{ name: "a", type: "vll", ends: ["ce1", "ce2"], rate: "5mbit" }, { name: "a1", type: "vll", ends: ["ce3", "ce4"], rate: "5mbit" }]);
  expect(d.lab.groups.map((g) => [g.name, g.nodes])).toEqual([["g", ["ce1", "ce2"]], ["g1", ["ce3", "ce4"]]]);
  expect(d.lab.notes.map((n) => n.at)).toEqual([[5, 5], [45, 45]]);
});

test("a link has the type that is drawn, with what that sets, and can be made another", () => {
  const d = new Design();
  d.restore();
  d.start("x-model: oshi\nswitches:\n  - {name: a, kind: hybrid, x-type: cr}\n  - {name: b, kind: hybrid, x-type: cr}\nhosts: [{name: ce1, x-type: ce}]\n");
  d.connect("a", "b");
  d.joins = d.model.links.find((t) => t.type === "radio")!;
  d.connect("a", "b");
  expect(d.lab.text).toContain("  - {a: a, b: b}\n  - {a: a, b: b, rate: 200mbit, delay: 1ms, x-link: radio}\n");
  d.connect("a", "ce1");
  expect([d.bad, d.said]).toEqual([true, "a core router has no customers: connect the customer to a provider edge"]);
  d.set(d.lab.links[2], { delay: "7ms" }, "delay");
  d.setLinkType(d.lab.links[2], "backbone");
  expect(d.lab.text).toContain("  - {a: a, b: b}\n  - {a: a, b: b, delay: 7ms}\n");
  expect(d.problems.filter((p) => !p.lacks)).toMatchObject([{ of: "ce1" }]); // attached to nothing
});

test("the model stands in the text: its name, or all of one that the user has written", () => {
  const d = drawn();
  d.setModel("fattree");
  expect([d.model.name, d.lab.text.includes("x-model: fattree\n")]).toEqual(["fattree", true]);
  d.undo();
  expect([d.model.name, d.lab.text.includes("x-model")]).toEqual(["openflow", false]);
  expect(d.addModel("name: openflow")).toContain("nodes is missing");
  const text = d.model.text.replace("name: openflow", "name: mine").replace("title: Plain OpenFlow", "title: Mine # with a comment").replace("prefix: s,", "prefix: box,");
  expect(d.addModel(d.model.text)).toContain("that of a model that Loom has");
  expect(d.addModel(text)).toBe("");
  d.addNode(d.model.nodes[0], [0, 0]);
  expect(d.node("box1")).toBeDefined();
  expect(d.lab.text).toContain("x-model:\n  # Plain OpenFlow");
  d.keep();
  // In another browser, which knows nothing but the text.
  const file = d.lab.text;
  store.clear();
  const other = new Design();
  other.restore();
  other.start(file);
  expect([other.model.title, other.offered.length, other.problems.length]).toEqual(["Mine", 4, 0]);
  other.edit(file.replace("shape: ellipse", "shape: blob"), "typing");
  expect(other.problems[0].text).toContain('nodes[2].shape: "blob"');
  expect(other.problems[0].line).toBeGreaterThan(1);
  other.edit(file.replace(/x-model:\n(  .*\n)+/, "x-model: nowhere\n"), "typing");
  expect(other.problems.map((p) => p.text).join()).toContain("there is no model nowhere here");
});

test("pages that are open at once do not undo each other's work", () => {
  const [a, b] = [drawn(), new Design()];
  a.keep();
  b.restore();
  const key = `loom.lab.draft.${a.draft.id}`;
  expect(b.lab.text).toBe(a.lab.text);
  vi.useFakeTimers({ now: Date.now() + 1000 });
  a.rename(a.node("s1")!, "rome");
  a.keep();
  b.elsewhere(key);
  expect(b.node("rome")).toBeDefined();
  b.undo();
  expect([b.node("rome"), b.draft.id]).toEqual([undefined, a.draft.id]);
  // Both at the same moment: both are kept.
  vi.setSystemTime(Date.now() + 1000);
  a.addNote([1, 1]);
  a.keep();
  b.elsewhere(key);
  expect([b.bad, b.said]).toEqual([true, "this draft was changed in another page at the same moment: what is here is now a draft of its own"]);
  b.keep();
  vi.useRealTimers();
  const c = new Design();
  c.restore();
  expect(c.drafts.map((d) => d.text).sort()).toEqual([a.lab.text, b.lab.text].sort());
});

test("services are drawn between customer edges alone", () => {
  const d = new Design();
  d.restore();
  d.setModel("oshi");
  const type = (name: string) => d.model.nodes.find((t) => t.type === name)!;
  for (const t of ["pe", "ce", "ce"]) d.addNode(type(t), [0, 0]);
  d.view = "vll";
  d.connect("ce1", "pe1");
  expect(d.said).toContain("not an end of a VLL");
  d.connect("ce1", "ce2");
  expect(d.lab.services).toMatchObject([{ name: "vll1", type: "vll", ends: ["ce1", "ce2"] }]);
  d.rename(d.node("ce1")!, "rome");
  expect(d.lab.services[0].ends).toEqual(["rome", "ce2"]);
  d.setService(d.lab.services[0], { rate: "20mbit" });
  expect(d.lab.text).toContain("- {name: vll1, type: vll, ends: [rome, ce2], rate: 20mbit}");
  d.addNode(type("ce"), [0, 0]);
  expect(d.palette.map((t) => t.type)).toEqual(["ce"]);
  d.view = "vss";
  d.serve("vss", ["rome", "ce2"]);
  d.connect("service/vss1", "ce1");
  expect(d.lab.services[1].ends).toEqual(["rome", "ce2", "ce1"]);
  d.connect("ce1", "service/vss1");
  expect([d.bad, d.said]).toEqual([true, "a VSS joins two customer edges or more"]);
  d.setEnds(d.lab.services[1], ["rome", "ce1"]);
  expect(d.lab.text).toContain("- {name: vss1, type: vss, ends: [rome, ce1]}");
  d.setEnds(d.lab.services[1], ["rome"]);
  expect([d.bad, d.lab.services[1].ends.length]).toEqual([true, 2]);
  d.dropService(d.lab.services[1]);
  d.dropService(d.lab.services[0]);
  expect(d.lab.text).not.toContain("x-services");
});

test("groups and notes are kept in the file, follow their nodes, and are undone", () => {
  const d = drawn();
  d.chosen = new Set();
  d.group();
  expect(d.bad).toBe(true);
  d.chosen = new Set(["s1", "h1"]);
  d.group();
  expect(d.lab.text).toContain("x-groups:\n  - {name: group1, colour: blue, nodes: [s1, h1]}");
  d.chosen = new Set(["h1", "s2"]);
  d.group();
  expect(d.lab.groups.map((g) => [g.name, g.nodes])).toEqual([["group1", ["s1"]], ["group2", ["s2", "h1"]]]);
  d.putIn(d.node("h1")!, "group/0");
  d.rename(d.node("s1")!, "rome");
  expect(d.lab.groups[0].nodes).toEqual(["rome", "h1"]);
  d.setMark(d.lab.groups[0], { name: "Site: A", colour: "green" });
  expect(d.lab.groups[0]).toMatchObject({ name: "Site: A", colour: "green" });
  d.addNote([10.4, 20]);
  d.setMark(d.lab.notes[0], { text: "<b>two</b>\nlines" });
  d.nudge(5, 0);
  expect(d.lab.notes).toMatchObject([{ text: "<b>two</b>\nlines", at: [15, 20] }]);
  d.chosen = new Set(["group/0"]);
  d.nudge(7, 0);
  expect([d.node("rome")!.at, d.node("h1")!.at, d.node("s2")!.at]).toEqual([[7, 0], [7, 100], [100, 0]]);
  d.chosen = new Set(["rome", "group/1"]);
  d.remove();
  expect(d.lab.groups.map((g) => g.nodes)).toEqual([["h1"]]);
  d.chosen = new Set(["group/0", "note/0"]);
  d.remove();
  expect(d.lab.text).not.toMatch(/x-groups|x-notes/);
  for (let i = 0; i < 2; i++) d.undo();
  expect(d.lab.groups.length).toBe(2);
  expect(d.problems).toEqual([]);
});

test("controllers are added, moved, deleted and joined to a node in band", () => {
  const d = drawn();
  d.view = "controllers";
  d.addController();
  expect(d.lab.controllers).toEqual(["tcp:127.0.0.1:6653", "tcp:127.0.0.1:6654"]);
  expect(d.moveController("tcp:127.0.0.1:6654", "nonsense")).toContain("is no controller's address");
  expect(d.moveController("tcp:127.0.0.1:6654", "tcp:127.0.0.1:6653")).toContain("already");
  expect(d.moveController("tcp:127.0.0.1:6654", "ssl:10.0.0.1:6653")).toBe("");
  expect(d.chosen).toEqual(new Set(["controller/ssl:10.0.0.1:6653"]));
  d.remove();
  expect(d.lab.controllers).toEqual(["tcp:127.0.0.1:6653"]);
  d.connect("controller/tcp:127.0.0.1:6653", "s1");
  expect(d.said).toContain("connects to all controllers by itself");
  d.set(d.node("s1")!, { kind: "hybrid" }, "kind");
  d.connect("s1", "controller/tcp:127.0.0.1:6653");
  expect(d.lab.text).toContain("control: {mode: in-band, at: s1}");
  d.controlAt("");
  expect(d.lab.text).not.toContain("control:");
});

test("a draft is there again, and no room for it is said", () => {
  const d = drawn();
  d.keep();
  const again = new Design();
  again.restore();
  expect(again.lab.text).toBe(d.lab.text);
  room.most = 10;
  again.addNode(again.model.nodes[0], [0, 0]);
  again.keep();
  expect(again.unsaved).toContain("no room");
  room.most = Infinity;
  store.setItem("loom.lab.draft.x", "{not JSON");
  again.restore();
  expect(again.lab.name).toBe("my-lab");
});
