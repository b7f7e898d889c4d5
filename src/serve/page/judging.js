// Scores of games by Stockfish in this browser, as a review request takes them. Its rounds are those of the server's
// judge in src/review/judge.rs, but its smaller network errs more often: large losses are in doubt as well, and
// contradictory scores get a round of their own.

import { t } from "./messages.js";
import { Engine, script } from "./stockfish.js";

/** Nodes per position. */
export const NODES = 50_000;
/** Most workers that share the positions. */
const WORKERS = 4;
/** Number of consecutive positions that are searched from the last to the first in one hash table. */
const STRETCH = 8;
/** Positions around a doubtful move get this many times the nodes, those with a contradictory score this many times,
 * and second moves this part of them. */
const DOUBTFUL = 5;
const CONTRADICTORY = 20;
const SECOND = 1 / 2;
/** Losses of winning chances, in −1…1, from which a move's mark is in doubt, and from which it is bad. */
const IN_DOUBT = 0.08;
const BAD = 0.2;
/** Most moves of a line that are kept, unless it mates. */
const LINE = 12;

/** Returns the winning chances in −1…1 by Lichess's formula. */
export function chances({ centipawns, mate }) {
  const score = mate === undefined ? Math.max(-1000, Math.min(1000, centipawns)) : mate > 0 ? 1000 : -1000;
  return 2 / (1 + Math.exp(-0.00368208 * score)) - 1;
}

const hasMoves = (position) => position.hasDests();

/** Cuts a list into stretches. */
const cut = (places) => Array.from({ length: Math.ceil(places.length / STRETCH) }, (_, at) => places.slice(at * STRETCH, (at + 1) * STRETCH));

/** The scores of a game's positions, as far as they are known. */
class Judged {
  constructor(game) {
    this.game = game;
    this.scores = game.positions.map(() => null);
  }

  every() {
    return this.game.positions.flatMap((position, place) => (hasMoves(position) ? [place] : []));
  }

  /** Returns how much of the winning chances a move lost. */
  loss(ply) {
    if (ply < 0 || ply >= this.game.moves.length) return 0;
    const [before, after] = [ply, ply + 1].map((place) => {
      const position = this.game.positions[place];
      if (this.scores[place]) return chances(this.scores[place].evaluation);
      return position.isCheckmate() ? -chances({ mate: 1 }) : 0;
    });
    return before + after;
  }

  /** Returns the stretches of positions before and after moves whose mark is in doubt. */
  doubtful() {
    const isInDoubt = (ply) => this.loss(ply) >= IN_DOUBT;
    const places = this.every().filter((place) => isInDoubt(place) || isInDoubt(place - 1));
    const runs = [];
    for (const place of places) {
      if (runs.at(-1)?.at(-1) === place - 1) runs.at(-1).push(place);
      else runs.push([place]);
    }
    return runs.flatMap(cut);
  }

  isBest(place) {
    return this.scores[place].line[0] === this.game.moves[place]?.uci;
  }

  /** Returns the positions whose score contradicts that of the next one: the best move was played, and yet it lost. */
  contradictory() {
    return this.every().filter((place) => this.isBest(place) && this.loss(place) >= IN_DOUBT).map((place) => [place]);
  }

  /** Returns the positions in which the second move's score matters, each a stretch of its own: the best move was
   * played, which may be the only good one, or a bad one was, instead of what may be the only good one. */
  chosen() {
    const matters = (place) => this.isBest(place) || this.loss(place) >= BAD;
    return this.every().filter((place) => matters(place)).map((place) => [place]);
  }

  /** Keeps a position's lines. A search with two lines, which has fewer nodes, only adds the second one's score. */
  keep(place, [best, second], lines) {
    const known = this.scores[place];
    if (lines > 1) {
      if (second && known.line[0] === best.line[0]) known.second = second.evaluation;
      return;
    }
    const line = best.evaluation.mate === undefined ? best.line.slice(0, LINE) : best.line;
    this.scores[place] = { evaluation: best.evaluation, line, second: null };
  }
}

/** Scores all positions of games. `hear` is called with the game's number, the place of a position and its score, the
 * number of searches done and the number of searches known so far. Throws if a worker fails, or if it is aborted. */
export async function judge(games, signal, hear) {
  const judged = games.map((game) => new Judged(game));
  const path = await script();
  const positions = judged.reduce((sum, one) => sum + one.every().length, 0);
  const count = Math.max(1, Math.min(WORKERS, navigator.hardwareConcurrency || 1, Math.ceil(positions / STRETCH)));
  const engines = Array.from({ length: count }, () => new Engine(path));
  const end = () => engines.forEach((engine) => engine.end());
  let [done, all] = [0, 0];

  async function round(stretchesOf, nodes, lines) {
    const queue = judged.flatMap((one, number) => stretchesOf(one).map((stretch) => ({ one, number, stretch })));
    all += queue.reduce((sum, { stretch }) => sum + stretch.length, 0);
    const work = async (engine) => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const { one, number, stretch } = next;
        await engine.prepare({ lines });
        for (const place of stretch.toReversed()) {
          const moves = one.game.moves.slice(0, place).map(({ uci }) => uci);
          const found = await engine.search({ start: one.game.fen, moves, nodes });
          if (!found) throw new Error(t("it finds no move in a position that has one"));
          one.keep(place, found, lines);
          hear({ number, place, score: one.scores[place], done: (done += 1), all });
        }
      }
    };
    await Promise.all(engines.map(work));
  }

  signal.addEventListener("abort", end);
  try {
    await Promise.all(engines.map((engine) => engine.begin()));
    await round((one) => cut(one.every()), NODES, 1);
    await round((one) => one.doubtful(), DOUBTFUL * NODES, 1);
    await round((one) => one.contradictory(), CONTRADICTORY * NODES, 1);
    await round((one) => one.chosen(), SECOND * NODES, 2);
    return { engine: engines[0].name, nodes: NODES, games: judged.map(({ scores }) => scores) };
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}
