// The lab service of the controller's machine, as the northbound offers it.

import type { Numbered } from "./apart";
import { del, get, post } from "../api/client";
import type { Problem } from "./document";
import type { Mapped } from "./testbed";

export interface Summary {
  name?: string;
  state?: string;
  switches?: number;
  hosts?: number;
  links?: number;
  machines?: string[];
}
export interface LiveNode {
  name?: string;
  kind?: string;
  dpid?: string;
  mac?: string;
  ipv4?: string;
  ipv6?: string;
  vlan?: number;
  control?: string;
  sessions?: Array<{ controller?: string; connected?: boolean; role?: string }>;
  own?: boolean;
  programs?: Array<{ name?: string; command?: string; state?: string }>;
}
export interface LiveLink {
  link?: string;
  a?: string;
  a_port?: number;
  b?: string;
  b_port?: number;
  b_interface?: string;
  state?: string;
  rate_mbit?: number;
  delay_ms?: number;
  jitter_ms?: number;
  loss_percent?: number;
}
export interface Details {
  name?: string;
  state?: string;
  file?: string;
  revision?: string;
  graph?: { nodes?: LiveNode[]; links?: LiveLink[] };
  controllers?: string[];
  machines?: string[];
}
export interface Job {
  job?: string;
  kind?: string;
  lab?: string;
  doing?: string;
  steps?: Array<{ node?: string; state?: string; text?: string }>;
  done?: boolean;
  error?: string;
  seconds?: number;
}
export interface Difference {
  added?: string[];
  deleted?: string[];
  changed?: string[];
  job?: string;
  lab?: string;
}
export interface Ping {
  from?: string;
  to?: string;
  sent?: number;
  received?: number;
  min_ms?: number;
  avg_ms?: number;
  max_ms?: number;
  outage_ms?: number;
  error?: string;
}
export interface Iperf {
  from?: string;
  to?: string;
  protocol?: string;
  seconds?: number;
  sent_mbit?: number;
  received_mbit?: number;
  retransmits?: number;
  lost_percent?: number;
}
export interface FlowResult {
  from?: string;
  to?: string;
  sent?: number;
  received?: number;
  mean_ms?: number;
  p50_ms?: number;
  p99_ms?: number;
  max_ms?: number;
  error?: string;
}
export interface NodeUsage {
  node?: string;
  processes?: number;
  cpu_percent?: number;
  cpu_seconds?: number;
  memory?: string | number;
}
export interface Usage {
  nodes?: NodeUsage[];
  shared?: NodeUsage;
  processors?: number;
  memory?: string | number;
}
export interface Console {
  console?: string;
  lab?: string;
  node?: string;
  command?: string[];
  ended?: boolean;
  error?: string;
  caller?: string;
}
export interface ServiceInfo {
  version?: string;
  machine?: string;
  allowed?: string[];
}

/** SetLink is what a link is to be; what is left out stays. */
export interface SetLink {
  down?: boolean;
  silent?: boolean;
  rate_mbit?: number;
  delay_ms?: number;
  jitter_ms?: number;
  loss_percent?: number;
}

const base = "v1/lab";
const of = (lab: string) => `${base}/labs/${encodeURIComponent(lab)}`;

export const service = {
  info: () => get<ServiceInfo>(base),
  list: async () => (await get<{ labs?: Summary[] }>(`${base}/labs`)).labs ?? [],
  check: async (file: string): Promise<{ problems: Problem[]; remarks: string[]; name: string; nodes: Numbered[] }> => {
    const r = await post<{ problems?: Array<Partial<Problem>>; remarks?: string[]; name?: string; graph?: { nodes?: Numbered[] } }>(`${base}/labs:check`, { file });
    return { problems: (r.problems ?? []).map((p) => ({ line: p.line ?? 0, text: p.text ?? "", allowed: p.allowed })), remarks: r.remarks ?? [], name: r.name ?? "", nodes: r.graph?.nodes ?? [] };
  },
  up: (file: string, controllers: string[], machines: string) => post<{ job?: string; lab?: string }>(`${base}/labs:up`, { file, controllers, machines }),
  map: (file: string, machines: string) => post<Mapped>(`${base}/testbeds:map`, { file, machines }),
  apply: (file: string, lab: string, madeFrom: string, dryRun: boolean) => post<Difference>(`${base}/labs:apply`, { file, lab, made_from: madeFrom, dry_run: dryRun }),
  job: (job: string) => get<Job>(`${base}/jobs/${encodeURIComponent(job)}`),
  lab: (lab: string) => get<Details>(of(lab)),
  down: (lab: string) => post(`${of(lab)}:down`),
  setLink: (lab: string, link: string, to: SetLink) => post<LiveLink>(`${of(lab)}/links:set`, { link, ...to }),
  ping: (lab: string, from: string, to: string, count: number, signal?: AbortSignal) => post<Ping>(`${of(lab)}/ping`, { from, to, count }, signal),
  iperf: (lab: string, from: string, to: string, seconds: number, udpMbit: number) => post<Iperf>(`${of(lab)}/iperf`, { from, to, seconds, udp_mbit: udpMbit }),
  traffic: async (lab: string, flows: Array<{ from: string; to: string; rate: number; size: number }>, seconds: number) => (await post<{ flows?: FlowResult[] }>(`${of(lab)}/traffic`, { flows, seconds })).flows ?? [],
  usage: (lab: string) => get<Usage>(`${of(lab)}/usage`),
  consoles: async (lab: string) => (await get<{ consoles?: Console[] }>(`${of(lab)}/consoles`)).consoles ?? [],
  open: (lab: string, node: string, command: string[], rows = 24, cols = 80) => post<Console>(`${of(lab)}/consoles`, { node, command, rows, cols }),
  close: (console: string) => del(`${base}/consoles/${encodeURIComponent(console)}`),
  /** attach returns the address of a console's WebSocket. */
  attach: (console: string) => {
    const url = new URL(`${base}/consoles/${encodeURIComponent(console)}`, document.baseURI);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url;
  },
  capture: (lab: string, node: string, port: number, filter: string, octets: number) => `${of(lab)}/capture?${new URLSearchParams({ node, port: String(port), filter, octets: String(octets) })}`,
};

/** sleep waits some milliseconds. */
export const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
