// The text of a lab that somebody works on: what is read of it, its history, its model,
// and its draft in the browser.

import { violations } from "./constraints";
import { controllersOf } from "./controllers";
import type { MapLabTestbedResponse } from "../api/types.gen";
import { read, setBlock, setTop, type Lab, type Node, type Problem } from "./document";
import { forget, load, loadOne, prefix, save, type Draft } from "./drafts";
import { History } from "./history";
import type { Position } from "./layout";
import { readModel } from "./modelfile";
import { models, Types, type LinkType, type Model, type NodeType } from "./models";
import { forgetModel, keepModel, loadModels, ofLab } from "./ownmodels";

const empty = "name: my-lab\n";

/** Mode is what a click on the canvas does. */
export type Mode = { does: "select" } | { does: "connect"; from: string } | { does: "add"; type: NodeType } | { does: "note" };

/** Sheet is a text and what is drawn of it. */
export class Sheet {
  lab = $state.raw<Lab>(read(empty));
  model = $state.raw<Model>(models[0]);
  /** own are the models that the user has written, and offered all that there are. */
  own = $state.raw<Model[]>([]);
  offered = $derived([...models, ...this.own]);
  /** guessed are where nodes stand that the text gives no position. */
  protected guessed = new Map<string, Position>();
  private wrongModel = $state("");
  view = $state("all");
  /** joins is the type of the links that are drawn; null: the usual one. */
  joins = $state.raw<LinkType | null>(null);
  /** ports says whether the ports at the ends of links are shown. */
  ports = $state(false);
  /** grid is how far positions are apart that nodes are dragged to; 0: anywhere. */
  grid = $state(0);
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
  problems = $derived<Problem[]>([...this.lab.problems, ...(this.wrongModel ? [{ line: this.lab.modelLine ?? 0, text: this.wrongModel }] : []), ...(this.lab.broken ? [] : violations(this.lab, this.types)), ...this.checked]);
  current = $derived(this.model.views.find((v) => v.name === this.view) ?? this.model.views[0]);

  /** shown are the types of nodes that the view shows; palette has them all. */
  shown = $derived(this.current.service ? this.model.services.find((s) => s.type === this.current.service)?.ends : this.current.types);
  palette = $derived(this.model.nodes.filter((t) => !this.shown || this.shown.includes(t.type)));

  protected history = new History(empty);
  private saving: ReturnType<typeof setTimeout> | undefined;
  /** typed takes in what is typed at this moment, before anything is drawn. */
  typed: () => void = () => {};

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
    this.own = loadModels(localStorage);
    this.drafts = load(localStorage);
    if (this.drafts[0]) this.open(this.drafts[0]);
    else this.start();
  }

  open(d: Draft) {
    this.keep();
    this.draft = d;
    this.show(d.text);
  }

  /** start begins a new draft with a text. */
  start(text = empty, lab = "", revision = "") {
    this.keep();
    this.draft = { ...fresh(), lab, revision };
    this.show(text);
    this.later();
  }

  private show(text: string) {
    this.history = new History(text);
    this.lab = read(text);
    this.modelled();
    this.view = "all";
    this.chosen = new Set();
    this.mapped = null;
    this.checked = [];
    this.mode = { does: "select" };
    this.tell("");
    this.guessed = new Map();
    this.now();
    this.fit++;
  }

  /** keep saves what has not been saved yet. */
  keep() {
    if (this.saving === undefined) return;
    clearTimeout(this.saving);
    this.saving = undefined;
    this.draft = { ...this.draft, text: this.lab.text, name: this.lab.name || "without a name", saved: Date.now() };
    this.unsaved = save(localStorage, this.draft);
    this.drafts = load(localStorage);
  }

  protected later() {
    this.saving ??= setTimeout(() => this.keep(), 300);
  }

  /** elsewhere takes in what another page of this browser has done to what is kept. */
  elsewhere(key: string | null) {
    if (key !== null && !key.startsWith(prefix)) return void (this.own = loadModels(localStorage));
    this.drafts = load(localStorage);
    const now = loadOne(localStorage, this.draft.id);
    if (!now || now.saved <= this.draft.saved) return;
    if (this.saving === undefined) {
      this.draft = now;
      this.take(now.text, "an edit in another page");
    } else if (now.text !== this.lab.text) {
      this.draft = { ...this.draft, id: fresh().id };
      this.tell("this draft was changed in another page at the same moment: what is here is now a draft of its own", true);
    }
  }

  /** forget deletes the draft, and returns what brings it back. */
  forget(): () => void {
    clearTimeout(this.saving);
    this.saving = undefined;
    const was = { ...this.draft, name: this.lab.name || this.draft.name, text: this.lab.text };
    forget(localStorage, this.draft.id);
    this.drafts = load(localStorage);
    if (this.drafts[0]) this.open(this.drafts[0]);
    else this.start();
    return () => {
      save(localStorage, was);
      this.drafts = load(localStorage);
      this.open(was);
    };
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

  // Edits.

  /** edit makes a text the newest. */
  edit(text: string, what: string, lab?: Lab) {
    if (this.take(text, what, lab)) this.later();
  }

  private take(text: string, what: string, lab?: Lab): boolean {
    if (!this.history.change(text, what)) return false;
    this.turned(lab ?? read(text));
    return true;
  }

  /** draw makes a text the newest that an edit of the drawing makes, unless it cannot be read any more; false if nothing came of it. */
  protected draw(text: string, what: string): boolean {
    if (text === this.lab.text) {
      this.tell(`${what}: nothing is changed by that`);
      return false;
    }
    const then = read(text);
    if (then.broken) {
      this.tell(`${what} is not done, for the text could not be read any more: ${then.problems[0]?.text ?? ""}. Change it in the text`, true);
      return false;
    }
    this.edit(text, what, then);
    return true;
  }

  undo() {
    if (this.history.undo()) this.again();
  }
  redo() {
    if (this.history.redo()) this.again();
  }
  private again() {
    this.turned(read(this.history.text));
    this.later();
  }
  private turned(lab: Lab) {
    this.lab = lab;
    this.now();
    this.modelled();
    this.prune();
    this.checked = [];
  }
  private now() {
    this.undoes = this.history.undoes;
    this.redoes = this.history.redoes;
  }
  private prune() {
    const there = new Set([...controllersOf(this.lab).map((c) => `controller/${c}`), ...this.lab.nodes.map((n) => n.id), ...this.lab.links.map((l) => l.id), ...this.lab.groups.map((g) => g.id), ...this.lab.notes.map((n) => n.id), ...this.lab.services.map((s) => `service/${s.name}`)]);
    if ([...this.chosen].some((id) => !there.has(id))) this.chosen = new Set([...this.chosen].filter((id) => there.has(id)));
  }

  /** modelled makes the model the one that the text says. */
  private modelled() {
    if (this.lab.broken) return;
    const { model, wrong } = ofLab(this.lab, this.offered);
    this.wrongModel = wrong;
    if (model === this.model || (model.text === this.model.text && model.name === this.model.name)) return;
    this.model = model;
    this.joins = null;
    if (!model.views.some((v) => v.name === this.view)) this.view = model.views[0].name;
    this.mode = { does: "select" };
  }

  /** may says, in place, why the drawing cannot be edited; true if it can. */
  protected may(): boolean {
    this.typed();
    if (!this.lab.broken) return true;
    this.tell("the text cannot be read: mend what the list of problems says, then draw", true);
    return false;
  }

  /** setModel writes the model into the text: its name, or all of it if the user has written it. */
  setModel(name: string) {
    const m = this.offered.find((o) => o.name === name);
    if (!m || !this.may()) return;
    const text = models.includes(m) ? setTop(this.lab, "x-model", m.name) : setBlock(this.lab, "x-model", m.text);
    if (text !== this.lab.text) this.draw(text, `the model ${m.title}`);
    this.view = this.model.views[0].name;
  }

  /** addModel keeps a model of the user's and takes it for this lab; it returns what is wrong with it. */
  addModel(text: string): string {
    try {
      const m = readModel(text);
      const why = keepModel(localStorage, m);
      if (why) return why;
      this.own = loadModels(localStorage);
      this.setModel(m.name);
      return "";
    } catch (err) {
      return (err as Error).message;
    }
  }

  dropModel(name: string) {
    forgetModel(localStorage, name);
    this.own = loadModels(localStorage);
  }
}

function fresh(): Draft {
  return { id: `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`, name: "", text: "", saved: 0, lab: "", revision: "" };
}
