import { expect, test } from "vitest";

import { move, read, setReplicas, setTransport } from "./planedit";

const text = `# every service alone
name: split
transport: grpc
workers:
  southbound: {services: [southbound]} # the switches
  paths: {services: [paths]}
  rest: {services: [hosts, forwarding, gateway], replicas: 2}
`;

const services = (t: string) => Object.fromEntries(read(t).workers.map((w) => [w.name, w.services.join(" ")]));

test("a plan is read", () => {
  expect(read(text)).toMatchObject({ name: "split", transport: "grpc" });
  expect(read(text).workers[2]).toEqual({ name: "rest", services: ["hosts", "forwarding", "gateway"], replicas: 2, transport: "" });
});

test("a service moves to the place of the pipeline's order, and an empty worker goes", () => {
  const moved = move(text, "paths", "rest", ["hosts", "paths", "forwarding"]);
  expect(services(moved)).toEqual({ southbound: "southbound", rest: "hosts paths forwarding gateway" });
  expect(moved).toContain("# every service alone");
  expect(moved).toContain("# the switches");
});

test("a service gets a worker of its own", () => {
  expect(services(move(text, "hosts", "hosts"))).toEqual({ southbound: "southbound", paths: "paths", rest: "forwarding gateway", hosts: "hosts" });
});

test("a move to where it is changes nothing", () => {
  expect(move(text, "paths", "paths")).toBe(text);
});

test("every service is somewhere, once, after any moves", () => {
  const all = read(text).workers.flatMap((w) => w.services).sort();
  let t = text;
  for (let i = 0; i < 60; i++) {
    const names = read(t).workers.map((w) => w.name);
    t = move(t, all[i % all.length], i % 7 === 0 ? `w${i}` : names[(i * 5) % names.length]);
    expect(read(t).workers.flatMap((w) => w.services).sort()).toEqual(all);
    expect(read(t).workers.every((w) => w.services.length > 0)).toBe(true);
  }
});

test("replicas and transport", () => {
  expect(read(setReplicas(text, "paths", 3)).workers[1].replicas).toBe(3);
  expect(setReplicas(text, "rest", 1)).not.toContain("replicas");
  expect(read(setTransport(text, "shm")).transport).toBe("shm");
});

test("what is no plan is refused", () => {
  for (const bad of ["", "workers: 3", "a: [", "name: x"]) expect(() => read(bad)).toThrow();
  expect(() => move(text, "none", "rest")).toThrow("no worker");
});
