// The theme: light, dark, or that of the system. public/assets/theme.js applies the choice before anything is drawn.

export type Theme = "light" | "dark" | "system";

const stored = "loom.theme";
const system = () => matchMedia("(prefers-color-scheme: dark)");

/** theme returns what was chosen. */
export function theme(): Theme {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

/** setTheme applies a theme, and keeps it for the next visit as far as the browser does. */
export function setTheme(to: Theme) {
  if (to === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = to;
  try {
    if (to === "system") localStorage.removeItem(stored);
    else localStorage.setItem(stored, to);
  } catch {
    // No room: the theme is that of this visit.
  }
}

/** isDark reports whether the page is dark now. */
export const isDark = () => (theme() === "system" ? system().matches : theme() === "dark");

/** onTheme calls f after each change between light and dark, until the function that it returns is called. */
export function onTheme(f: () => void): () => void {
  let was = isDark();
  const look = () => {
    if (was === isDark()) return;
    was = isDark();
    f();
  };
  const chosen = new MutationObserver(look);
  chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const media = system();
  media.addEventListener("change", look);
  return () => {
    chosen.disconnect();
    media.removeEventListener("change", look);
  };
}

/** tones returns colours of app.css by name as rgb(), for what draws by itself. */
export function tones<Name extends string>(...names: Name[]): Record<Name, string> {
  const probe = document.body.appendChild(document.createElement("span"));
  const out = {} as Record<Name, string>;
  for (const name of names) {
    probe.style.color = `var(--${name})`;
    out[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return out;
}
