// The lab service of the controller's machine, as the northbound offers it.

import { del, get, post } from "../api/client";
import type {
  ApplyLabRequest,
  ApplyLabResponse,
  CheckLabResponse,
  IperfLabResponse,
  LabConsole,
  LabDetails,
  LabFlow,
  LabFlowResult,
  LabJob,
  LabLink,
  LabNode,
  LabOpenLabConsoleBody,
  LabServiceInfo,
  LabSetLabLinkBody,
  LabSetUpLabBody,
  LabSummary,
  LabUsage,
  ListLabConsolesResponse,
  ListLabJobsResponse,
  ListLabsResponse,
  MapLabTestbedResponse,
  PingLabResponse,
  RunLabTrafficResponse,
  SetUpLabResponse,
  UpLabRequest,
  UpLabResponse,
} from "../api/types.gen";
import type { Problem } from "./document";

const base = "v1/lab";
const of = (lab: string) => `${base}/labs/${encodeURIComponent(lab)}`;

export const service = {
  info: () => get<LabServiceInfo>(base),
  list: async (): Promise<LabSummary[]> => (await get<ListLabsResponse>(`${base}/labs`)).labs ?? [],
  check: async (file: string): Promise<{ problems: Problem[]; remarks: string[]; name: string; nodes: LabNode[] }> => {
    const r = await post<CheckLabResponse>(`${base}/labs:check`, { file });
    return { problems: (r.problems ?? []).map((p) => ({ line: p.line ?? 0, text: p.text ?? "", allowed: p.allowed })), remarks: r.remarks ?? [], name: r.name ?? "", nodes: r.graph?.nodes ?? [] };
  },
  up: (file: string, controllers: string[], machines: string) => post<UpLabResponse>(`${base}/labs:up`, { file, controllers, machines } satisfies UpLabRequest),
  map: (file: string, machines: string) => post<MapLabTestbedResponse>(`${base}/testbeds:map`, { file, machines }),
  apply: (file: string, lab: string, madeFrom: string, dryRun: boolean) => post<ApplyLabResponse>(`${base}/labs:apply`, { file, lab, made_from: madeFrom, dry_run: dryRun } satisfies ApplyLabRequest),
  job: (job: string) => get<LabJob>(`${base}/jobs/${encodeURIComponent(job)}`),
  jobs: async (): Promise<LabJob[]> => (await get<ListLabJobsResponse>(`${base}/jobs`)).jobs ?? [],
  setUp: (lab: string, nodes: string[]) => post<SetUpLabResponse>(`${of(lab)}:setup`, { nodes } satisfies LabSetUpLabBody),
  lab: (lab: string) => get<LabDetails>(of(lab)),
  down: (lab: string) => post(`${of(lab)}:down`),
  setLink: (lab: string, link: string, to: LabSetLabLinkBody) => post<LabLink>(`${of(lab)}/links:set`, { link, ...to }),
  ping: (lab: string, from: string, to: string, count: number, signal?: AbortSignal) => post<PingLabResponse>(`${of(lab)}/ping`, { from, to, count }, signal),
  iperf: (lab: string, from: string, to: string, seconds: number, udpMbit: number, signal?: AbortSignal) => post<IperfLabResponse>(`${of(lab)}/iperf`, { from, to, seconds, udp_mbit: udpMbit }, signal),
  traffic: async (lab: string, flows: LabFlow[], seconds: number, signal?: AbortSignal): Promise<LabFlowResult[]> => (await post<RunLabTrafficResponse>(`${of(lab)}/traffic`, { flows, seconds }, signal)).flows ?? [],
  usage: (lab: string) => get<LabUsage>(`${of(lab)}/usage`),
  consoles: async (lab: string): Promise<LabConsole[]> => (await get<ListLabConsolesResponse>(`${of(lab)}/consoles`)).consoles ?? [],
  open: (lab: string, node: string, command: string[], rows = 24, cols = 80) => post<LabConsole>(`${of(lab)}/consoles`, { node, command, rows, cols } satisfies LabOpenLabConsoleBody),
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
