/** read returns what was being written under a name; it outlives the token and the gateway. */
export function read(name: string): string | undefined {
  try {
    return sessionStorage.getItem("changes/" + name) ?? undefined;
  } catch {
    return undefined; // the browser keeps nothing
  }
}

/** keep keeps it; undefined drops it. */
export function keep(name: string, text: string | undefined) {
  try {
    if (text === undefined) sessionStorage.removeItem("changes/" + name);
    else sessionStorage.setItem("changes/" + name, text);
  } catch {
    // There is no room: the page still has it.
  }
}
