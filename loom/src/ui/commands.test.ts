import { expect, test } from "vitest";

import { command, linkCommand, traceCommand } from "./commands";

test("what a page does is a command that a shell takes as it is", () => {
  expect(command("switch", "forget", "s1")).toBe("weft switch forget s1");
  expect(command("switch", "forget", "the attic's")).toBe("weft switch forget 'the attic'\\''s'");
  expect(traceCommand("10.0.0.1", "10.0.0.4", "", 80)).toBe("weft trace 10.0.0.1 10.0.0.4");
  expect(traceCommand("fd00::1", "fd00::8", "tcp", 443)).toBe("weft trace fd00::1 fd00::8 --tcp-dst 443");
  expect(traceCommand("a", "b", "ping6", 80)).toBe("weft trace a b -6");
  expect(linkCommand("ring", "s1:2-s2:3", true)).toBe("weft lab link --name ring s1:2 s2:3 down");
  expect(linkCommand("ring", "my-s1:2-s2:3", false)).toBe("weft lab link --name ring my-s1:2 s2:3 up");
});
