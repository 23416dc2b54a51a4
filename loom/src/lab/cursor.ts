/** Cursor reads big-endian numbers, and fails behind the end. */
export class Cursor {
  private readonly view: DataView;

  constructor(
    readonly data: Uint8Array,
    public at = 0,
  ) {
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  }
  u8 = () => this.view.getUint8(this.at++);
  u16() {
    this.at += 2;
    return this.view.getUint16(this.at - 2);
  }
  u24() {
    return (this.u8() << 16) | this.u16();
  }
  u32() {
    this.at += 4;
    return this.view.getUint32(this.at - 4);
  }
  take(n: number) {
    if (this.at + n > this.data.length) throw new RangeError("short");
    this.at += n;
    return this.data.subarray(this.at - n, this.at);
  }
  /** upTo returns a cursor at the same place of what stands before an offset. */
  upTo(end: number) {
    return new Cursor(this.data.subarray(0, Math.min(end, this.data.length)), this.at);
  }
  get left() {
    return this.data.length - this.at;
  }
}

export const mac = (b: Uint8Array) => Array.from(b, (v) => v.toString(16).padStart(2, "0")).join(":");
export const ip4 = (b: Uint8Array) => b.join(".");

/** ip6 writes an address as RFC 5952 says. */
export function ip6(b: Uint8Array): string {
  const words = Array.from({ length: 8 }, (_, i) => (b[2 * i] << 8) | b[2 * i + 1]);
  let [best, length] = [-1, 1];
  for (let i = 0; i < 8; i++) {
    let n = 0;
    while (i + n < 8 && words[i + n] === 0) n++;
    if (n > length) [best, length] = [i, n];
  }
  const hex = (w: number[]) => w.map((v) => v.toString(16)).join(":");
  return best < 0 ? hex(words) : `${hex(words.slice(0, best))}::${hex(words.slice(best + length))}`;
}

/** text makes octets a text without what does not print. */
export const text = (b: Uint8Array) => new TextDecoder().decode(b.slice(0, 100)).replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, "·");
