import { expect, test, vi } from "vitest";

vi.stubGlobal("location", { hash: "" });
const { parse, write } = await import("./route");

test("an address restores what is shown", () => {
  const state = { from: "10.0.0.1", to: "00:00:00:00:00:02", q: "a&b=c#d" };
  const r = parse(write("network", state));
  expect(r.page).toBe("network");
  expect(Object.fromEntries(r.query)).toEqual(state);
});

test("an empty address is the start page", () => {
  expect(parse("").page).toBe("overview");
  expect(parse("#/").page).toBe("overview");
  expect(write("lab", { name: "" })).toBe("#/lab");
});
