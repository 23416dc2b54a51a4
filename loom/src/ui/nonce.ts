// Style elements that libraries make, as the controller's Content-Security-Policy allows them.

/** nonce is what a style element of this page needs to count. */
export const nonce = (): string => document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? "";

/** lend gives the nonce to style elements of a library that knows none. xterm.js has no option for it:
 * of its documentOverride it makes some elements only. */
export function lend() {
  const create = Document.prototype.createElement.bind(document);
  document.createElement = (tag: string, options?: ElementCreationOptions): HTMLElement => {
    const e = create(tag, options);
    if (tag === "style") e.nonce = nonce();
    return e;
  };
}
