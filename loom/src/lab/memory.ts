/** memory is a store of a browser, for tests; full has it refuse what is longer than some. */
export function memory(room = { most: Infinity }): Storage {
  const kept = new Map<string, string>();
  return {
    get length() {
      return kept.size;
    },
    key: (i) => [...kept.keys()][i] ?? null,
    getItem: (k) => kept.get(k) ?? null,
    setItem: (k, v) => {
      if (v.length > room.most) throw new Error("QuotaExceededError");
      kept.set(k, v);
    },
    removeItem: (k) => void kept.delete(k),
    clear: () => kept.clear(),
  };
}
