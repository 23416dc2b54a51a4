// A small reader of XML, enough for GraphML: elements, attributes, text. What could
// make a document larger than its text, such as entities of its own, is refused.

export interface Element {
  name: string;
  attributes: Record<string, string>;
  children: Element[];
  text: string;
}

const named: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

function unescape(s: string): string {
  return s.replace(/&(#x[0-9a-fA-F]+|#[0-9]+|[a-zA-Z]+);?/g, (all, ref: string) => {
    if (named[ref]) return named[ref];
    const code = ref.startsWith("#x") ? parseInt(ref.slice(2), 16) : ref.startsWith("#") ? parseInt(ref.slice(1), 10) : NaN;
    if (!(code > 0 && code <= 0x10ffff)) throw new Error(`not XML: ${all} is no reference that is known`);
    return String.fromCodePoint(code);
  });
}

/** escape writes a text so that it may stand in XML. */
export function escape(s: string): string {
  // eslint-disable-next-line no-control-regex
  return s.replace(/[<>&"'\u0000-\u001f]/g, (c) => (c < " " ? (c === "\n" || c === "\t" || c === "\r" ? `&#${c.charCodeAt(0)};` : "") : c === "<" ? "&lt;" : c === ">" ? "&gt;" : c === "&" ? "&amp;" : c === '"' ? "&quot;" : "&apos;"));
}

const token = /<!--[\s\S]*?-->|<!\[CDATA\[([\s\S]*?)\]\]>|<\?[\s\S]*?\?>|<!DOCTYPE[^>[]*>|<\/([^\s>]+)\s*>|<([^\s/>!?]+)((?:\s+[^\s=>/]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>|([^<]+)|([\s\S])/g;

/** readXML returns the topmost element of a document. */
export function readXML(text: string): Element {
  const top: Element = { name: "", attributes: {}, children: [], text: "" };
  const open: Element[] = [top];
  for (const m of text.matchAll(token)) {
    const at = open[open.length - 1];
    if (m[7] !== undefined) throw new Error(`not XML: ${JSON.stringify(text.slice(m.index, m.index + 30))} in line ${text.slice(0, m.index).split("\n").length}`);
    if (m[1] !== undefined) at.text += m[1];
    else if (m[6] !== undefined) at.text += unescape(m[6]);
    else if (m[2] !== undefined) {
      if (open.length === 1 || at.name !== m[2]) throw new Error(`not XML: </${m[2].slice(0, 40)}> ends what has not begun`);
      open.pop();
    } else if (m[3] !== undefined) {
      const e: Element = { name: m[3], attributes: {}, children: [], text: "" };
      for (const a of (m[4] ?? "").matchAll(/([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)) e.attributes[a[1]] = unescape(a[2] ?? a[3]);
      at.children.push(e);
      if (!m[5]) open.push(e);
      if (open.length > 100) throw new Error("not GraphML: elements stand in each other more than 100 deep");
    }
  }
  if (open.length > 1) throw new Error(`not XML: <${open[open.length - 1].name.slice(0, 40)}> does not end`);
  if (top.children.length !== 1) throw new Error("not XML: want one topmost element");
  return top.children[0];
}

/** local is the name of an element without its prefix. */
export const local = (e: Element) => e.name.replace(/^.*:/, "");
