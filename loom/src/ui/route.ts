import { readable } from "svelte/store";

/** Route is a page and what it shows, as in the address: #/lab?name=x. */
export interface Route {
  page: string;
  query: URLSearchParams;
}

/** parse reads the part of an address behind #. */
export function parse(hash: string): Route {
  const [path, query] = hash.replace(/^#?\/?/, "").split("?", 2);
  return { page: path || "overview", query: new URLSearchParams(query ?? "") };
}

/** write returns the address of a page with what is not empty of its state. */
export function write(page: string, state: Record<string, string>): string {
  const query = new URLSearchParams(Object.entries(state).filter(([, v]) => v !== "")).toString();
  return `#/${page}${query ? "?" + query : ""}`;
}

/** changed returns the address of a page that shows what it shows now, but for a change. */
function changed(page: string, change: Record<string, string>): string {
  const now = parse(location.hash);
  return write(page, { ...(now.page === page ? Object.fromEntries(now.query) : {}), ...change });
}

/** route is where the user is now. */
export const route = readable<Route>(parse(location.hash), (set) => {
  const told = () => set(parse(location.hash));
  addEventListener("hashchange", told);
  return () => removeEventListener("hashchange", told);
});

/** go moves to a page. */
export function go(page: string, state: Record<string, string> = {}) {
  location.hash = write(page, state);
}

/** visit changes what the page shows; the browser leads back to what it showed. */
export function visit(page: string, change: Record<string, string>) {
  location.hash = changed(page, change);
}

/** show changes what the page shows, without a step to go back. */
export function show(page: string, change: Record<string, string>) {
  const next = changed(page, change);
  if (next !== location.hash) {
    history.replaceState(null, "", next);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}
