// Sets the services of a running lab in the controller, and follows how they are.

import { ApiError, get, post, textOf } from "../api/client";
import { needs } from "../api/session.svelte";
import type { Circuit, ListCircuitsResponse, SetCircuitsRequest, SetCircuitsResponse } from "../api/types.gen";
import type { Design } from "./design.svelte";
import type { Live } from "./live.svelte";
import { sleep } from "./service";
import { ofLab, rows, same, type Row, type Wish } from "./services";

/** passing are refusals that pass by themselves after a lab was brought up. */
const passing = /there is no switch|has no such port|is a link between switches/;

export class Services {
  circuits = $state.raw<Circuit[]>([]);
  /** missing says why the controller has no circuits. */
  missing = $state("");
  error = $state("");
  busy = $state("");
  private refused = $state.raw(new Map<string, string>());

  constructor(
    private readonly design: Design,
    private readonly live: Live,
  ) {}

  private running = $derived.by(() => (this.live.lab?.name === this.design.lab.name ? this.live.lab : null));
  rows = $derived.by(() => rows(this.design.lab, this.running, this.circuits, this.refused));
  states = $derived(new Map(this.rows.map((r) => [r.name, r.state])));
  may = $derived.by(() => needs("operate"));
  /** changes says, for people, what setting would do. */
  changes = $derived.by(() => {
    const of = (states: string[]) => this.rows.filter((r) => states.includes(r.state)).map((r) => `${r.type} ${r.name}`);
    return { added: of(["not set", "failed", "drawn"]), changed: of(["differs"]), deleted: of(["to be deleted"]) };
  });

  /** look asks the controller which circuits there are. */
  async look(): Promise<boolean> {
    try {
      this.circuits = (await get<ListCircuitsResponse>("v1/l2vpn")).circuits ?? [];
      this.missing = "";
      return true;
    } catch (err) {
      this.circuits = [];
      this.missing = err instanceof ApiError && err.status === 503 ? `${err.message}. Services need l2vpn and tunnels in the plan, as the built-in plans have them` : textOf(err);
      return false;
    }
  }

  /** idle reports whether there is nothing to ask the controller about. */
  get idle() {
    return !this.running || (this.design.lab.services.length === 0 && !this.circuits.some((c) => ofLab(this.design.lab.name, c.name ?? "")));
  }

  /** set makes the circuits of the lab those that are drawn; others are left alone. */
  async set() {
    if (this.busy || !this.running) return;
    this.error = this.may;
    if (this.error) return;
    const lab = this.design.lab.name;
    this.refused = new Map();
    this.busy = "setting services";
    try {
      // After a lab was brought up its switches and ports are heard of by and by.
      for (let tries = 0; tries < 45 && (await this.look()) && this.running?.name === lab; tries++) {
        if (!(await this.once())) break;
        this.busy = "setting services: waiting for the controller to know their switches";
        await sleep(2000);
        await this.live.refresh();
      }
    } catch (err) {
      this.error = textOf(err);
    } finally {
      this.busy = "";
      await this.look();
    }
  }

  /** once asks for what differs, and reports whether it is worth to ask again. */
  private async once(): Promise<boolean> {
    const wishes = this.rows.map((r) => r.wish).filter((w): w is Wish => !!w);
    const gone = this.rows.filter((r) => r.state === "to be deleted").map((r) => r.circuit);
    const as = new Map(this.rows.map((r) => [r.circuit, r.there]));
    const differs = (w: Wish) => !as.get(w.name) || !same(w, as.get(w.name)!);
    if (!wishes.some(differs) && gone.length === 0) {
      this.refused = new Map();
      return false;
    }
    const ask = (circuits: Wish[], dry_run: boolean) => post<SetCircuitsResponse>("v1/l2vpn", { circuits, delete: gone, dry_run } satisfies SetCircuitsRequest);
    const would = await ask(wishes, true);
    const refused = new Map((would.outcomes ?? []).filter((o) => o.outcome === "refused").map((o) => [o.name ?? "", o.error ?? ""]));
    const taken = wishes.filter((w) => !refused.has(w.name));
    if (taken.some(differs) || gone.length > 0) await ask(taken, false);
    await this.look();
    this.refused = refused;
    return [...refused.values()].some((why) => passing.test(why));
  }

  /** forget deletes all circuits of a lab, which is to be taken down. */
  async forget(lab: string) {
    if (this.may || !(await this.look())) return;
    const gone = this.circuits.map((c) => c.name ?? "").filter((name) => ofLab(lab, name));
    if (gone.length > 0) await post("v1/l2vpn", { delete: gone });
    this.refused = new Map();
    await this.look();
  }
}

export type { Row };
