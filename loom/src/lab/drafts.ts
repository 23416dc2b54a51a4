// What is drawn is kept in the browser until it is thrown away.

/** Draft is a text that somebody works on. */
export interface Draft {
  id: string;
  name: string;
  model: string;
  text: string;
  saved: number;
  /** lab and revision say which running lab it was made from. */
  lab: string;
  revision: string;
  /** machines is the resource file of the testbed that it is for. */
  machines?: string;
}

const key = "loom.lab.drafts";
const most = 20;

/** load returns the drafts, the last saved first. */
export function load(store: Pick<Storage, "getItem">): Draft[] {
  try {
    const all = JSON.parse(store.getItem(key) ?? "[]") as Draft[];
    if (!Array.isArray(all)) return [];
    return all.filter((d) => typeof d?.id === "string" && typeof d.text === "string").sort((a, b) => b.saved - a.saved);
  } catch {
    return []; // what another program wrote there is no draft
  }
}

/** save keeps a draft; it returns why it could not. The oldest beyond some are forgotten. */
export function save(store: Pick<Storage, "getItem" | "setItem">, draft: Draft): string {
  const others = load(store).filter((d) => d.id !== draft.id);
  try {
    store.setItem(key, JSON.stringify([draft, ...others].slice(0, most)));
    return "";
  } catch {
    return "the browser has no room for this draft: delete others, or save the text as a file";
  }
}

/** forget deletes a draft. */
export function forget(store: Pick<Storage, "getItem" | "setItem">, id: string) {
  store.setItem(key, JSON.stringify(load(store).filter((d) => d.id !== id)));
}
