// Icons of what a network is made of, on a grid of 24, drawn with round strokes 1.75 wide. The shape says the
// class, the glyph the kind. Maps draw the same paths (Path2D, SVG) as pages do (Device.svelte).

export type Kind = "switch" | "bridge" | "router" | "hybrid" | "function" | "firewall" | "controller" | "host" | "server" | "radio" | "cloud";
export type Shape = "square" | "split" | "circle" | "hexagon" | "diamond" | "none";

/** shape is what is around the glyph of a kind. */
export const shape: Record<Kind, Shape> = { switch: "square", bridge: "square", router: "circle", hybrid: "split", function: "hexagon", firewall: "hexagon", controller: "diamond", host: "none", server: "none", radio: "none", cloud: "none" };

/** word names a kind for people. */
export const word: Record<Kind, string> = {
  switch: "OpenFlow switch",
  bridge: "Learning bridge",
  router: "Router",
  hybrid: "Hybrid node",
  function: "Function",
  firewall: "Firewall",
  controller: "Controller process",
  host: "Host",
  server: "Server",
  radio: "Radio",
  cloud: "Internet",
};

/** outline is the path of a shape, "" if it has none. */
export const outline: Record<Shape, string> = {
  square: "M7 1h10a6 6 0 0 1 6 6v10a6 6 0 0 1-6 6H7a6 6 0 0 1-6-6V7a6 6 0 0 1 6-6z",
  split: "M7 1h10a6 6 0 0 1 6 6v10a6 6 0 0 1-6 6H7a6 6 0 0 1-6-6V7a6 6 0 0 1 6-6z",
  circle: "M12 1a11 11 0 1 0 0 22 11 11 0 0 0 0-22z",
  hexagon: "M10.8 1.2a2.4 2.4 0 0 1 2.4 0l7.6 4.4a2.4 2.4 0 0 1 1.2 2.1v8.6a2.4 2.4 0 0 1-1.2 2.1l-7.6 4.4a2.4 2.4 0 0 1-2.4 0l-7.6-4.4A2.4 2.4 0 0 1 2 16.3V7.7a2.4 2.4 0 0 1 1.2-2.1z",
  diamond: "M10.3 1.3a2.4 2.4 0 0 1 3.4 0l9 9a2.4 2.4 0 0 1 0 3.4l-9 9a2.4 2.4 0 0 1-3.4 0l-9-9a2.4 2.4 0 0 1 0-3.4z",
  none: "",
};

/** lower is the tinted half of a hybrid node. */
export const lower = "M1 12h22v5a6 6 0 0 1-6 6H7a6 6 0 0 1-6-6z";

/** glyph is the path of a kind; inside of a shape it is drawn at two thirds. */
export const glyph: Record<Kind, string> = {
  switch: "M4 8h15M15 4l4 4-4 4M20 16H5M9 12l-4 4 4 4",
  bridge: "M3 12h18M7 8l-4 4 4 4M17 8l4 4-4 4",
  router: "M12 2v7M9 6l3 3 3-3M12 22v-7M9 18l3-3 3 3M2 12h7M6 9l3 3-3 3M22 12h-7M18 9l-3 3 3 3",
  hybrid: "M4 6h14M14 2l4 4-4 4M12 12v10M8 18l4 4 4-4",
  function: "M8 6l-6 6 6 6M16 6l6 6-6 6M14 3l-4 18",
  firewall: "M12 2l8 3v6c0 5-3.3 9-8 11-4.7-2-8-6-8-11V5zM8.5 12l2.5 2.5 4.5-5",
  controller: "M6 3v18M12 3v4M12 13v8M18 3v10M18 19v2M3 9h.5M9 9h12M3 16h6M15 16h6",
  host: "M5 4h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2zM12 16v4M8 20h8",
  server: "M5 3h14a2 2 0 0 1 2 2v4a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2zM5 13h14a2 2 0 0 1 2 2v4a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2v-4a2 2 0 0 1 2-2zM7 7h2M7 17h2",
  radio: "M12 14v7M12 10.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zM8.5 15.5a5 5 0 0 1 0-7M15.5 8.5a5 5 0 0 1 0 7M5.6 18.4a9 9 0 0 1 0-12.8M18.4 5.6a9 9 0 0 1 0 12.8",
  cloud: "M7 19a5 5 0 0 1-.7-9.95A6 6 0 0 1 17.9 9.3 4.9 4.9 0 0 1 17.5 19z",
};
