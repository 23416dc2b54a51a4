// What is being written outlives the token and the gateway; where the browser has room, also a reload of the page.

const here = new Map<string, string>();
const place = (name: string) => "changes/" + name;

/** read returns what was being written under a name. */
export function read(name: string): string | undefined {
  try {
    return here.get(name) ?? sessionStorage.getItem(place(name)) ?? undefined;
  } catch {
    return undefined; // the browser keeps nothing
  }
}

/** keep keeps it; undefined drops it. It reports whether the browser has room for it; until a reload it is kept all the same. */
export function keep(name: string, text: string | undefined): boolean {
  if (text === undefined) here.delete(name);
  else here.set(name, text);
  try {
    sessionStorage.removeItem(place(name));
    if (text !== undefined) sessionStorage.setItem(place(name), text);
    return true;
  } catch {
    return false;
  }
}

/** noRoom is what a page says where keep reports false. */
export const noRoom = "The browser has no room to keep what you write: it is lost if you close this tab, or load the page again.";
