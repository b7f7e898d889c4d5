// The board editor, in which a position is set up.

import { Chessground } from "/board/chessground.js";
import { element, finder } from "./dom.js";
import { fenOf, readFen } from "./fen.js";
import { INITIAL_FEN } from "./game.js";
import { message, t } from "./messages.js";

const ROLES = ["king", "queen", "rook", "bishop", "knight", "pawn"];
/** What a screen reader calls the pieces. */
const NAMES = {
  white: [message("white king"), message("white queen"), message("white rook"), message("white bishop"), message("white knight"), message("white pawn")],
  black: [message("black king"), message("black queen"), message("black rook"), message("black bishop"), message("black knight"), message("black pawn")],
};
const RIGHTS = ["K", "Q", "k", "q"];
/** The squares of the king and the rook that each castling right requires. */
const HOMES = { K: ["e1", "h1"], Q: ["e1", "a1"], k: ["e8", "h8"], q: ["e8", "a8"] };

const dialog = document.getElementById("editor");
const at = finder("editor");
const form = at("form");
let ground;
/** What a click puts on a square: a piece, or `erase`; if it is unset, pieces are dragged. */
let brush;

function choose(given, chosen) {
  const isSame = chosen?.getAttribute("aria-checked") === "true";
  for (const it of dialog.querySelectorAll(".palette button")) it.setAttribute("aria-checked", "false");
  brush = isSame ? undefined : given;
  if (!isSame) chosen?.setAttribute("aria-checked", "true");
  ground.set({ draggable: { enabled: !brush }, selectable: { enabled: !brush } });
}

function palette(color) {
  const entry = (label, piece, given) => {
    const button = element("button", { type: "button", ariaLabel: label, title: label }, piece);
    button.setAttribute("role", "radio");
    button.setAttribute("aria-checked", "false");
    button.addEventListener("click", () => choose(given, button));
    return button;
  };
  const pieces = ROLES.map((role, index) => entry(t(NAMES[color][index]), element("piece", { className: `${role} ${color}` }), { role, color }));
  at(color).classList.add("cg-wrap");
  at(color).replaceChildren(...pieces, ...(color === "white" ? [entry(t("erase"), "✕", "erase")] : []));
}

function place(square) {
  if (!brush) return;
  const there = ground.state.pieces.get(square);
  const isSame = there && there.role === brush.role && there.color === brush.color;
  ground.setPieces(new Map([[square, brush === "erase" || isSame ? undefined : brush]]));
  write();
}

/** Writes the form's position to the FEN field. */
function write() {
  for (const right of RIGHTS) {
    const [king, rook] = HOMES[right].map((square) => ground.state.pieces.get(square));
    const color = right === right.toUpperCase() ? "white" : "black";
    const isPossible = king?.role === "king" && king.color === color && rook?.role === "rook" && rook.color === color;
    form.elements[right].disabled = !isPossible;
    if (!isPossible) form.elements[right].checked = false;
  }
  const rights = RIGHTS.filter((right) => form.elements[right].checked).join("") || "-";
  form.elements.fen.value = `${ground.getFen()} ${form.elements.turn.value[0]} ${rights} - 0 1`;
  check();
}

/** Returns the FEN in the field if it is valid, and otherwise shows an explanation. */
function check() {
  try {
    const fen = fenOf(readFen(form.elements.fen.value));
    at("problem").textContent = "";
    at("done").disabled = false;
    return fen;
  } catch (error) {
    at("problem").textContent = error.message;
    at("done").disabled = true;
  }
}

/** Shows a FEN. */
function show(fen) {
  const [board, turn = "w", rights = "-"] = fen.split(" ");
  ground.set({ fen: board });
  form.elements.turn.value = turn === "b" ? "black" : "white";
  for (const right of RIGHTS) {
    form.elements[right].disabled = false;
    form.elements[right].checked = rights.includes(right);
  }
  form.elements.fen.value = fen;
  check();
}

form.addEventListener("input", ({ target }) => {
  if (target.name !== "fen") return write();
  const fen = check();
  if (fen) show(fen);
});
form.addEventListener("submit", (event) => {
  // Pressing Enter in the FEN field uses the position.
  if (event.submitter?.value === "cancel") return;
  event.preventDefault();
  finish();
});
function finish() {
  const fen = check();
  if (fen) dialog.close(fen);
}
at("done").addEventListener("click", finish);
at("clear").addEventListener("click", () => {
  ground.set({ fen: "8/8/8/8/8/8/8/8" });
  write();
});
at("initial").addEventListener("click", () => show(INITIAL_FEN));
at("flip").addEventListener("click", () => ground.toggleOrientation());

/** Opens the editor with an existing position; returns the new one, or nothing if the user cancels. */
export function edit(from) {
  dialog.returnValue = "";
  dialog.showModal();
  ground ??= Chessground(at("board"), {
    movable: { free: true, color: "both" },
    draggable: { deleteOnDropOff: true },
    premovable: { enabled: false },
    drawable: { enabled: false },
    highlight: { lastMove: false },
    animation: { enabled: false },
    disableContextMenu: true,
    events: { change: write, select: place },
  });
  palette("white");
  palette("black");
  choose(undefined);
  show(from?.trim() || INITIAL_FEN);
  ground.redrawAll();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue.includes("/") ? dialog.returnValue : undefined), { once: true });
  });
}
