// Files that the user saves.

/** saveAs has the browser save what is in a blob as a file. */
export function saveAs(blob: Blob, name: string) {
  const url = URL.createObjectURL(blob);
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** csv writes rows as RFC 4180 has it. What a spreadsheet would take for a formula is text to it. */
export function csv(rows: Array<Array<string | number | null>>): string {
  const cell = (v: string | number | null) => {
    if (v === null) return "";
    if (typeof v === "number") return String(v);
    const text = /^[=+\-@\t\r\n]/.test(v) && !/^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(v) ? "'" + v : v;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((r) => r.map(cell).join(",") + "\r\n").join("");
}

/** saveCSV has the browser save rows as a file. */
export const saveCSV = (rows: Array<Array<string | number | null>>, name: string) => saveAs(new Blob([csv(rows)], { type: "text/csv" }), name);
