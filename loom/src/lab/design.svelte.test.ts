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
