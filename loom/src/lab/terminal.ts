// A terminal in the page, loaded when the first console is opened.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";

import { lend } from "../ui/nonce";

lend();

export interface Console {
  /** send types into the console. */
  send(octets: Uint8Array): void;
  fit(): void;
  focus(): void;
  /** end leaves what is shown, and tries to connect no more. */
  end(): void;
  close(): void;
}

/** State says how a console's connection is. */
export type State = "connecting" | "open" | "lost" | "ended";

/** open shows a console in an element; typed hears what the user types, and says who else gets it. */
export function open(parent: HTMLElement, url: URL, label: string, typed: (octets: Uint8Array) => void, state: (is: State, why: string) => void): Console {
  const term = new Terminal({ cursorBlink: false, fontSize: 13, scrollback: 10000, screenReaderMode: false, theme: { background: "#14171b", foreground: "#e6e9ed" } });
  const fit = new FitAddon();
  term.loadAddon(fit);
  term.open(parent);
  term.textarea?.setAttribute("aria-label", label);
  const encoder = new TextEncoder();
  let socket: WebSocket | undefined;
  let gone = false;
  let tries = 0;

  const size = () => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify({ rows: term.rows, cols: term.cols }));
  function connect() {
    state("connecting", "");
    const s = new WebSocket(url);
    s.binaryType = "arraybuffer";
    socket = s;
    s.onopen = () => {
      tries = 0;
      term.reset(); // what was before comes again
      state("open", "");
      size();
    };
    s.onmessage = (e) => e.data instanceof ArrayBuffer && term.write(new Uint8Array(e.data));
    s.onclose = (e) => {
      if (gone) return;
      if (e.code === 1000) return state("ended", e.reason || "the command has ended");
      if (++tries > 20) return state("ended", "the connection was lost, and the console does not answer any more");
      state("lost", "the connection was lost: trying again");
      setTimeout(() => !gone && connect(), Math.min(500 * tries, 5000));
    };
  }
  // Ctrl-C is the command's; what is selected is copied as in other terminals.
  term.attachCustomKeyEventHandler((e) => {
    const copies = (e.ctrlKey && e.shiftKey && e.code === "KeyC") || (e.ctrlKey && e.key === "Insert");
    if (!copies) return true;
    if (e.type === "keydown" && term.hasSelection()) document.execCommand("copy"); // of its selection, without asking for a right to the clipboard
    e.preventDefault();
    return false;
  });
  term.onData((s) => typed(encoder.encode(s)));
  term.onBinary((s) => typed(Uint8Array.from(s, (c) => c.charCodeAt(0) & 255)));
  term.onResize(size);
  const watch = new ResizeObserver(() => parent.clientWidth > 0 && fit.fit());
  watch.observe(parent);
  if (parent.clientWidth > 0) fit.fit();
  connect();
  return {
    send: (octets) => socket?.readyState === WebSocket.OPEN && socket.send(octets as Uint8Array<ArrayBuffer>),
    fit: () => fit.fit(),
    focus: () => term.focus(),
    end() {
      gone = true;
      socket?.close();
    },
    close() {
      gone = true;
      watch.disconnect();
      socket?.close();
      term.dispose();
    },
  };
}
