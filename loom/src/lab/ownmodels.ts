// The models that users have written: kept in the browser, and in the files of labs.

import { guessed, models, type Model } from "./models";
import { modelOf, readModel } from "./modelfile";
import type { Lab } from "./document";

const prefix = "loom.lab.model.";

/** loadModels returns the models that are kept in the browser, by title. */
export function loadModels(store: Storage): Model[] {
  const all: Model[] = [];
  for (let i = 0; i < store.length; i++) {
    const key = store.key(i) ?? "";
    if (!key.startsWith(prefix)) continue;
    try {
      all.push(readModel(store.getItem(key) ?? ""));
    } catch {
      // what another program, or another version of this one, wrote there is no model
    }
  }
  return all.sort((a, b) => a.title.localeCompare(b.title));
}

/** keepModel keeps a model, in place of another of that name; it returns why it could not. */
export function keepModel(store: Storage, m: Model): string {
  if (models.some((b) => b.name === m.name)) return `the name ${m.name} is that of a model that Loom has: give this one another`;
  try {
    store.setItem(prefix + m.name, m.text);
    return "";
  } catch {
    return "the browser has no room for this model: delete drafts";
  }
}

export function forgetModel(store: Storage, name: string) {
  store.removeItem(prefix + name);
}

/** ofLab returns the model that the file of a lab says, else one that has its kinds of nodes; and what is wrong with the file's. */
export function ofLab(lab: Lab, known: Model[]): { model: Model; wrong: string } {
  const otherwise = guessed(lab);
  const said = lab.model;
  if (said === undefined || said === null) return { model: otherwise, wrong: "" };
  if (typeof said !== "object") {
    const model = known.find((m) => m.name === String(said));
    return model ? { model, wrong: "" } : { model: otherwise, wrong: `x-model: there is no model ${String(said).slice(0, 60)} here; allowed: ${known.map((m) => m.name).join(", ")}, or the model itself` };
  }
  const kept = known.find((m) => m.name === (said as Model).name);
  try {
    return { model: modelOf(said, kept?.text ?? JSON.stringify(said, null, 1)), wrong: "" };
  } catch (err) {
    return { model: otherwise, wrong: `x-model: ${(err as Error).message}` };
  }
}
