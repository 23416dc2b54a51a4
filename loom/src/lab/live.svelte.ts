// The running labs of the machine: bringing one up, changing it, and how it is.

import { apart } from "./apart";
import { ApiError, textOf } from "../api/client";
import { needs } from "../api/session.svelte";
import type { ApplyLabResponse, LabDetails, LabJob, LabLink, LabNode, LabSetLabLinkBody, LabSummary } from "../api/types.gen";
import type { Design } from "./design.svelte";
import { Services } from "./services.svelte";
import { controllerOf } from "./testbed";
import { service, sleep } from "./service";

/** ends names a link by the nodes at its ends, whatever their order. */
const ends = (a: string, b: string, eth1: boolean) => [a, b].sort().join("\n") + (eth1 ? "\neth1" : "");

/** Live is what is known of the machine's lab service. */
export class Live {
  /** available says whether there is one; null: not known yet. */
  available = $state<boolean | null>(null);
  why = $state("");
  allowed = $state.raw<string[]>([]);
  labs = $state.raw<LabSummary[]>([]);
  /** lab is the running lab that is shown. */
  lab = $state.raw<LabDetails | null>(null);
  job = $state.raw<LabJob | null>(null);
  busy = $state("");
  error = $state("");
  /** difference is what applying would do, and waits to be agreed to. */
  difference = $state.raw<ApplyLabResponse | null>(null);
  /** setup is the last job that has set nodes up, or does. */
  setup = $state.raw<LabJob | null>(null);
  settingUp = $state(false);
  setupError = $state("");
  lost = $state("");

  nodes = $derived(new Map((this.lab?.graph?.nodes ?? []).map((n): [string, LabNode] => [n.name ?? "", n])));
  hosts = $derived((this.lab?.graph?.nodes ?? []).filter((n) => n.kind === "host").map((n) => n.name ?? ""));
  private links = $derived.by(() => {
    const of = new Map<string, LabLink[]>();
    for (const l of this.lab?.graph?.links ?? []) {
      const key = ends(l.a ?? "", l.b ?? "", l.b_interface === "eth1");
      if (!of.get(key)?.push(l)) of.set(key, [l]);
    }
    return of;
  });
  steps = $derived(new Map((this.job && !this.job.done ? (this.job.steps ?? []) : []).map((s) => [s.node ?? "", s.state ?? ""])));

  readonly services: Services;
  private following = "";
  private ended = false;

  constructor(private readonly design: Design) {
    this.services = new Services(design, this);
  }

  /** may returns why something is not allowed; empty if it is. */
  may(what: "up" | "down" | "exec" | "capture" | "link"): string {
    if (this.available === false) return this.why;
    if (this.available === null) return "the lab service has not answered yet";
    if (what === "link") return needs("operate");
    const role = needs("admin");
    if (role) return role;
    return this.allowed.includes(what) ? "" : `the lab service does not allow ${what}: start it as weft lab serve --allow ${what}`;
  }

  /** look asks what there is. */
  async look() {
    try {
      const info = await service.info();
      this.allowed = info.allowed ?? [];
      this.labs = await service.list();
      [this.available, this.why, this.lost] = [true, "", ""];
      await this.join();
    } catch (err) {
      // Whatever else is answered to looking says that there is no lab service.
      const away = err instanceof ApiError && (err.status === 0 || err.status === 401);
      if (away) this.lost = textOf(err);
      else [this.available, this.why] = [false, textOf(err)];
    }
  }

  /** join follows a job about the lab that is drawn which another page, or this one before it was opened again, has begun. */
  private async join() {
    const { name } = this.design.lab;
    if (!name || this.busy || this.settingUp) return;
    const job = (await service.jobs()).find((j) => j.lab === name && !j.done);
    if (!job?.job || this.busy || this.settingUp) return;
    if (job.kind === "setup") return void this.watchSetUp(job.job);
    this.busy = job.doing || "at work";
    this.error = "";
    void this.work(job.job, name, false)
      .catch((err) => this.fail(err))
      .finally(() => (this.busy = ""));
  }

  /** setUp sets nodes of a running lab up by the commands of its file: all that have one if none is named. */
  async setUp(lab: string, nodes: string[]) {
    [this.settingUp, this.setupError] = [true, ""];
    try {
      await this.watchSetUp((await service.setUp(lab, nodes)).job ?? "");
    } catch (err) {
      this.setupError = textOf(err);
    } finally {
      this.settingUp = false;
    }
  }

  private async watchSetUp(job: string) {
    this.settingUp = true;
    try {
      this.setup = await this.until(job, (j) => (this.setup = j));
    } catch (err) {
      this.setupError = textOf(err);
    } finally {
      this.settingUp = false;
    }
  }

  /** until asks how a job is until it has ended, or this page has; one that does not answer for some seconds fails. */
  private async until(job: string, is: (j: LabJob) => void): Promise<LabJob> {
    for (let failed = 0; ; ) {
      try {
        const now = await service.job(job);
        failed = 0;
        is(now);
        if (now.done || this.ended) return now;
      } catch (err) {
        // A service that was started anew knows nothing of the job; one that is away may come back.
        if ((err instanceof ApiError && err.status === 404) || ++failed > 30) throw err;
      }
      await sleep(300);
    }
  }

  /** follow shows a running lab until another is followed, or end is called. */
  async follow(name: string) {
    if (this.following === name) return;
    if (!name && !this.busy && this.lab?.name === this.design.lab.name) this.design.tell(`the lab ${this.following} was taken down elsewhere; the drawing stays`, true);
    this.following = name;
    this.lab = null;
    if (name) void this.services.look();
    while (name && this.following === name && !this.ended) {
      await this.refresh();
      if (!this.services.idle && !this.services.busy) await this.services.look();
      await sleep(document.hidden ? 5000 : 2000);
    }
  }

  end() {
    this.ended = true;
  }

  async refresh() {
    const name = this.following;
    if (!name) return;
    try {
      const lab = await service.lab(name);
      if (name === this.following) this.lab = lab;
      this.lost = "";
      this.made(lab);
    } catch (err) {
      if (err instanceof ApiError && err.status === 404) {
        if (!this.job || this.job.done) await this.follow("");
        void this.look();
      } else {
        this.lost = textOf(err);
      }
    }
  }

  private stop() {
    this.following = "";
    this.lab = null;
    void this.look();
  }

  /** deploy checks the text and brings its lab up, on machines if a resource file is given, or shows what applying it would change. */
  async deploy(controllers: string[], machines = "") {
    const { design } = this;
    design.typed();
    this.error = "";
    this.busy = "checking";
    try {
      const text = design.lab.text;
      const checked = await service.check(text);
      if (design.lab.text === text) design.checked = checked.problems;
      if (checked.problems.length > 0) {
        this.error = `the lab cannot be deployed: ${checked.problems.length === 1 ? "there is a problem" : `there are ${checked.problems.length} problems`} in its text`;
        return;
      }
      this.labs = await service.list();
      if (this.labs.some((l) => l.name === checked.name)) {
        const made = design.draft.lab === checked.name ? design.draft.revision : "";
        this.difference = { ...(await service.apply(text, checked.name, made, true)), lab: checked.name };
        await this.services.look();
        return;
      }
      const at = machines ? controllerOf(machines) : "";
      const own = await this.apart(text, checked.nodes, at ? [at] : controllers);
      if (own !== text) {
        design.edit(own, "numbers and addresses that no running lab has");
        design.tell("switches and hosts got numbers and addresses that no running lab has");
      }
      const begun = await service.up(own, controllers, machines);
      await this.work(begun.job ?? "", begun.lab ?? checked.name);
    } catch (err) {
      this.fail(err);
    } finally {
      this.busy = "";
    }
  }

  /** apart keeps what is to be deployed apart from the labs that run at the same controllers. */
  private async apart(text: string, nodes: LabNode[], controllers: string[]): Promise<string> {
    const to = (list?: string[]) => (list?.length ? list : ["tcp:127.0.0.1:6653"]);
    const ours = new Set(to(controllers.length > 0 ? controllers : this.design.lab.controllers));
    const others: LabNode[] = [];
    for (const l of this.labs) {
      const lab = await this.whole(l.name ?? "");
      if (lab && to(lab.controllers).some((c) => ours.has(c))) others.push(...(lab.graph?.nodes ?? []));
    }
    return apart(text, nodes, others);
  }

  /** made notes that the draft is what runs, if it is. */
  private made(lab: LabDetails) {
    const { design } = this;
    if (lab.name === design.lab.name && lab.file === design.lab.text && (design.draft.lab !== lab.name || design.draft.revision !== lab.revision)) design.madeFrom(lab.name, lab.revision ?? "");
  }

  /** whole returns a lab once it is made; undefined if it is gone, or half made for long. */
  private async whole(name: string): Promise<LabDetails | undefined> {
    for (let i = 0; ; i++) {
      try {
        return await service.lab(name);
      } catch (err) {
        if (!(err instanceof ApiError) || err.status === 0 || err.status === 401) throw err;
        if (err.status === 404 || i === 10) return undefined;
      }
      await sleep(1000);
    }
  }

  /** agree applies the difference that is shown. */
  async agree() {
    const { difference, design } = this;
    if (!difference) return;
    this.difference = null;
    this.busy = "applying";
    try {
      const made = design.draft.lab === difference.lab ? design.draft.revision : "";
      const begun = await service.apply(design.lab.text, difference.lab ?? "", made, false);
      if (begun.job) await this.work(begun.job, difference.lab ?? "");
      else await this.done(difference.lab ?? "");
    } catch (err) {
      this.fail(err);
    } finally {
      this.busy = "";
    }
  }

  private fail(err: unknown) {
    this.error = textOf(err);
    if (err instanceof ApiError && (err.status === 409 || /revision|changed meanwhile|not the one any more/i.test(this.error))) {
      this.error += "\nThe lab was changed elsewhere since this draft was made. Nothing is lost: deploy again to see the difference to what runs now, or open the running lab beside it.";
      this.design.madeFrom(this.design.draft.lab, "");
    }
    void this.look();
  }

  /** work shows a job until it has ended. */
  private async work(job: string, lab: string, own = true) {
    const end = await this.until(job, (j) => {
      this.job = j;
      this.busy = j.doing || (j.kind === "apply" ? "applying" : "bringing the lab up");
    });
    if (this.ended) return;
    if (end.error) {
      this.error = end.error;
      void this.look();
      return;
    }
    await this.done(lab, own);
  }

  private async done(lab: string, own = true) {
    await this.look();
    const now = await service.lab(lab);
    if (own) this.design.madeFrom(lab, now.revision ?? "");
    else this.made(now);
    this.lab = now;
    void this.follow(lab);
    this.design.tell(`the lab ${lab} is up`);
    await this.services.look();
    if (!this.services.idle) void this.services.set();
  }

  async down(lab: string) {
    this.busy = "taking the lab down";
    this.error = "";
    try {
      await this.services.forget(lab);
      await service.down(lab);
      this.job = null;
      this.stop();
      this.design.tell(`the lab ${lab} is down`);
    } catch (err) {
      this.error = textOf(err);
    } finally {
      this.busy = "";
    }
  }

  /** linkOf returns the running link of a drawn one: of several between two nodes, that of the same place in order. */
  linkOf(a: string, b: string, nth: number, eth1 = false): LabLink | undefined {
    return this.links.get(ends(a, b, eth1))?.[nth];
  }

  async setLink(link: LabLink, to: LabSetLabLinkBody) {
    if (!this.lab?.name || !link.link) return;
    this.error = "";
    try {
      const is = await service.setLink(this.lab.name, link.link, to);
      const graph = this.lab.graph ?? {};
      this.lab = { ...this.lab, graph: { ...graph, links: (graph.links ?? []).map((l) => (l.link === link.link ? { ...l, ...is } : l)) } };
      this.design.tell(`link ${link.link}: ${is.state ?? "set"}`);
      void this.refresh();
    } catch (err) {
      this.error = textOf(err);
    }
  }
}
