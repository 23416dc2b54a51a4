import { isMap, isSeq, parseDocument, type Document, type YAMLMap, type YAMLSeq } from "yaml";

/** PlanWorker is a worker of a plan, as its text has it. */
export interface PlanWorker {
  name: string;
  services: string[];
  replicas: number;
  transport: string;
}

/** read returns the workers of a plan, and its transport; the error of a text
 * that is none is thrown. */
export function read(text: string): { name: string; transport: string; workers: PlanWorker[] } {
  const doc = parse(text);
  const out: PlanWorker[] = [];
  for (const pair of workers(doc).items) {
    const w = pair.value;
    if (!isMap(w)) continue;
    const services = w.get("services");
    out.push({
      name: String(pair.key),
      services: isSeq(services) ? services.items.map(String) : [],
      replicas: Number(w.get("replicas") ?? 1),
      transport: String(w.get("transport") ?? ""),
    });
  }
  return { name: String(doc.get("name") ?? ""), transport: String(doc.get("transport") ?? "grpc"), workers: out };
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

/** move moves a service to another worker, at the place that the order of the
 * pipeline gives it; a worker that has none left is removed. With a name that
 * the plan has not, it gets a worker of its own. */
export function move(text: string, service: string, to: string, order: string[] = []): string {
  const doc = parse(text);
  const all = workers(doc);
  const from = all.items.find((p) => isMap(p.value) && isSeq(p.value.get("services")) && (p.value.get("services") as YAMLSeq).items.some((s) => String(s) === service));
  if (!from) throw new Error(`no worker of the plan has the service ${service}`);
  if (String(from.key) === to) return text;
  const left = (from.value as YAMLMap).get("services") as YAMLSeq;
  left.items = left.items.filter((s) => String(s) !== service);
  const target = all.get(to);
  if (isMap(target)) {
    const list = target.get("services") as YAMLSeq;
    list.add(doc.createNode(service));
    list.items.sort((a, b) => rank(String(a), order) - rank(String(b), order));
  } else {
    const own = doc.createNode({ services: [service] }, { flow: true });
    all.set(to, own);
  }
  if (left.items.length === 0) all.delete(String(from.key));
  return doc.toString({ lineWidth: 0 });
}

const rank = (service: string, order: string[]) => {
  const at = order.indexOf(service);
  return at < 0 ? order.length : at;
};

/** setReplicas changes how many instances a worker has. */
export function setReplicas(text: string, name: string, replicas: number): string {
  const doc = parse(text);
  const w = worker(doc, name);
  if (replicas === 1) w.delete("replicas");
  else w.set("replicas", replicas);
  return doc.toString({ lineWidth: 0 });
}

/** setTransport changes the transport between processes. */
export function setTransport(text: string, transport: string): string {
  const doc = parse(text);
  doc.set("transport", transport);
  return doc.toString({ lineWidth: 0 });
}
