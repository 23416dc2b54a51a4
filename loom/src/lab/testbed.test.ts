import { expect, test } from "vitest";

import { controllerOf, names, place } from "./testbed";

const text = `# two machines
machines:
  - {name: m1, ssh: root@192.0.2.1, cores: 4} # the large one
  - name: m2
    ssh: root@192.0.2.2
    nodes: [s2, h2]
controller: tcp:192.0.2.9:6653
`;

test("a node is placed by hand, and left to the mapping again, and nothing else of the text changes", () => {
  expect(names(text)).toEqual(["m1", "m2"]);
  const placed = place(text, "s2", "m1");
  expect(placed).toBe(text.replace("cores: 4}", "cores: 4, nodes: [s2]}").replace("[s2, h2]", "[h2]"));
  expect(place(placed, "s2", "m2")).toBe(text.replace("[s2, h2]", "[h2, s2]"));
  expect(place(place(text, "s2", ""), "h2", "")).toBe(text.replace("    nodes: [s2, h2]\n", ""));
  expect(place(text, "s2", "m2")).toBe(text.replace("[s2, h2]", "[h2, s2]"));
  expect(place("machines: [", "s1", "m1")).toBe("machines: [");
  expect(names("[]")).toEqual([]);
  expect([controllerOf(text), controllerOf("machines: []"), controllerOf("a: [")]).toEqual(["tcp:192.0.2.9:6653", "", ""]);
});
