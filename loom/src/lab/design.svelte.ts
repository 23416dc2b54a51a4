// What is drawn: each edit of the drawing is one of the text.

import { aligned, type Alignment } from "./align";
import { copied, paste } from "./clip";
import { mayAdd, mayConnect, mayServe } from "./constraints";
import { addressProblem, controllersOf, unusedAddress } from "./controllers";
import { add, addTo, mostMarks, move, nameProblem, read, remove, removeFrom, rename, set, setIn, setTop, unused, type Added, type Fields, type Group, type Link, type Node, type Note, type Service } from "./document";
import { complete, lay, type Layout, type Position } from "./layout";
import type { NodeType } from "./models";
import { Sheet } from "./sheet.svelte";

/** Design is a lab that is drawn. */
export class Design extends Sheet {
  private clipboard = "";
  private pastes = 0;

  names(): Set<string> {
    return new Set(this.lab.nodes.map((n) => n.name));
  }

  addNode(type: NodeType, at: Position) {
    if (!this.may()) return;
    const why = mayAdd(this.lab, this.types, type);
    if (why) return this.tell(why, true);
    const name = type.most === 1 && !this.names().has(type.prefix) ? type.prefix : unused(this.names(), type.prefix);
    if (!this.insert({ [type.list]: [{ name, ...type.set, "x-position": this.snapped(at) }] }, `adding ${name}`)) return;
    this.chosen = new Set([name]);
    this.tell(`${type.title} ${name} added`);
  }

  private insert(more: Added, what: string): boolean {
    return this.draw(add(this.lab, more), what);
  }

  connect(from: string, to: string) {
    if (this.current.controllers && (from.startsWith("controller/") || to.startsWith("controller/"))) return this.controlAt(from.startsWith("controller/") ? to : from);
    const of = this.current.service;
    const service = of && this.lab.services.find((s) => [from, to].includes(`service/${s.name}`));
    const end = service && this.node(from.startsWith("service/") ? to : from);
    if (service && end) return this.setEnds(service, [...service.ends, end.name]);
    const [a, b] = [this.node(from), this.node(to)];
    if (!a || !b || !this.may()) return;
    if (of) return this.serve(of, [a.name, b.name]);
    const as = this.joins ?? undefined;
    const why = mayConnect(this.lab, this.types, a, b, as);
    if (why) return this.tell(why, true);
    const host = a.kind === "host" ? a : b.kind === "host" ? b : null;
    const what = `connecting ${a.name} and ${b.name}`;
    const type = as ?? this.types.between(a, b)[0];
    // The usual type of two nodes need not be said.
    const fields: Fields = { ...type?.set, ...(type && type !== this.types.between(a, b)[0] ? { "x-link": type.type } : {}) };
    const done = host ? this.draw(set(this.lab, host, { switch: host === a ? b.name : a.name, ...fields }), what) : this.insert({ links: [{ a: a.name, b: b.name, ...fields }] }, what);
    if (done) this.tell(`${a.name} and ${b.name} connected${type ? `: ${type.title}` : ""}`);
  }

  /** setLinkType makes a link one of another type, with what that sets in place of what its own had set. */
  setLinkType(link: Link, name: string) {
    const [a, b] = [link.a, link.b].map((n) => this.lab.nodes.find((x) => x.name === n));
    const all = this.types.between(a, b);
    const [was, is] = [this.types.link(link), all.find((t) => t.type === name)];
    if (!is || is === was || !this.may()) return;
    const gone = Object.entries(was?.set ?? {}).filter(([k, v]) => link.fields[k] === v).map(([k]) => [k, undefined]);
    this.draw(set(this.lab, link, { ...Object.fromEntries(gone), ...is.set, "x-link": is === all[0] ? undefined : is.type }), `the link ${link.a} to ${link.b} as ${is.title}`);
  }

  private snapped(at: Position): Position {
    const to = (v: number) => (this.grid > 0 ? Math.round(v / this.grid) * this.grid : Math.round(v));
    return [to(at[0]), to(at[1])];
  }

  /** setControllers names the lab's controllers anew: none of them is what is so without the key. */
  private setControllers(all: string[], what: string) {
    if (this.may()) this.draw(setTop(this.lab, "controller", all.length > 1 ? all : all[0]), what);
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
    if (!this.draw(addTo(this.lab, "x-services", [{ name: service.name, type, ends }]), `adding ${service.name}`)) return;
    this.chosen = new Set([`service/${service.name}`]);
    this.tell(`${service.name} added between ${ends.join(", ")}`);
  }

  /** setEnds gives a service other ends. */
  setEnds(service: Service, ends: string[]) {
    if (!this.may()) return;
    const why = mayServe({ ...this.lab, services: [] }, this.types, { ...service, ends });
    if (why) return this.tell(why, true);
    if (this.draw(setIn(this.lab, "x-services", service.index, { ends }), `the ends of ${service.name}`)) this.tell(`${service.name} joins ${ends.join(", ")}`);
  }

  dropService(service: Service) {
    if (this.may()) this.draw(removeFrom(this.lab, "x-services", service.index), `deleting ${service.name}`);
  }

  /** setService changes what the file says of a service; undefined takes a key away. */
  setService(service: Service, fields: Fields) {
    if (this.may()) this.draw(setIn(this.lab, "x-services", service.index, fields), `changing ${service.name}`);
  }

  move(to: Map<string, Position>, what = "moving") {
    if (!this.may()) return;
    const text = move(this.lab, this.grid > 0 ? new Map([...to].map(([id, at]) => [id, this.snapped(at)])) : to);
    if (text !== this.lab.text) this.draw(text, what);
    else this.lab = { ...this.lab }; // back to where they stand
  }

  /** nudge moves what is chosen. */
  nudge(dx: number, dy: number) {
    [dx, dy] = [dx, dy].map((d) => Math.sign(d) * (d === 0 ? 0 : Math.max(Math.abs(d), this.grid)));
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
    if (!this.draw(remove(this.lab, this.chosen), "deleting")) return;
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
    if (!this.draw(addTo(now, "x-groups", [{ name, colour: "blue", nodes }]), `grouping as ${name}`)) return;
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
    this.draw(now.text, `the group of ${node.name}`);
  }

  addNote(at: Position) {
    if (!this.may()) return;
    if (this.lab.notes.length >= mostMarks) return this.tell(`a lab has at most ${mostMarks} notes`, true);
    if (!this.draw(addTo(this.lab, "x-notes", [{ text: "Note", "x-position": this.snapped(at) }]), "adding a note")) return;
    this.chosen = new Set([this.lab.notes.at(-1)!.id]);
    this.mode = { does: "select" };
    this.tell("note added; its text stands beside the drawing");
  }

  /** setMark changes what the file says of a group or note. */
  setMark(mark: Group | Note, fields: Fields) {
    if (this.may()) this.draw(setIn(this.lab, mark.id.startsWith("group/") ? "x-groups" : "x-notes", mark.index, fields), mark.id.startsWith("group/") ? "changing a group" : "changing a note");
  }

  /** rename returns what is wrong with the name; empty if it was taken. */
  rename(node: Node, to: string): string {
    if (to === node.name) return "";
    const why = nameProblem(to, this.names());
    if (why || !this.may()) return why;
    if (this.draw(rename(this.lab, node, to), `renaming ${node.name}`)) this.chosen = new Set([to]);
    return "";
  }

  set(of: Node | Link, fields: Fields, what: string) {
    if (this.may()) this.draw(set(this.lab, of, fields), what);
  }

  setTop(key: string, value: unknown, what: string) {
    if (this.may()) this.draw(setTop(this.lab, key, value), what);
  }

  /** copy returns what is chosen as text, for paste here or elsewhere; empty if nothing is. */
  copy(): string {
    this.typed();
    const clip = copied(this.lab, this.chosen);
    if (!clip) this.tell("choose what to copy first", true);
    else {
      [this.clipboard, this.pastes] = [clip, 0];
      this.tell(`${this.chosen.size} copied`);
    }
    return clip;
  }

  /** paste adds what was copied, here or elsewhere. */
  paste(clip = this.clipboard) {
    if (!clip) return this.tell("nothing has been copied", true);
    if (!this.may()) return;
    if (clip !== this.clipboard) [this.clipboard, this.pastes] = [clip, 0];
    try {
      const { text, ids } = paste(this.lab, this.types, clip, 40 * (this.pastes + 1));
      if (!this.draw(text, "pasting")) return;
      this.pastes++;
      this.chosen = ids;
      this.tell(`${ids.size} pasted`);
    } catch (err) {
      this.tell((err as Error).message, true);
    }
  }

  /** align stands what is chosen in a row or column, or evenly. */
  align(how: Alignment) {
    const nodes = this.chosenNodes().flatMap((n) => (n.at ? [{ ...n, at: n.at }] : []));
    if (nodes.length < 2) return this.tell("choose two nodes or more to align", true);
    this.move(aligned(nodes, how), "aligning");
  }

  private drawn() {
    const hosts = this.lab.nodes.filter((n) => n.kind === "host");
    return { nodes: this.lab.nodes.map((n) => n.id), links: this.lab.links.map((l): [string, string] => [l.a, l.b]), small: new Set(hosts.map((n) => n.id)) };
  }

  layout(how: Layout) {
    this.move(lay(how, this.drawn()), `layout ${how}`);
    this.fit++;
  }

  /** place gives a position to each node that the text gives none. */
  place() {
    const had = new Map(this.lab.nodes.flatMap((n) => (n.at ? [[n.id, n.at] as const] : [])));
    if (had.size === this.lab.nodes.length) return;
    this.move(had.size === 0 ? lay("layered", this.drawn()) : complete(this.drawn(), had), "placing nodes");
    this.fit++;
  }

  /** at returns where a node stands: as the text says, else somewhere. */
  at(node: Node): Position {
    if (node.at) return node.at;
    if (this.guessed.size === 0) this.guessed = complete(this.drawn(), new Map(this.lab.nodes.flatMap((n) => (n.at ? [[n.id, n.at] as const] : []))));
    // What is written later stands below, so that the others stay where they are.
    if (!this.guessed.has(node.id)) this.guessed.set(node.id, [(this.guessed.size % 10) * 60, Math.max(...[...this.guessed.values()].map((p) => p[1])) + 100]);
    return this.guessed.get(node.id)!;
  }
}
