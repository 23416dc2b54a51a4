// Styles that libraries make, as the controller's Content-Security-Policy allows them.

/** nonce is what a style element of this page needs to count. */
export const nonce = (): string => document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? "";

/** lend gives the nonce to style elements that a library makes which knows none, and sets styles of
 * elements without the attribute, which does not count either. xterm.js has no option for it: of its
 * documentOverride it makes some elements only. */
export function lend() {
  const create = Document.prototype.createElement.bind(document);
  document.createElement = (tag: string, options?: ElementCreationOptions): HTMLElement => {
    const e = create(tag, options);
    if (tag === "style") e.nonce = nonce();
    else if (tag === "span") e.setAttribute = (name, value) => (name === "style" ? void (e.style.cssText = value) : Element.prototype.setAttribute.call(e, name, value));
    return e;
  };
}
