import type { Node } from "./document";
import type { Position } from "./layout";

export const alignments = { row: "In a row", column: "In a column", evenly: "Evenly across", down: "Evenly down" };
export type Alignment = keyof typeof alignments;

/** aligned returns where nodes stand in a row or column, or with even gaps. */
export function aligned(nodes: Array<Node & { at: Position }>, how: Alignment): Map<string, Position> {
  const axis = how === "row" || how === "down" ? 1 : 0;
  const put = (n: { at: Position }, v: number): Position => (axis === 0 ? [v, n.at[1]] : [n.at[0], v]);
  if (how === "row" || how === "column") {
    const mean = nodes.reduce((s, n) => s + n.at[axis], 0) / nodes.length;
    return new Map(nodes.map((n) => [n.id, put(n, mean)]));
  }
  const order = [...nodes].sort((a, b) => a.at[axis] - b.at[axis]);
  const [first, last] = [order[0].at[axis], order[order.length - 1].at[axis]];
  return new Map(order.map((n, i) => [n.id, put(n, first + ((last - first) * i) / (order.length - 1))]));
}
