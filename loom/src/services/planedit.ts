import { isMap, isSeq, parseDocument, type Document, type YAMLMap, type YAMLSeq } from "yaml";

/** PlanWorker is a worker of a plan, as its text has it. */
export interface PlanWorker {
  name: string;
  services: string[];
  replicas: number;
  standby: number;
  partition: string;
  machine: string;
}

/** PlanLink is an exception to a plan's transport: what goes from a worker to another, * being any. */
export interface PlanLink {
  from: string;
  to: string;
  transport: string;
}

export interface PlanShape {
  name: string;
  transport: string;
  events: string;
  workers: PlanWorker[];
  links: PlanLink[];
}

/** read returns the workers of a plan, and its transports; the error of a text
 * that is none is thrown. */
export function read(text: string): PlanShape {
  const doc = parse(text);
  const list: PlanWorker[] = [];
  for (const pair of workers(doc).items) {
    const w = pair.value;
    if (!isMap(w)) continue;
    const services = w.get("services");
    list.push({
      name: String(pair.key),
      services: isSeq(services) ? services.items.map(String) : [],
      replicas: Number(w.get("replicas") ?? 1),
      standby: Number(w.get("standby") ?? 0),
      partition: String(w.get("partition") ?? ""),
      machine: String(w.get("machine") ?? ""),
    });
  }
  return { name: String(doc.get("name") ?? ""), transport: String(doc.get("transport") ?? "grpc"), events: String(doc.get("events") ?? "nats"), workers: list, links: links(doc) };
}

function parse(text: string): Document {
  const doc = parseDocument(text);
  if (doc.errors.length > 0) throw new Error(doc.errors[0].message);
  return doc;
}

function workers(doc: Document): YAMLMap {
  const w = doc.get("workers");
  if (!isMap(w)) throw new Error("the plan has no workers");
  return w;
}

function worker(doc: Document, name: string): YAMLMap {
  const w = workers(doc).get(name);
  if (!isMap(w)) throw new Error(`the plan has no worker ${name}`);
  return w;
}

function links(doc: Document): PlanLink[] {
  const l = doc.get("links");
  if (!isSeq(l)) return [];
  return l.items.filter(isMap).map((m) => ({ from: String(m.get("from")), to: String(m.get("to")), transport: String(m.get("transport")) }));
}

const written = (doc: Document) => doc.toString({ lineWidth: 0 });

/** move moves a service from a worker to another, to the place that the order of the
 * pipeline gives it, with its settings; a worker that has none left is removed. With a
 * name that the plan has not, it gets a worker of its own, of the same partition and machine. */
export function move(text: string, service: string, from: string, to: string, order: string[] = []): string {
  if (from === to) return text;
  const doc = parse(text);
  const source = worker(doc, from);
  const left = source.get("services");
  if (!isSeq(left) || !left.items.some((s) => String(s) === service)) throw new Error(`worker ${from} has no service ${service}`);
  let target = workers(doc).get(to) as YAMLMap | undefined;
  if (!isMap(target)) {
    target = doc.createNode({}) as YAMLMap;
    for (const key of ["partition", "machine"]) if (source.has(key)) target.set(key, source.get(key));
    target.set("services", doc.createNode([], { flow: true }));
    workers(doc).set(to, target);
  }
  const list = target.get("services") as YAMLSeq;
  if (list.items.some((s) => String(s) === service)) throw new Error(`worker ${to} has the service ${service} already`);
  left.items = left.items.filter((s) => String(s) !== service);
  const rank = order.indexOf(service);
  const before = rank < 0 ? -1 : list.items.findIndex((s) => order.indexOf(String(s)) > rank);
  list.items.splice(before < 0 ? list.items.length : before, 0, doc.createNode(service));
  const settings = source.get("settings");
  if (isMap(settings) && settings.has(service)) {
    if (!isMap(target.get("settings"))) target.set("settings", doc.createNode({}));
    (target.get("settings") as YAMLMap).set(service, settings.get(service, true));
    settings.delete(service);
    if (settings.items.length === 0) source.delete("settings");
  }
  if (left.items.length === 0) workers(doc).delete(from);
  return written(doc);
}

/** setReplicas changes how many instances a worker has. */
export function setReplicas(text: string, name: string, replicas: number): string {
  const doc = parse(text);
  const w = worker(doc, name);
  if (Number(w.get("replicas") ?? 1) === replicas) return text;
  if (replicas === 1) w.delete("replicas");
  else w.set("replicas", replicas);
  return written(doc);
}

/** setTransport changes the transport between processes: of calls and packets, or of events. */
export function setTransport(text: string, key: "transport" | "events", transport: string): string {
  if (read(text)[key] === transport) return text;
  const doc = parse(text);
  doc.set(key, transport);
  return written(doc);
}

/** setLink changes the transport from a worker to another, "" to that of the plan. It comes before
 * the exceptions that are there, as the first that matches counts. */
export function setLink(text: string, from: string, to: string, transport: string): string {
  const doc = parse(text);
  const now = links(doc);
  if ((now.find((l) => l.from === from && l.to === to)?.transport ?? "") === transport) return text;
  for (const name of [from, to]) if (name !== "*") worker(doc, name);
  const next = [...(transport ? [{ from, to, transport }] : []), ...now.filter((l) => l.from !== from || l.to !== to)];
  if (next.length > 0) doc.set("links", doc.createNode(next));
  else doc.delete("links");
  return written(doc);
}

/** freeName returns the name of a worker that a service gets for itself. */
export function freeName(all: PlanWorker[], service: string, from: string): string {
  const partition = all.find((w) => w.name === from)?.partition;
  const first = partition ? `${partition}-${service}` : service;
  let name = first;
  for (let i = 2; all.some((w) => w.name === name); i++) name = `${first}-own${i}`;
  return name;
}

/** workerOf returns the worker that an instance is of: one of its name, NAME-3, NAME-standby
 * or NAME-standby-2. */
export function workerOf(all: string[], instance = ""): string {
  if (all.includes(instance)) return instance;
  const name = instance.replace(/-\d+$/, "");
  return all.includes(name) ? name : name.replace(/-standby$/, "");
}
