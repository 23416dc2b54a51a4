// What readers of other formats have in common: a lab as its fields.

import type { Fields } from "../document";

/** LabFields are those of a lab file. */
export interface LabFields extends Fields {
  name?: string;
  switches?: Fields[];
  hosts?: Fields[];
  links?: Fields[];
}

/** most is how long a file may be that is read, in octets. */
export const most = 8 << 20;

/** labName makes a lab's name of any text. */
export function labName(s: string): string {
  return s.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^[-_]+|[-_]+$/g, "").slice(0, 32) || "lab";
}

/** Names gives nodes of other formats names that a lab may have. */
export class Names {
  private readonly used = new Set<string>();

  of(wanted: string): string {
    const base = wanted.replace(/[^A-Za-z0-9_.-]+/g, "-").replace(/^[^A-Za-z0-9]+|[-.]+$/g, "").slice(0, 55) || "n";
    let name = base;
    for (let n = 2; this.used.has(name); n++) name = `${base}-${n}`;
    this.used.add(name);
    return name;
  }
}

export function fieldsOf(v: unknown): Fields {
  return v !== null && typeof v === "object" && !Array.isArray(v) ? (v as Fields) : {};
}

export const listOf = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);

/** rest is fields without some keys. */
export function rest(of: Fields, ...keys: string[]): Fields {
  return Object.fromEntries(Object.entries(of).filter(([k]) => !keys.includes(k)));
}

/** filled is fields without what is empty. */
export function filled(of: Fields): Fields {
  return Object.fromEntries(Object.entries(of).filter(([, v]) => v !== undefined && !(typeof v === "object" && v !== null && Object.keys(v).length === 0)));
}

export const position = (v: unknown): [number, number] | null => (Array.isArray(v) && v.length === 2 && v.every((x) => typeof x === "number" && Number.isFinite(x)) ? (v as [number, number]) : null);
