import type { PlanProcess } from "../api/types.gen";
import { move, setLink, setReplicas, setTransport } from "./planedit";

/** Edit is one change that the user wants of the plan in force. */
export type Edit =
  | { kind: "move"; service: string; from: string; to: string }
  | { kind: "replicas"; worker: string; n: number }
  | { kind: "transport" | "events"; transport: string }
  | { kind: "link"; from: string; to: string; transport: string };

/** Made is what edits make of a plan. */
export interface Made {
  text: string;
  /** wrong are the edits that cannot be made of this plan, and why. */
  wrong: Array<{ edit: Edit; why: string }>;
}

/** make makes edits of a plan's text, one after the other. */
export function make(text: string, edits: Edit[], order: string[] = []): Made {
  const wrong: Made["wrong"] = [];
  for (const edit of edits) {
    try {
      text = one(text, edit, order);
    } catch (err) {
      wrong.push({ edit, why: err instanceof Error ? err.message : String(err) });
    }
  }
  return { text, wrong };
}

function one(text: string, e: Edit, order: string[]): string {
  switch (e.kind) {
    case "move":
      return move(text, e.service, e.from, e.to, order);
    case "replicas":
      return setReplicas(text, e.worker, e.n);
    case "link":
      return setLink(text, e.from, e.to, e.transport);
    default:
      return setTransport(text, e.kind, e.transport);
  }
}

/** add adds an edit to others, in the place of one about the same; an edit that changes nothing
 * of the plan's text goes. */
export function add(edits: Edit[], e: Edit, text: string): Edit[] {
  if (e.kind === "move") {
    const before = edits.find((o) => o.kind === "move" && o.service === e.service && o.to === e.from);
    const rest = edits.filter((o) => o !== before);
    const from = before?.kind === "move" ? before.from : e.from;
    return from === e.to ? rest : [...rest, { ...e, from }];
  }
  const same = (o: Edit) => {
    if (o.kind !== e.kind) return false;
    if (o.kind === "replicas" && e.kind === "replicas") return o.worker === e.worker;
    if (o.kind === "link" && e.kind === "link") return o.from === e.from && o.to === e.to;
    return true;
  };
  const rest = edits.filter((o) => !same(o));
  const made = make(text, [e]);
  return made.wrong.length === 0 && made.text === text ? rest : [...rest, e];
}

/** says what an edit does. */
export function says(e: Edit): string {
  switch (e.kind) {
    case "move":
      return `${e.service} from ${e.from} to ${e.to}`;
    case "replicas":
      return `${e.n} ${e.n === 1 ? "replica" : "replicas"} of ${e.worker}`;
    case "link":
      return e.transport ? `${e.transport} from ${e.from} to ${e.to}` : `the plan's transport from ${e.from} to ${e.to}`;
    case "events":
      return `events by ${e.transport}`;
    default:
      return `calls and packets by ${e.transport}`;
  }
}

/** write makes edits a part of an address; parse reads it. Names have neither dots nor underscores. */
export function write(edits: Edit[]): string {
  return edits
    .map((e) => {
      switch (e.kind) {
        case "move":
          return ["move", e.service, e.from, e.to];
        case "replicas":
          return ["replicas", e.worker, e.n];
        case "link":
          return ["link", e.from, e.to, e.transport];
        default:
          return [e.kind, e.transport];
      }
    })
    .map((parts) => parts.join("."))
    .join("_");
}

export function parse(text: string): Edit[] {
  return text.split("_").flatMap((part): Edit[] => {
    const [kind, a, b, c] = part.split(".");
    if (kind === "move" && a && b && c) return [{ kind, service: a, from: b, to: c }];
    if (kind === "replicas" && a && Number(b) >= 1) return [{ kind, worker: a, n: Number(b) }];
    if (kind === "link" && a && b && c !== undefined) return [{ kind, from: a, to: b, transport: c }];
    if ((kind === "transport" || kind === "events") && a) return [{ kind, transport: a }];
    return [];
  });
}

const fates: Record<string, string> = { stay: "keeps running", start: "starts", stop: "stops", restart: "restarts" };

/** fateOf says what becomes of a process. */
export function fateOf(p: PlanProcess): string {
  const parts = [fates[p.fate ?? ""] ?? p.fate ?? ""];
  if (p.fate === "start") return `Process ${p.process} starts${p.begins?.length ? ` with ${p.begins.join(", ")}` : ""}.`;
  if (p.begins?.length) parts.push(`takes over ${p.begins.join(", ")}`);
  if (p.ends?.length && p.fate !== "stop") parts.push(`gives up ${p.ends.join(", ")}`);
  return `Process ${p.process} ${parts.join(", ")}.`;
}
