// What the page edits: flow rules, firewall rules and defaults, and virtual IPs, as forms, as
// JSON, and as requests to the northbound.

import type {
  AddFirewallRulesResponse,
  AddFlowsResponse,
  DeleteFirewallRulesResponse,
  DeleteFlowsResponse,
  DeleteVipResponse,
  FirewallFailure,
  FirewallRule,
  FirewallStatus,
  FlowEntry,
  ListFirewallRulesResponse,
  ListFlowsResponse,
  ListVipsResponse,
  SetFirewallDefaultResponse,
  Vip,
} from "../api/types.gen";
import { titled, type Known } from "../api/known";
import { network } from "../api/network.svelte";
import { actionsText } from "../network/entry";
import type { Column } from "../ui/table";
import { away, firewallRemarks, flowRemarks, hidden } from "./remarks";

/** Field is a labelled field of a form. */
export interface Field {
  name: string;
  label: string;
  hint?: string;
  type: "text" | "number" | "choice" | "check" | "lines";
  choices?: string[];
  start: string;
  /** words name it in errors of the controller. */
  words: string[];
}

export type Form = Record<string, string>;

/** FieldError says what is wrong with a field. */
export class FieldError extends Error {
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message);
  }
}

/** Effect is what a change does to one thing. */
export interface Effect {
  what: string;
  effect: string;
  before?: unknown;
  after?: unknown;
  /** remarks are what else is to be known of it. */
  remarks?: string[];
}

export interface Request {
  method: "POST" | "DELETE";
  path: string;
  body?: unknown;
}

/** Kind is what a tab edits. */
export interface Kind<T> {
  id: string;
  one: string;
  many: string;
  fields: Field[];
  list: string;
  listed: (answer: unknown) => T[];
  key: (v: T) => string;
  /** mine says why it is not to be changed here; "" if it is. */
  foreign: (v: T) => string;
  /** foreignApart: there are many of those, which are shown when asked for. */
  foreignApart?: boolean;
  columns: Array<Column<T>>;
  fromForm: (f: Form) => T;
  toForm: (v: T) => Form;
  /** tidy leaves out what the controller gives. */
  tidy: (v: T) => T;
  add: (v: T[], dry: boolean) => Request[];
  added: (answers: unknown[], asked: T[], now: T[]) => Effect[];
  /** remarks says what is odd about one that is to be added. */
  remarks?: (v: T, known: Known, now: T[]) => string[];
  remove: (v: T, dry: boolean) => Request;
  removed: (answer: unknown, v: T) => Effect[];
}

function number(f: Form, name: string, least: number, most: number): number {
  const text = (f[name] ?? "").trim();
  if (text === "") return 0;
  if (!/^\d+$/.test(text) || Number(text) < least || Number(text) > most) throw new FieldError(name, `${text}: want a number of ${least} to ${most}`);
  return Number(text);
}

/** items divides a text by lines and commas. */
const items = (text: string): string[] => text.split(/[\n,]/).map((s) => s.trim()).filter(Boolean);

/** match reads FIELD=VALUE, one in a line or with commas between. */
export function match(f: Form, name: string): Record<string, string> {
  const out: Record<string, string> = {};
  for (const item of items(f[name] ?? "")) {
    const at = item.indexOf("=");
    const key = item.slice(0, at).trim();
    if (at < 1) throw new FieldError(name, `${item}: want FIELD=VALUE, such as tcp_dst=80`);
    if (key in out) throw new FieldError(name, `${key} is there twice`);
    out[key] = item.slice(at + 1).trim();
  }
  return out;
}

const matchText = (m: Record<string, string> | undefined, between: string): string => Object.entries(m ?? {}).sort().map(([k, v]) => `${k}=${v}`).join(between);

/** given leaves out what is empty. */
function given<T extends object>(v: T): T {
  return Object.fromEntries(Object.entries(v).filter(([, x]) => x !== "" && x !== 0 && x !== false && x !== undefined && x !== null && !(Array.isArray(x) && x.length === 0))) as T;
}

const drop = <T extends object>(v: T, ...names: string[]): T => Object.fromEntries(Object.entries(v).filter(([k]) => !names.includes(k))) as T;

/** place names an entry. */
const place = (f: FlowEntry | undefined) => `switch ${f?.dpid ?? ""}, table ${f?.table ?? 0}, priority ${f?.priority ?? 0}: ${matchText(f?.match, ",") || "every packet"}`;

export const flows: Kind<FlowEntry> = {
  id: "flows",
  one: "flow rule",
  many: "flow rules",
  fields: [
    { name: "dpid", label: "Switch", hint: "its number, such as 1 or 0000000000000001", type: "text", start: "", words: ["dpid", "switch", "datapath id"] },
    { name: "table", label: "Table", type: "number", start: "0", words: ["table"] },
    { name: "priority", label: "Priority", hint: "0 to 65535; the highest counts", type: "number", start: "32768", words: ["priority"] },
    { name: "match", label: "Match", hint: "FIELD=VALUE in each line, such as in_port=1; none is every packet", type: "lines", start: "", words: ["match", "field", "matches"] },
    { name: "actions", label: "Actions", hint: "one in each line, such as output:2; none drops the packet", type: "lines", start: "", words: ["actions", "action"] },
    { name: "goto_table", label: "Next table", hint: "0: none", type: "number", start: "0", words: ["goto", "goto_table"] },
    { name: "idle_timeout", label: "Idle timeout (s)", hint: "0: never", type: "number", start: "0", words: ["idle_timeout"] },
    { name: "hard_timeout", label: "Hard timeout (s)", hint: "0: never", type: "number", start: "0", words: ["hard_timeout"] },
  ],
  list: "v1/flows",
  listed: (a) => ((a as ListFlowsResponse).flows ?? []).filter((w) => !w.group && !w.meter && w.flow).map((w) => ({ ...w.flow!, ...{ state: w.reason ? `${w.state}: ${w.reason}` : w.state } }) as FlowEntry),
  key: (f) => `${f.dpid}/${f.table ?? 0}/${f.priority ?? 0}/${matchText(f.match, ",")}`,
  foreign: (f) => (!f.owner || f.owner === "operator" ? "" : `it belongs to ${f.owner}, which alone changes it`),
  foreignApart: true,
  columns: [
    { title: "Rule", text: (f) => `${f.priority ?? 0} ${matchText(f.match, " ") || "every packet"}` },
    { title: "Switch", text: (f) => titled(network.known, f.dpid) },
    { title: "Table", text: (f) => String(f.table ?? 0), number: true },
    { title: "Actions", text: actionsText },
    { title: "Owner", text: (f) => f.owner ?? "" },
    { title: "State", text: (f) => (f as { state?: string }).state ?? "", class: (f) => ((f as { state?: string }).state?.startsWith("failed") ? "bad" : "") },
  ],
  remarks: flowRemarks,
  fromForm: (f) => {
    if (!(f.dpid ?? "").trim()) throw new FieldError("dpid", "name the switch");
    return given<FlowEntry>({
      dpid: f.dpid.trim(), table: number(f, "table", 0, 254), priority: number(f, "priority", 0, 65535), match: match(f, "match"),
      actions: (f.actions ?? "").split("\n").map((s) => s.trim()).filter(Boolean), goto_table: number(f, "goto_table", 0, 254),
      idle_timeout: number(f, "idle_timeout", 0, 65535), hard_timeout: number(f, "hard_timeout", 0, 65535),
    });
  },
  toForm: (v) => ({
    dpid: v.dpid ?? "", table: String(v.table ?? 0), priority: String(v.priority ?? 0), match: matchText(v.match, "\n"), actions: (v.actions ?? []).join("\n"),
    goto_table: String(v.goto_table ?? 0), idle_timeout: String(v.idle_timeout ?? 0), hard_timeout: String(v.hard_timeout ?? 0),
  }),
  tidy: (v) => given(drop(v, "state", "packets", "bytes", "duration", "cookie", "owner", ...(v.flags === 1 ? ["flags"] : []))), // 1 is the controller's
  add: (list, dry) => [{ method: "POST", path: "v1/flows", body: { flows: list, dry_run: dry } }],
  added: (answers) =>
    (answers as AddFlowsResponse[]).flatMap((a) => (a.flows ?? []).map((w) => ({ what: place(w.flow), effect: w.state === "failed" ? `failed: ${w.reason}` : (w.effect ?? "") + (w.state ? `, ${w.state}${w.reason ? ": " + w.reason : ""}` : ""), before: w.replaces, after: w.flow }))),
  remove: (v, dry) => ({ method: "POST", path: "v1/flows:delete", body: { flows: [drop(v, "state")], dry_run: dry } }),
  removed: (answer) => ((answer as DeleteFlowsResponse).flows ?? []).map((w) => ({ what: place(w.flow), effect: w.effect ?? "", before: w.flow })),
};

/** behind tells of switches that have not confirmed. */
const behind = (failures: FirewallFailure[] | undefined): Effect[] => (failures ?? []).map((f) => ({ what: `switch ${f.dpid}`, effect: `does not do so yet: ${f.text}` }));

/** Covered is a rule, and the one that comes first for all of its packets. */
type Covered = FirewallRule & { first?: string };

export const firewall: Kind<FirewallRule> = {
  id: "firewall",
  one: "firewall rule",
  many: "firewall rules",
  fields: [
    { name: "id", label: "Id", hint: "letters, digits, - _ . :; made up if empty", type: "text", start: "", words: ["id"] },
    { name: "action", label: "Action", type: "choice", choices: ["deny", "allow"], start: "deny", words: ["action"] },
    { name: "priority", label: "Priority", hint: "0 to 65535; the highest decides", type: "number", start: "32768", words: ["priority"] },
    { name: "match", label: "Match", hint: "FIELD=VALUE in each line, such as tcp_dst=22; ports may be ranges", type: "lines", start: "", words: ["match", "field"] },
    { name: "dpid", label: "Switch", hint: "empty: wherever packets enter the network", type: "text", start: "", words: ["dpid", "switch", "datapath id"] },
    { name: "vlan", label: "VLAN", hint: "0: any", type: "number", start: "0", words: ["vlan"] },
    { name: "tenant", label: "Tenant", hint: "whose packets it is about", type: "text", start: "", words: ["tenant"] },
    { name: "comment", label: "Comment", type: "text", start: "", words: ["comment"] },
  ],
  list: "v1/firewall/rules",
  listed: (a) => {
    const rules = (a as ListFirewallRulesResponse).rules ?? [];
    const first = hidden(rules);
    return rules.map((r) => (first.has(r.id ?? "") ? { ...r, first: first.get(r.id ?? "") } : r));
  },
  key: (r) => r.id ?? "",
  foreign: (r) => (r.id?.startsWith("config:") ? "it is a rule of the configuration: change it there" : ""),
  columns: [
    { title: "Rule", text: (r) => r.id ?? "" },
    { title: "Priority", text: (r) => String(r.priority ?? 0), number: true },
    { title: "Action", text: (r) => r.action ?? "" },
    { title: "Match", text: (r) => matchText(r.match, " ") || "every packet" },
    { title: "Where", text: (r) => [r.dpid, r.tenant && `tenant ${r.tenant}`, r.vlan && `VLAN ${r.vlan}`].filter(Boolean).join(", ") || "everywhere" },
    { title: "Comment", text: (r) => r.comment ?? "" },
    { title: "Decides", text: (r) => ((r as Covered).first === undefined ? "" : `never: ${(r as Covered).first} comes first`), class: () => "warn" },
  ],
  remarks: firewallRemarks,
  fromForm: (f) =>
    given<FirewallRule>({
      id: (f.id ?? "").trim(), action: f.action, priority: number(f, "priority", 0, 65535), match: match(f, "match"), dpid: (f.dpid ?? "").trim(),
      vlan: number(f, "vlan", 0, 4094), tenant: (f.tenant ?? "").trim(), comment: (f.comment ?? "").trim(),
    }),
  toForm: (v) => ({
    id: v.id ?? "", action: v.action ?? "deny", priority: String(v.priority ?? 0), match: matchText(v.match, "\n"), dpid: v.dpid ?? "", vlan: String(v.vlan ?? 0),
    tenant: v.tenant ?? "", comment: v.comment ?? "",
  }),
  tidy: (v) => given(drop(v as Covered, "number", "packets", "bytes", "first")),
  add: (list, dry) => [{ method: "POST", path: "v1/firewall/rules", body: { rules: list, dry_run: dry } }],
  added: (answers, asked) =>
    (answers as AddFirewallRulesResponse[]).flatMap((a) => [
      ...(a.ids ?? []).map((id, i) => ({ what: `rule ${id}`, effect: a.effects?.[i] ?? "", before: a.before?.find((b) => b.id === id), after: { ...asked[i], id } })),
      ...behind(a.failures),
    ]),
  remove: (v, dry) => ({ method: "POST", path: "v1/firewall/rules:delete", body: { ids: [v.id], dry_run: dry } }),
  removed: (answer, v) => {
    const a = answer as DeleteFirewallRulesResponse;
    return (a.ids ?? []).map((id, i) => ({ what: `rule ${id}`, effect: a.effects?.[i] ?? "", before: v }));
  },
};

/** What becomes of packets that no rule is about, on one switch or everywhere. */
interface Default {
  dpid?: string;
  action?: string;
}

const whose = (d: Default) => (d.dpid ? `default of switch ${d.dpid}` : "default everywhere");

export const firewallDefaults: Kind<Default> = {
  id: "firewall-default",
  one: "firewall default",
  many: "firewall defaults",
  fields: [
    { name: "dpid", label: "Switch", hint: "empty: everywhere", type: "text", start: "", words: ["dpid", "switch", "datapath id"] },
    { name: "action", label: "Action", hint: "of packets that no rule is about; block denies all, whatever the rules say; inherit: as everywhere", type: "choice", choices: ["allow", "deny", "block", "inherit"], start: "allow", words: ["action", "default"] },
  ],
  list: "v1/firewall/status",
  listed: (a) => {
    const s = a as FirewallStatus;
    return [{ action: s.default_action }, ...(s.switches ?? []).filter((w) => w.own_default).map((w) => ({ dpid: w.dpid, action: w.default_action }))];
  },
  key: whose,
  remarks: (d, known) => [away(d.dpid, known)].filter(Boolean),
  foreign: (d) => (d.dpid ? "" : "there is always one: set another in its place"),
  columns: [
    { title: "Where", text: (d) => (d.dpid ? `switch ${d.dpid}` : "everywhere") },
    { title: "Action", text: (d) => d.action ?? "" },
  ],
  fromForm: (f) => {
    const dpid = (f.dpid ?? "").trim();
    if (f.action === "inherit" && !dpid) throw new FieldError("action", "inherit is for one switch: name it");
    return given<Default>({ dpid, action: f.action === "inherit" ? "" : f.action });
  },
  toForm: (d) => ({ dpid: d.dpid ?? "", action: d.action || "inherit" }),
  tidy: given,
  add: (list, dry) => list.map((d) => ({ method: "POST", path: "v1/firewall/default", body: { ...d, dry_run: dry } })),
  added: (answers, asked) =>
    (answers as SetFirewallDefaultResponse[]).flatMap((a, i) => [
      { what: whose(asked[i]), effect: a.effect ?? "", before: { action: a.before || "inherit" }, after: { action: asked[i].action || "inherit" } },
      ...behind(a.failures),
    ]),
  remove: (d, dry) => ({ method: "POST", path: "v1/firewall/default", body: { dpid: d.dpid, dry_run: dry } }),
  removed: (answer, d) => {
    const a = answer as SetFirewallDefaultResponse;
    return [{ what: whose(d), effect: a.effect === "replaced" ? "deleted" : "absent", before: { action: d.action } }, ...behind(a.failures)];
  },
};

/** member reads ADDRESS, ADDRESS:PORT or [IPV6]:PORT, with @WEIGHT behind it. */
function member(text: string): { address: string; port?: number; weight?: number } {
  const m = /^(?:\[([^\]]+)\]|([^@\s]+?))(?::(\d+))?(?:@(\d+))?$/.exec(text);
  const bare = /^([0-9a-fA-F:.]+)(?:@(\d+))?$/.exec(text);
  if (bare && bare[1].split(":").length > 2) return given({ address: bare[1], weight: Number(bare[2] ?? 0) });
  if (!m) throw new FieldError("pool", `${text}: want ADDRESS, ADDRESS:PORT or [IPV6]:PORT, with @WEIGHT behind it if it is not 1`);
  return given({ address: m[1] ?? m[2], port: Number(m[3] ?? 0), weight: Number(m[4] ?? 0) });
}

function memberText(v: { address?: string; port?: number; weight?: number }): string {
  const where = v.port ? (v.address?.includes(":") ? `[${v.address}]:${v.port}` : `${v.address}:${v.port}`) : (v.address ?? "");
  return where + ((v.weight ?? 1) > 1 ? `@${v.weight}` : "");
}

export const vips: Kind<Vip> = {
  id: "balancer",
  one: "virtual IP",
  many: "virtual IPs",
  fields: [
    { name: "name", label: "Name", type: "text", start: "", words: ["name"] },
    { name: "address", label: "Address", hint: "IPv4 or IPv6, that clients use", type: "text", start: "", words: ["address"] },
    { name: "protocol", label: "Protocol", type: "choice", choices: ["tcp", "udp", "any"], start: "tcp", words: ["protocol"] },
    { name: "port", label: "Port", hint: "0 with protocol any", type: "number", start: "80", words: ["port"] },
    { name: "pool", label: "Members", hint: "ADDRESS:PORT in each line, with @WEIGHT if it is not 1", type: "lines", start: "", words: ["member", "members", "pool"] },
    { name: "policy", label: "Policy", type: "choice", choices: ["weighted", "least", "hash"], start: "weighted", words: ["policy"] },
    { name: "check", label: "Check of members", type: "choice", choices: ["none", "tcp", "icmp", "arp"], start: "none", words: ["health", "kind"] },
    { name: "interval_ms", label: "Check every (ms)", hint: "0: as usual, as with what follows", type: "number", start: "0", words: ["interval_ms", "interval"] },
    { name: "timeout_ms", label: "Answer within (ms)", type: "number", start: "0", words: ["timeout_ms", "timeout"] },
    { name: "rise", label: "Up after answers", type: "number", start: "0", words: ["rise"] },
    { name: "fall", label: "Down after silences", type: "number", start: "0", words: ["fall"] },
    { name: "stickiness", label: "Stickiness (s)", hint: "0: none", type: "number", start: "0", words: ["stickiness"] },
    { name: "idle_timeout", label: "Idle timeout (s)", hint: "of a connection; 0: as usual", type: "number", start: "0", words: ["idle_timeout"] },
    { name: "vlan", label: "VLAN", hint: "0: untagged", type: "number", start: "0", words: ["vlan"] },
    { name: "mac", label: "Ethernet address", hint: "by which clients reach it; made up if empty", type: "text", start: "", words: ["mac", "ethernet address"] },
  ],
  list: "v1/balancer/vips",
  listed: (a) => (a as ListVipsResponse).vips ?? [],
  key: (v) => v.name ?? "",
  foreign: (v) => (!v.owner || v.owner === "operator" ? "" : `it belongs to the service ${v.owner}, which alone changes it`),
  columns: [
    { title: "Virtual IP", text: (v) => v.name ?? "" },
    { title: "Address", text: (v) => v.address ?? "" },
    { title: "Port", text: (v) => (v.port ? `${v.port}/${v.protocol}` : (v.protocol ?? "")) },
    { title: "Policy", text: (v) => v.policy ?? "" },
    { title: "Members", text: (v) => (v.pool ?? []).map((m) => `${memberText(m)} ${m.health ?? ""}`.trim()).join(", ") },
    { title: "Connections", text: (v) => String(v.connections ?? 0), number: true },
    { title: "Owner", text: (v) => v.owner ?? "" },
  ],
  fromForm: (f) => {
    if (!(f.name ?? "").trim()) throw new FieldError("name", "give it a name");
    return given<Vip>({
      name: f.name.trim(), address: (f.address ?? "").trim(), protocol: f.protocol, port: number(f, "port", 0, 65535), pool: items(f.pool ?? "").map(member), policy: f.policy,
      health: f.check && f.check !== "none" ? given({ kind: f.check, interval_ms: number(f, "interval_ms", 0, 4294967295), timeout_ms: number(f, "timeout_ms", 0, 4294967295), rise: number(f, "rise", 0, 4294967295), fall: number(f, "fall", 0, 4294967295) }) : undefined, stickiness: number(f, "stickiness", 0, 604800), idle_timeout: number(f, "idle_timeout", 0, 65535), vlan: number(f, "vlan", 0, 4094), mac: (f.mac ?? "").trim(),
    });
  },
  toForm: (v) => ({
    name: v.name ?? "", address: v.address ?? "", protocol: v.protocol ?? "tcp", port: String(v.port ?? 0), pool: (v.pool ?? []).map(memberText).join("\n"), policy: v.policy ?? "weighted",
    check: v.health?.kind ?? "none", ...Object.fromEntries((["interval_ms", "timeout_ms", "rise", "fall"] as const).map((n) => [n, String(v.health?.[n] ?? 0)])), stickiness: String(v.stickiness ?? 0), idle_timeout: String(v.idle_timeout ?? 0), vlan: String(v.vlan ?? 0), mac: v.shadow ? "" : (v.mac ?? ""),
  }),
  tidy: (v) =>
    given({
      ...drop(v, "connections", "refused", "groups", "owner", "open", "pairs", "effect", ...(v.shadow ? ["mac"] : []), ...(v.per === "connection" ? ["per"] : []), ...(v.refuse === "reset" ? ["refuse"] : [])),
      health: v.health && v.health.kind !== "none" ? given(v.health) : undefined,
      pool: (v.pool ?? []).map((m) => given(drop(m, "health", "connections", "total", "mac", "at", "reason", ...(m.weight === 1 ? ["weight"] : []), ...(m.state === "up" ? ["state"] : [])))),
    }),
  add: (list, dry) => list.map((v) => ({ method: "POST", path: "v1/balancer/vips" + (dry ? "?dry_run=true" : ""), body: v })),
  added: (answers, _asked, now) => (answers as Vip[]).map((v) => ({ what: `virtual IP ${v.name}`, effect: v.effect ?? "", before: v.effect === "replaced" ? now.find((o) => o.name === v.name) : undefined, after: v })),
  remove: (v, dry) => ({ method: "DELETE", path: `v1/balancer/vips/${encodeURIComponent(v.name ?? "")}${dry ? "?dry_run=true" : ""}` }),
  removed: (answer, v) => [{ what: `virtual IP ${v.name}`, effect: (answer as DeleteVipResponse).deleted ? "deleted" : "absent", before: v }],
};

function tooLarge(key: string): never {
  throw new Error(`the number of ${key} is too large to be kept exactly: write it as text, in quotes`);
}

/** objects reads the JSON of one or several. */
export function objects<T>(text: string): T[] {
  let v: unknown;
  try {
    v = JSON.parse(text, (key, x: unknown) => (typeof x === "number" && Number.isInteger(x) && !Number.isSafeInteger(x) ? tooLarge(key) : x));
  } catch (err) {
    throw err instanceof SyntaxError ? new Error(`this is not JSON: ${err.message}`) : err;
  }
  const list = Array.isArray(v) ? v : [v];
  if (list.length === 0 || list.some((o) => typeof o !== "object" || o === null || Array.isArray(o))) throw new Error("want an object, or a list of objects");
  return list as T[];
}

/** fieldOf returns the field that an error of the controller is about; "" if none is named. */
export function fieldOf(message: string, fields: Field[]): string {
  let best = "";
  let at = Infinity;
  for (const f of fields)
    for (const w of f.words) {
      const where = message.search(new RegExp(`(?:^|[\\s:.])${w}(?=[\\s:.]+["\\d{]|:|\\s\\S+:)`));
      if (where >= 0 && where < at) [best, at] = [f.name, where];
    }
  return best;
}
