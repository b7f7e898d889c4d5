// Stockfish compiled to WebAssembly, in a worker of this browser.

import { get } from "./api.js";
import { t } from "./messages.js";

/** How long an engine may load, and how long it may then be silent, in milliseconds. */
const LOADING = 120_000;
const SILENCE = 60_000;

let found;
/** Returns the path of the engine's script, or nothing if the server was built without it. */
export const script = () => (found ??= get("/page/stockfish.json").then((it) => it.script ?? undefined));

/** Reads a line that begins with `info`; returns nothing if it has no exact score. */
function readInfo(text) {
  const [info, pv] = text.split(" pv ");
  const value = (name) => Number(info.match(new RegExp(` ${name} (-?\\d+)`))?.[1]);
  const [, unit, score] = info.match(/ score (cp|mate) (-?\d+)(?! (?:lower|upper)bound)(?= |$)/) ?? [];
  if (!pv || !unit) return undefined;
  const evaluation = { [unit === "cp" ? "centipawns" : "mate"]: Number(score) };
  return { rank: value("multipv") || 1, depth: value("depth"), nodes: value("nodes"), evaluation, line: pv.trim().split(" ") };
}

export class Engine {
  /** Starts an engine's worker with the script at `path`. */
  constructor(path) {
    this.name = "Stockfish";
    this.worker = new Worker(path);
    this.worker.addEventListener("message", ({ data }) => this.waiting?.hear(String(data)));
    this.worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.#fail(event.message || t("its files do not load"));
    });
  }

  /** Ends the engine; a search in progress is rejected. */
  end() {
    this.worker.terminate();
    this.#fail(t("it was ended"));
  }

  #fail(reason) {
    this.failure ??= new Error(reason);
    this.waiting?.fail(this.failure);
  }

  /** Sends commands and waits for the line that begins with `last`, at most `patience` ms after the previous line. */
  #ask(commands, last, patience, hear) {
    if (this.failure) return Promise.reject(this.failure);
    let timer;
    const answer = new Promise((resolve, reject) => {
      const wait = () => {
        clearTimeout(timer);
        timer = setTimeout(() => this.#fail(t("it has not answered for {seconds} seconds", { seconds: patience / 1000 })), patience);
      };
      const hearLine = (text) => {
        wait();
        hear(text);
        if (text.startsWith(last)) resolve(text);
      };
      this.waiting = { hear: hearLine, fail: reject };
      wait();
      for (const command of commands) this.worker.postMessage(command);
    });
    return answer.finally(() => {
      clearTimeout(timer);
      this.waiting = undefined;
    });
  }

  /** Waits until the engine has loaded. */
  async begin() {
    await this.#ask(["uci"], "uciok", LOADING, (text) => {
      if (text.startsWith("id name ")) this.name = text.slice("id name ".length);
    });
    // Castling is written as the king taking its own rook, as chessops writes it.
    this.worker.postMessage("setoption name UCI_Chess960 value true");
  }

  /** Prepares for searches with this number of lines, and forgets earlier ones. */
  async prepare({ lines }) {
    const commands = [`setoption name MultiPV value ${lines}`, "ucinewgame", "isready"];
    await this.#ask(commands, "readyok", SILENCE, () => {});
  }

  /** Searches the position after `moves` from the FEN `start`. Returns the best lines, for the side to move, or
   * nothing if there is no legal move; `hear` is called with these lines as they grow. */
  async search({ start, moves, nodes }, hear = () => {}) {
    const lines = [];
    const position = `position fen ${start}${moves.length ? ` moves ${moves.join(" ")}` : ""}`;
    const said = await this.#ask([position, `go nodes ${nodes}`], "bestmove", SILENCE, (text) => {
      const info = text.startsWith("info ") && readInfo(text);
      if (!info) return;
      lines[info.rank - 1] = info;
      hear(lines);
    });
    if (said.startsWith("bestmove (none)")) return undefined;
    if (!lines.length) throw new Error(t("it gave no score"));
    return lines;
  }

  /** Ends the search in progress early, with what it has found. */
  stop() {
    if (this.waiting) this.worker.postMessage("stop");
  }
}
