import { expect, test } from "vitest";

import { freeName, move, read, setLink, setReplicas, setTransport, workerOf } from "./planedit";
import { add, fateOf, make, parse, says, write, type Edit } from "./proposal";

const text = `# every service alone
name: split
transport: grpc
workers:
  southbound: {services: [southbound]} # the switches
  paths: {services: [paths]}
  rest: {services: [hosts, forwarding, gateway], replicas: 2}
`;

const halves = `name: halves
partitions: {east: {switches: ["1-80"]}, west: {switches: [rest]}}
workers:
  east: {partition: east, machine: m1, services: [southbound, heartbeat, firewall], settings: {southbound: {listen: ["tcp:127.0.0.1:6653"]}}}
  west: {partition: west, services: [southbound, heartbeat, firewall]}
  all: {services: [discovery, hosts, paths, forwarding, gateway]}
links: [{from: "*", to: all, transport: ws}]
`;

const services = (t: string) => Object.fromEntries(read(t).workers.map((w) => [w.name, w.services.join(" ")]));

test("a plan is read", () => {
  expect(read(text)).toMatchObject({ name: "split", transport: "grpc", events: "nats" });
  expect(read(text).workers[2]).toEqual({ name: "rest", services: ["hosts", "forwarding", "gateway"], replicas: 2, standby: 0, partition: "", machine: "" });
  expect(read(halves)).toMatchObject({ links: [{ from: "*", to: "all", transport: "ws" }], workers: [{ partition: "east", machine: "m1" }, { partition: "west" }, { partition: "" }] });
});

test("a service moves to the place of the pipeline's order, the others stay, and an empty worker goes", () => {
  const moved = move(text, "paths", "paths", "rest", ["hosts", "paths", "forwarding"]);
  expect(services(moved)).toEqual({ southbound: "southbound", rest: "hosts paths forwarding gateway" });
  expect(moved).toContain("# every service alone");
  expect(moved).toContain("# the switches");
  const order = ["discovery", "hosts", "firewall", "forwarding"];
  expect(services(move(halves, "discovery", "all", "east", order)).east).toBe("southbound heartbeat discovery firewall");
  expect(services(move(halves, "gateway", "all", "east", order)).east).toBe("southbound heartbeat firewall gateway");
});

test("a service that several workers have is moved from the one that is meant", () => {
  const moved = move(halves, "firewall", "west", "west-firewall");
  expect(services(moved)).toMatchObject({ east: "southbound heartbeat firewall", west: "southbound heartbeat", "west-firewall": "firewall" });
  expect(() => move(halves, "firewall", "west", "east")).toThrow("worker east has the service firewall already");
});

test("a worker of its own is of the same partition and machine, and settings go with their service", () => {
  const moved = move(halves, "southbound", "east", "east-southbound");
  expect(read(moved).workers.find((w) => w.name === "east-southbound")).toMatchObject({ partition: "east", machine: "m1" });
  expect(moved).toMatch(/east-southbound:[^]*listen/);
  expect(moved.match(/settings/g)).toHaveLength(1);
  const back = move(moved, "southbound", "east-southbound", "east");
  expect(back.match(/listen/g)).toHaveLength(1);
  expect(freeName(read(halves).workers, "firewall", "west")).toBe("west-firewall");
  expect(freeName([...read(text).workers], "hosts", "rest")).toBe("hosts");
  expect(freeName([...read(text).workers], "paths", "rest")).toBe("paths-own2");
});

test("a move to where it is changes nothing", () => {
  expect(move(text, "paths", "paths", "paths")).toBe(text);
});

test("every service is somewhere, once, after any moves", () => {
  const all = read(text).workers.flatMap((w) => w.services).sort();
  let t = text;
  for (let i = 0; i < 60; i++) {
    const list = read(t).workers;
    const service = all[i % all.length];
    const from = list.find((w) => w.services.includes(service))!.name;
    t = move(t, service, from, i % 7 === 0 ? `w${i}` : list[(i * 5) % list.length].name);
    expect(read(t).workers.flatMap((w) => w.services).sort()).toEqual(all);
    expect(read(t).workers.every((w) => w.services.length > 0)).toBe(true);
  }
});

test("replicas, transports and exceptions", () => {
  expect(read(setReplicas(text, "paths", 3)).workers[1].replicas).toBe(3);
  expect(setReplicas(text, "rest", 1)).not.toContain("replicas");
  expect(setReplicas(text, "paths", 1)).toBe(text);
  expect(read(setTransport(text, "transport", "shm")).transport).toBe("shm");
  expect(read(setTransport(text, "events", "grpc")).events).toBe("grpc");
  expect(setTransport(text, "events", "nats")).toBe(text);
  const one = setLink(halves, "east", "all", "shm");
  expect(read(one).links).toEqual([{ from: "east", to: "all", transport: "shm" }, { from: "*", to: "all", transport: "ws" }]);
  expect(read(setLink(one, "east", "all", "")).links).toEqual(read(halves).links);
  expect(setLink(setLink(text, "rest", "paths", "ws"), "rest", "paths", "")).not.toContain("links");
  expect(() => setLink(text, "none", "rest", "ws")).toThrow("no worker none");
});

test("what is no plan is refused", () => {
  for (const bad of ["", "workers: 3", "a: [", "name: x"]) expect(() => read(bad)).toThrow();
  expect(() => move(text, "none", "rest", "paths")).toThrow("worker rest has no service none");
});

test("an instance is of the worker that its name says", () => {
  const all = ["routing", "routing-2", "east"];
  expect(["routing", "routing-1", "routing-2", "routing-2-1", "east-standby", "east-standby-2"].map((i) => workerOf(all, i))).toEqual(["routing", "routing", "routing-2", "routing-2", "east", "east"]);
});

const edits: Edit[] = [
  { kind: "move", service: "paths", from: "paths", to: "rest" },
  { kind: "replicas", worker: "rest", n: 3 },
  { kind: "transport", transport: "shm" },
  { kind: "events", transport: "grpc" },
  { kind: "link", from: "*", to: "rest", transport: "ws" },
  { kind: "link", from: "rest", to: "rest", transport: "" },
];

test("an address restores a proposal", () => {
  expect(parse(write(edits))).toEqual(edits);
  expect(parse("")).toEqual([]);
  expect(parse("move.a_replicas.x.0_nonsense.1.2.3_transport.ws")).toEqual([{ kind: "transport", transport: "ws" }]);
  expect(edits.map(says)).toEqual(["paths from paths to rest", "3 replicas of rest", "calls and packets by shm", "events by grpc", "ws from * to rest", "the plan's transport from rest to rest"]);
});

test("a proposal is made of whatever plan is in force, and says what cannot be made of it", () => {
  const changed = text.replace("paths: {services: [paths]}", "ways: {services: [paths]}").replace("name: split", "name: other");
  const made = make(changed, edits);
  expect(made.wrong.map((w) => w.why)).toEqual(["the plan has no worker paths"]);
  expect(read(made.text)).toMatchObject({ name: "other", transport: "shm", events: "grpc", links: [{ from: "*", to: "rest", transport: "ws" }] });
  expect(make(text, []).text).toBe(text);
});

test("an edit takes the place of one about the same, and one that changes nothing goes", () => {
  const moved = add([], edits[0], text);
  const further = add(moved, { kind: "move", service: "paths", from: "rest", to: "southbound" }, text);
  expect(further).toEqual([{ kind: "move", service: "paths", from: "paths", to: "southbound" }]);
  expect(add(further, { kind: "move", service: "paths", from: "southbound", to: "paths" }, text)).toEqual([]);
  const three = add([], edits[1], text);
  expect(add(three, { kind: "replicas", worker: "rest", n: 4 }, text)).toEqual([{ kind: "replicas", worker: "rest", n: 4 }]);
  expect(add(three, { kind: "replicas", worker: "rest", n: 2 }, text)).toEqual([]);
  expect(add(add([], edits[2], text), { kind: "transport", transport: "grpc" }, text)).toEqual([]);
});

test("what becomes of a process is said in a sentence", () => {
  expect(fateOf({ process: "forwarding", fate: "stay", begins: ["paths"] })).toBe("Process forwarding keeps running, takes over paths.");
  expect(fateOf({ process: "paths", fate: "stop", ends: ["paths"] })).toBe("Process paths stops.");
  expect(fateOf({ process: "new", fate: "start", begins: ["paths", "hosts"] })).toBe("Process new starts with paths, hosts.");
  expect(fateOf({ process: "a", fate: "restart", ends: ["hosts"] })).toBe("Process a restarts, gives up hosts.");
});
