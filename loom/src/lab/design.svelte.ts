// What the page Lab shows: a text, what is drawn of it, and what is chosen.

import type { MapLabTestbedResponse } from "../api/types.gen";
import { addressProblem, controllersOf, unusedAddress } from "./controllers";
import { mayAdd, mayConnect, mayServe, violations } from "./constraints";
import { add, addTo, mostMarks, move, nameProblem, read, remove, removeFrom, rename, set, setIn, setTop, unused, type Added, type Fields, type Group, type Lab, type Link, type Node, type Note, type Problem, type Service } from "./document";
import { forget, load, save, type Draft } from "./drafts";
import { History } from "./history";
import { lay, type Layout, type Position } from "./layout";

import { modelNamed, modelOf, Types, type Model, type NodeType } from "./models";

const empty = "name: my-lab\n";

/** identity are the keys that no two nodes have alike. */
const identity = ["dpid", "loopback", "loopback6", "mac", "ipv4", "ipv6", "gateway4", "gateway6", "port"];

/** Mode is what a click on the canvas does. */
export type Mode = { does: "select" } | { does: "connect"; from: string } | { does: "add"; type: NodeType } | { does: "note" };

export class Design {
  lab = $state.raw<Lab>(read(empty));
  model = $state.raw<Model>(modelNamed("openflow"));
  view = $state("all");
  chosen = $state.raw<Set<string>>(new Set());
  mode = $state.raw<Mode>({ does: "select" });
  /** said is the last refusal or message; bad says which. */
  said = $state("");
  bad = $state(false);
  /** checked are the problems that the lab service found in the text. */
  checked = $state.raw<Problem[]>([]);
  /** mapped says on which machine of a testbed each node would run, and spread whether the drawing shows it. */
  mapped = $state.raw<MapLabTestbedResponse | null>(null);
  spread = $state(false);
  undoes = $state("");
  redoes = $state("");
  draft = $state.raw<Draft>(fresh());
  drafts = $state.raw<Draft[]>([]);
  unsaved = $state("");
  /** fit counts up when the drawing is to be shown whole. */
  fit = $state(0);

  types = $derived(new Types(this.model, this.lab));
  problems = $derived<Problem[]>([...this.lab.problems, ...(this.lab.broken ? [] : violations(this.lab, this.types)), ...this.checked]);
  current = $derived(this.model.views.find((v) => v.name === this.view) ?? this.model.views[0]);

  private history = new History(empty);
  private saving: ReturnType<typeof setTimeout> | undefined;
  private clipboard: { nodes: Node[]; links: Link[] } | null = null;

  node(id: string): Node | undefined {
    return this.lab.nodes.find((n) => n.id === id);
  }

  tell(text: string, bad = false) {
    this.said = text;
    this.bad = bad;
  }

  // Drafts.

  /** restore shows the newest draft, or a new one. */
  restore() {
    this.drafts = load(localStorage);
    if (this.drafts[0]) this.open(this.drafts[0]);
    else this.start();
  }

  open(d: Draft) {
    this.keep();
    this.draft = d;
    this.show(d.text, d.model);
  }

  /** start begins a new draft with a text. */
  start(text = empty, model = "", lab = "", revision = "") {
    this.keep();
    this.draft = { ...fresh(), lab, revision };
    this.show(text, model);
    this.later();
  }

  private show(text: string, model: string) {
    this.history = new History(text);
    this.lab = read(text);
    this.model = modelOf(this.lab, model || String(this.top("x-model") ?? ""));
    this.view = "all";
    this.chosen = new Set();
    this.mapped = null;
    this.checked = [];
    this.mode = { does: "select" };
    this.tell("");
    this.places();
    this.now();
    this.fit++;
  }

  /** keep saves what has not been saved yet. */
  keep() {
    if (this.saving === undefined) return;
    clearTimeout(this.saving);
    this.saving = undefined;
    this.draft = { ...this.draft, text: this.lab.text, name: this.lab.name || "without a name", model: this.model.name, saved: Date.now() };
    this.unsaved = save(localStorage, this.draft);
    this.drafts = load(localStorage);
  }

  private later() {
    this.saving ??= setTimeout(() => this.keep(), 300);
  }

  forget() {
    clearTimeout(this.saving);
    this.saving = undefined;
    forget(localStorage, this.draft.id);
    this.drafts = load(localStorage);
    if (this.drafts[0]) this.open(this.drafts[0]);
    else this.start();
  }

  /** madeFrom notes which running lab, at which revision, the text is of. */
  madeFrom(lab: string, revision: string) {
    this.draft = { ...this.draft, lab, revision };
    this.later();
  }

  /** setMachines keeps the resource file of the draft. */
  setMachines(text: string) {
    this.draft = { ...this.draft, machines: text };
    this.mapped = null;
    this.later();
  }

  private top(key: string): unknown {
    const p = this.lab.root?.items.find((i) => String((i.key as { value?: unknown })?.value) === key);
    return (p?.value as { value?: unknown } | undefined)?.value;
  }

  // Edits.

  /** edit makes a text the newest. */
  edit(text: string, what: string) {
    if (!this.history.change(text, what)) return;
    this.now();
    this.lab = read(text);
    this.prune();
    this.checked = [];
    this.later();
  }

  undo() {
    if (this.history.undo()) this.turned();
  }
  redo() {
    if (this.history.redo()) this.turned();
  }
  private turned() {
    this.lab = read(this.history.text);
    this.now();
    this.prune();
    this.checked = [];
    this.later();
  }
  private now() {
    this.undoes = this.history.undoes;
    this.redoes = this.history.redoes;
  }
  private prune() {
    const there = new Set([...controllersOf(this.lab).map((c) => `controller/${c}`), ...this.lab.nodes.map((n) => n.id), ...this.lab.links.map((l) => l.id), ...this.lab.groups.map((g) => g.id), ...this.lab.notes.map((n) => n.id), ...this.lab.services.map((s) => `service/${s.name}`)]);
    if ([...this.chosen].some((id) => !there.has(id))) this.chosen = new Set([...this.chosen].filter((id) => there.has(id)));
  }

  /** may says, in place, why the drawing cannot be edited; true if it can. */
  private may(): boolean {
    if (!this.lab.broken) return true;
    this.tell("the text cannot be read: mend what the list of problems says, then draw", true);
    return false;
  }

  setModel(name: string) {
    this.model = modelNamed(name);
    this.view = "all";
    this.mode = { does: "select" };
    this.later();
  }

  names(): Set<string> {
    return new Set(this.lab.nodes.map((n) => n.name));
  }

  addNode(type: NodeType, at: Position) {
    if (!this.may()) return;
    const why = mayAdd(this.lab, this.types, type);
    if (why) return this.tell(why, true);
    const name = type.most === 1 && !this.names().has(type.prefix) ? type.prefix : unused(this.names(), type.prefix);
    this.insert({ [type.list]: [{ name, ...type.set, "x-position": at.map(Math.round) }] }, `adding ${name}`);
    this.chosen = new Set([name]);
    this.tell(`${type.title} ${name} added`);
  }

  private insert(more: Added, what: string) {
    this.edit(add(this.lab, more), what);
  }

  connect(from: string, to: string) {
    if (this.current.controllers && (from.startsWith("controller/") || to.startsWith("controller/"))) return this.controlAt(from.startsWith("controller/") ? to : from);
    const [a, b] = [this.node(from), this.node(to)];
    if (!a || !b || !this.may()) return;
    const of = this.current.service;
    if (of) return this.serve(of, [a.name, b.name]);
    const why = mayConnect(this.lab, this.types, a, b);
    if (why) return this.tell(why, true);
    const host = a.kind === "host" ? a : b.kind === "host" ? b : null;
    if (host) this.edit(set(this.lab, host, { switch: host === a ? b.name : a.name }), `connecting ${a.name} and ${b.name}`);
    else this.insert({ links: [{ a: a.name, b: b.name }] }, `connecting ${a.name} and ${b.name}`);
    this.tell(`${a.name} and ${b.name} connected`);
  }

  /** setControllers names the lab's controllers anew: none of them is what is so without the key. */
  private setControllers(all: string[], what: string) {
    if (this.may()) this.edit(setTop(this.lab, "controller", all.length > 1 ? all : all[0]), what);
  }

  addController() {
    const now = controllersOf(this.lab).filter((c) => c !== "none");
    const address = unusedAddress(now);
    this.setControllers([...now, address], `adding the controller ${address}`);
    this.chosen = new Set([`controller/${address}`]);
    this.tell(`controller ${address} added; its address can be changed beside the drawing`);
  }

  /** moveController gives a controller another address, or none; it returns what is wrong with that. */
  moveController(from: string, to: string): string {
    const all = controllersOf(this.lab);
    if (to === from) return "";
    if (to && all.includes(to)) return `${to} is a controller of this lab already`;
    if (to && addressProblem(to)) return addressProblem(to);
    this.setControllers(to ? all.map((c) => (c === from ? to : c)) : all.filter((c) => c !== from), to ? `moving the controller ${from}` : `deleting the controller ${from}`);
    this.chosen = new Set(to ? [`controller/${to}`] : []);
    return "";
  }

  /** controlAt has hybrid nodes reach their controllers in band, by one of them; "" ends that. */
  controlAt(name: string) {
    const node = this.node(name);
    if (name && node?.kind !== "hybrid") return this.tell(`${name} connects to all controllers by itself: what is joined to a controller is the hybrid node by which the others reach it in band`, true);
    this.setTop("control", name ? { mode: "in-band", at: name } : undefined, name ? `control in band by ${name}` : "control out of band");
    this.tell(name ? `hybrid nodes reach their controllers in band, by ${name}` : "switches reach their controllers out of band");
  }

  /** serve adds a service between nodes. */
  serve(type: string, ends: string[]) {
    if (!this.may()) return;
    const service = { type, ends, name: unused(new Set(this.lab.services.map((s) => s.name)), type) };
    const why = mayServe(this.lab, this.types, service);
    if (why) return this.tell(why, true);
    this.edit(addTo(this.lab, "x-services", [{ name: service.name, type, ends }]), `adding ${service.name}`);
    this.chosen = new Set([`service/${service.name}`]);
    this.tell(`${service.name} added between ${ends.join(", ")}`);
  }

  dropService(service: Service) {
    if (this.may()) this.edit(removeFrom(this.lab, "x-services", service.index), `deleting ${service.name}`);
  }

  /** setService changes what the file says of a service; undefined takes a key away. */
  setService(service: Service, fields: Fields) {
    if (this.may()) this.edit(setIn(this.lab, "x-services", service.index, fields), `changing ${service.name}`);
  }

  move(to: Map<string, Position>, what = "moving") {
    if (this.may()) this.edit(move(this.lab, to), what);
  }

  /** nudge moves what is chosen. */
  nudge(dx: number, dy: number) {
    const inside = new Set(this.lab.groups.filter((g) => this.chosen.has(g.id)).flatMap((g) => g.nodes));
    const some = [...this.lab.nodes.filter((n) => this.chosen.has(n.id) || inside.has(n.name)), ...this.lab.notes.filter((n) => this.chosen.has(n.id))];
    this.move(new Map(some.map((n) => [n.id, [(n.at?.[0] ?? 0) + dx, (n.at?.[1] ?? 0) + dy]])));
  }

  chosenNodes(): Node[] {
    return this.lab.nodes.filter((n) => this.chosen.has(n.id));
  }

  remove() {
    if (this.chosen.size === 0 || !this.may()) return;
    for (const id of this.chosen) if (this.lab.controllers.some((c) => id === `controller/${c}`)) return void this.moveController(id.slice("controller/".length), "");
    const n = this.chosen.size;
    this.edit(remove(this.lab, this.chosen), "deleting");
    this.chosen = new Set();
    this.tell(n === 1 ? "deleted" : `${n} deleted`);
  }

  /** group frames what is chosen; a node is in one group at most. */
  group() {
    const nodes = this.chosenNodes().map((n) => n.name);
    if (nodes.length === 0) return this.tell("choose the nodes of the group first", true);
    if (!this.may()) return;
    if (this.lab.groups.length >= mostMarks) return this.tell(`a lab has at most ${mostMarks} groups`, true);
    let now = this.lab;
    for (const g of this.lab.groups) {
      const left = g.nodes.filter((n) => !nodes.includes(n));
      if (left.length < g.nodes.length) now = read(setIn(now, "x-groups", g.index, { nodes: left }));
    }
    const name = unused(new Set(this.lab.groups.map((g) => g.name)), "group");
    this.edit(addTo(now, "x-groups", [{ name, colour: "blue", nodes }]), `grouping as ${name}`);
    this.chosen = new Set([this.lab.groups.at(-1)!.id]);
    this.tell(`${name} has ${nodes.length === 1 ? "a node" : `${nodes.length} nodes`}; name and colour stand beside the drawing`);
  }

  /** putIn has a node in a group, and in no other; "" in none. */
  putIn(node: Node, id: string) {
    if (!this.may()) return;
    let now = this.lab;
    for (const g of this.lab.groups) {
      const left = g.nodes.filter((n) => n !== node.name);
      if (g.id === id) left.push(node.name);
      if (left.join() !== g.nodes.join()) now = read(setIn(now, "x-groups", g.index, { nodes: left }));
    }
    this.edit(now.text, `the group of ${node.name}`);
  }

  addNote(at: Position) {
    if (!this.may()) return;
    if (this.lab.notes.length >= mostMarks) return this.tell(`a lab has at most ${mostMarks} notes`, true);
    this.edit(addTo(this.lab, "x-notes", [{ text: "Note", "x-position": at.map(Math.round) }]), "adding a note");
    this.chosen = new Set([this.lab.notes.at(-1)!.id]);
    this.mode = { does: "select" };
    this.tell("note added; its text stands beside the drawing");
  }

  /** setMark changes what the file says of a group or note. */
  setMark(mark: Group | Note, fields: Fields) {
    if (this.may()) this.edit(setIn(this.lab, mark.id.startsWith("group/") ? "x-groups" : "x-notes", mark.index, fields), mark.id.startsWith("group/") ? "changing a group" : "changing a note");
  }

  /** rename returns what is wrong with the name; empty if it was taken. */
  rename(node: Node, to: string): string {
    if (to === node.name) return "";
    const why = nameProblem(to, this.names());
    if (why || !this.may()) return why;
    this.edit(rename(this.lab, node, to), `renaming ${node.name}`);
    this.chosen = new Set([to]);
    return "";
  }

  set(of: Node | Link, fields: Fields, what: string) {
    if (this.may()) this.edit(set(this.lab, of, fields), what);
  }

  setTop(key: string, value: unknown, what: string) {
    if (this.may()) this.edit(setTop(this.lab, key, value), what);
  }

  copy() {
    const nodes = this.chosenNodes();
    if (nodes.length === 0) return this.tell("choose what to copy first", true);
    const names = new Set(nodes.map((n) => n.name));
    this.clipboard = { nodes, links: this.lab.links.filter((l) => l.of === "link" && names.has(l.a) && names.has(l.b)) };
    this.tell(`${nodes.length} copied`);
  }

  paste() {
    if (!this.clipboard) return this.tell("nothing has been copied", true);
    if (!this.may()) return;
    const taken = this.names();
    const to = new Map<string, string>();
    const more: Required<Added> = { switches: [], hosts: [], links: [] };
    for (const n of this.clipboard.nodes) {
      const type = this.types.of(n);
      const why = type && mayAdd(this.lab, this.types, type);
      if (why) return this.tell(why, true);
      const name = unused(taken, n.name.replace(/[0-9]+$/, ""));
      taken.add(name);
      to.set(n.name, name);
      const fields: Fields = { ...n.fields, name, "x-position": [(n.at?.[0] ?? 0) + 40, (n.at?.[1] ?? 0) + 40] };
      for (const key of [...identity, "eth1"]) delete fields[key];
      more[n.list].push(fields);
    }
    for (const h of more.hosts) if (to.has(String(h.switch))) h.switch = to.get(String(h.switch));
    for (const l of this.clipboard.links) {
      const fields: Fields = { ...l.fields, a: to.get(l.a), b: to.get(l.b) };
      delete fields.a_port;
      delete fields.b_port;
      more.links.push(fields);
    }
    this.insert(more, "pasting");
    this.chosen = new Set(to.values());
    this.tell(`${to.size} pasted`);
  }

  /** align stands what is chosen in a row or column. */
  align(how: "row" | "column" | "evenly") {
    const nodes = this.chosenNodes().filter((n) => n.at);
    if (nodes.length < 2) return this.tell("choose two nodes or more to align", true);
    const axis = how === "column" ? 0 : 1;
    const mean = nodes.reduce((s, n) => s + n.at![axis], 0) / nodes.length;
    const to = new Map<string, Position>();
    if (how === "evenly") {
      const order = [...nodes].sort((a, b) => a.at![0] - b.at![0]);
      const [first, last] = [order[0].at!, order.at(-1)!.at!];
      order.forEach((n, i) => to.set(n.id, [first[0] + ((last[0] - first[0]) * i) / (order.length - 1), n.at![1]]));
    } else {
      for (const n of nodes) to.set(n.id, axis === 0 ? [mean, n.at![1]] : [n.at![0], mean]);
    }
    this.move(to, "aligning");
  }

  private drawn() {
    const hosts = this.lab.nodes.filter((n) => n.kind === "host");
    return { nodes: this.lab.nodes.map((n) => n.id), links: this.lab.links.map((l): [string, string] => [l.a, l.b]), small: new Set(hosts.map((n) => n.id)) };
  }

  layout(how: Layout) {
    this.move(lay(how, this.drawn()), `layout ${how}`);
    this.fit++;
  }

  /** places are where nodes stand that the text gives no position. */
  private guessed = new Map<string, Position>();
  private places() {
    this.guessed = new Map();
  }
  at(node: Node): Position {
    if (node.at) return node.at;
    if (this.guessed.size === 0) this.guessed = lay(this.lab.nodes.length > 60 ? "force" : "circle", this.drawn());
    // What is written later stands below, so that the others stay where they are.
    if (!this.guessed.has(node.id)) this.guessed.set(node.id, [(this.guessed.size % 10) * 60, Math.max(...[...this.guessed.values()].map((p) => p[1])) + 100]);
    return this.guessed.get(node.id)!;
  }
}

function fresh(): Draft {
  return { id: `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`, name: "", model: "", text: "", saved: 0, lab: "", revision: "" };
}
