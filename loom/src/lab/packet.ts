/** Layer is a header of a packet, by its fields. */
export interface Layer {
  name: string;
  fields: Array<[string, string]>;
}

/** Decoded is a packet in words. */
export interface Decoded {
  src: string;
  dst: string;
  protocol: string;
  info: string;
  layers: Layer[];
}

/** Packet is one that is being decoded. */
export interface Packet extends Decoded {
  /** within is what the packet is in: tags, labels, tunnels. */
  within: string[];
  /** deep counts tunnels in tunnels. */
  deep: number;
}

/** add adds a header to a packet. */
export function add(out: Packet, name: string, fields: Record<string, string | number>) {
  out.layers.push({ name, fields: Object.entries(fields).map(([k, v]) => [k, String(v)]) });
}
