// Reads packets from the octets of a pcapng file as they come in.

export interface Packet {
  /** time is in seconds since 1970. */
  time: number;
  /** length is what the packet had on the wire. */
  length: number;
  data: Uint8Array;
  link: number;
}

const mostBlock = 1 << 20;

/** Reader takes octets in any pieces, and gives packets. */
export class Reader {
  private rest = new Uint8Array(0);
  private little = true;
  private links: Array<{ type: number; perSecond: number }> = [];

  push(more: Uint8Array): Packet[] {
    const all = new Uint8Array(this.rest.length + more.length);
    all.set(this.rest);
    all.set(more, this.rest.length);
    const view = new DataView(all.buffer);
    const out: Packet[] = [];
    let at = 0;
    while (all.length - at >= 12) {
      const type = view.getUint32(at, true);
      if (type === 0x0a0d0d0a) {
        const magic = view.getUint32(at + 8, true);
        if (magic !== 0x1a2b3c4d && magic !== 0x4d3c2b1a) throw new Error("not pcapng: its magic number is missing");
        this.little = magic === 0x1a2b3c4d;
        this.links = [];
      } else if (at === 0 && this.links.length === 0 && !this.begun) {
        throw new Error("not pcapng: it does not begin with a section header");
      }
      this.begun = true;
      const length = view.getUint32(at + 4, this.little);
      if (length < 12 || length % 4 !== 0 || length > mostBlock) throw new Error(`not pcapng: a block of ${length} octets`);
      if (all.length - at < length) break;
      const packet = this.block(view.getUint32(at, this.little), new DataView(all.buffer, at + 8, length - 12));
      if (packet) out.push(packet);
      at += length;
    }
    this.rest = all.slice(at);
    return out;
  }

  private begun = false;

  private block(type: number, b: DataView): Packet | null {
    const little = this.little;
    if (type === 1 && b.byteLength >= 8) {
      if (this.links.length < 4096) this.links.push({ type: b.getUint16(0, little), perSecond: resolution(b, little) });
    } else if (type === 6 && b.byteLength >= 20) {
      const link = this.links[b.getUint32(0, little)];
      const time = (b.getUint32(4, little) * 4294967296 + b.getUint32(8, little)) / (link?.perSecond ?? 1e6);
      const kept = Math.min(b.getUint32(12, little), b.byteLength - 20);
      return { time, length: b.getUint32(16, little), link: link?.type ?? 1, data: octets(b, 20, kept) };
    } else if (type === 3 && b.byteLength >= 4) {
      const length = b.getUint32(0, little);
      return { time: 0, length, link: this.links[0]?.type ?? 1, data: octets(b, 4, Math.min(length, b.byteLength - 4)) };
    }
    return null;
  }
}

function octets(b: DataView, from: number, length: number): Uint8Array {
  return new Uint8Array(b.buffer, b.byteOffset + from, length).slice();
}

/** resolution returns how many units of time a second has: the option if_tsresol, else millionths. */
function resolution(b: DataView, little: boolean): number {
  for (let at = 8; at + 4 <= b.byteLength; ) {
    const [code, length] = [b.getUint16(at, little), b.getUint16(at + 2, little)];
    if (code === 0) break;
    if (code === 9 && length === 1 && at + 4 < b.byteLength) {
      const v = b.getUint8(at + 4);
      return v & 0x80 ? 2 ** (v & 0x7f) : 10 ** v;
    }
    at += 4 + Math.ceil(length / 4) * 4;
  }
  return 1e6;
}
