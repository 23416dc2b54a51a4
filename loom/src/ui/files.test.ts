import { expect, test } from "vitest";

import { csv } from "./files";

test("csv quotes, and no cell is a formula", () => {
  expect(csv([["a", 'b"c', 1.5, null], ["x,y", "two\nlines", -3, ""]])).toBe('a,"b""c",1.5,\r\n"x,y","two\nlines",-3,\r\n');
  for (const number of ["-3", "+1.5", "-1e-3"]) expect(csv([[number]])).toBe(number + "\r\n");
  for (const formula of ["=1+1", "-x", "-1+cmd|' /C calc'!A0", "+1+1", "@SUM(A1)", "\t=1"]) expect(csv([[formula]]).startsWith("'"), formula).toBe(true);
  expect(csv([["\r=1"], ["\n=1"]])).toBe('"\'\r=1"\r\n"\'\n=1"\r\n');
});
