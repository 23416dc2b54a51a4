import { expect, test } from "vitest";
import { parse } from "yaml";

import { apart, clashes, type Numbered } from "./apart";

const text = `# a line
name: two
switches:
  - {name: s1}
  - {name: s2, x-position: [1, 2]}
hosts:
  - {name: h1, switch: s1}
  - {name: h2, switch: s2, ipv4: 192.0.2.7/24}
`;
const filled = (k = 0): Numbered[] => [
  { name: "s1", kind: "openflow", dpid: "0000000000000001" },
  { name: "s2", kind: "openflow", dpid: "0000000000000002" },
  { name: "h1", kind: "host", mac: "02:00:00:00:00:01", ipv4: `10.${k}.0.1/24`, ipv6: "fd00::1/64" },
  { name: "h2", kind: "host", mac: "02:00:00:00:00:02", ipv4: "192.0.2.7/24", ipv6: "fd00::2/64" },
];

test("a text that clashes with nothing stays as it is", () => {
  expect(apart(text, filled(), [])).toBe(text);
  expect(apart(text, filled(), [{ name: "s9", dpid: "00000000000000ff" }])).toBe(text);
});

test("what the text leaves open gets numbers that no other lab has, again and again", () => {
  let others = filled().filter((n) => n.name !== "h2");
  for (let i = 0; i < 5; i++) {
    const next = parse(apart(text, filled(), others)) as { switches: Numbered[]; hosts: Numbered[] };
    const made = [...next.switches, ...next.hosts];
    expect(clashes(made, others)).toEqual([]);
    expect(next.hosts[1].ipv4).toBe("192.0.2.7/24");
    expect(next.switches.every((s) => /^[0-9a-f]{16}$/.test(s.dpid!))).toBe(true);
    others = [...others, ...made.filter((n) => n.name !== "h2")];
  }
  expect(apart(text, filled(), others)).toContain("# a line");
});

test("a clash that the text decides is told", () => {
  expect(() => apart(text, filled(), filled())).toThrow("h2");
  expect(() => apart(text, [...filled(), { name: "r1", kind: "router" }], filled())).toThrow("take that one down");
});
