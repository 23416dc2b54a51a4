// What is drawn is kept in the browser until it is thrown away.

/** Draft is a text that somebody works on. */
export interface Draft {
  id: string;
  name: string;
  text: string;
  saved: number;
  /** lab and revision say which running lab it was made from. */
  lab: string;
  revision: string;
  /** machines is the resource file of the testbed that it is for. */
  machines?: string;
}

/** prefix is how the keys of drafts begin: each has its own, so that pages that are open at once do not undo each other. */
export const prefix = "loom.lab.draft.";
const most = 100;

function readDraft(text: string | null): Draft | null {
  try {
    const d = JSON.parse(text ?? "") as Draft;
    return typeof d?.id === "string" && typeof d.text === "string" ? d : null;
  } catch {
    return null; // what another program wrote there is no draft
  }
}

/** load returns the drafts, the last saved first. */
export function load(store: Storage): Draft[] {
  const all: Draft[] = [];
  for (let i = 0; i < store.length; i++) {
    const key = store.key(i) ?? "";
    const draft = key.startsWith(prefix) ? readDraft(store.getItem(key)) : null;
    if (draft && key === prefix + draft.id) all.push(draft);
  }
  return all.sort((a, b) => b.saved - a.saved);
}

/** loadOne returns the draft of an id; null if there is none. */
export const loadOne = (store: Storage, id: string): Draft | null => readDraft(store.getItem(prefix + id));

/** save keeps a draft; it returns why it could not. */
export function save(store: Storage, draft: Draft): string {
  if (store.getItem(prefix + draft.id) === null && load(store).length >= most) return `there are ${most} drafts already, and this one is not kept: delete others, or save the text as a file`;
  try {
    store.setItem(prefix + draft.id, JSON.stringify(draft));
    return "";
  } catch {
    return "the browser has no room for this draft: delete others, or save the text as a file";
  }
}

/** forget deletes a draft. */
export function forget(store: Storage, id: string) {
  store.removeItem(prefix + id);
}
