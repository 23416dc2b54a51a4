import { readable } from "svelte/store";

/** Route is a page and what it shows, as in the address: #/lab?name=x. */
export interface Route {
  page: string;
  query: URLSearchParams;
}

/** parse reads the part of an address behind #. */
export function parse(hash: string): Route {
  const [path, query] = hash.replace(/^#?\/?/, "").split("?", 2);
  return { page: path || "network", query: new URLSearchParams(query ?? "") };
}

/** write returns the address of a page with what is not empty of its state. */
export function write(page: string, state: Record<string, string>): string {
  const query = new URLSearchParams(Object.entries(state).filter(([, v]) => v !== "")).toString();
  return `#/${page}${query ? "?" + query : ""}`;
}

/** route is where the user is now. */
export const route = readable<Route>(parse(location.hash), (set) => {
  const told = () => set(parse(location.hash));
  addEventListener("hashchange", told);
  return () => removeEventListener("hashchange", told);
});

/** go moves to a page; show only changes what the page shows. */
export function go(page: string, state: Record<string, string> = {}) {
  location.hash = write(page, state);
}
export function show(page: string, change: Record<string, string>) {
  const now = parse(location.hash);
  const state = now.page === page ? Object.fromEntries(now.query) : {};
  const next = write(page, { ...state, ...change });
  if (next !== location.hash) {
    history.replaceState(null, "", next);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}
