// Elements, and what every part tells the page.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties and children. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** An element of SVG with attributes and children. */
export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

/** Finds the elements of a part by their names: `play-board` is `finder("play")("board")`. */
export const finder = (part) => (name) => document.getElementById(`${part}-${name}`);

/** Says what went wrong above every part; an empty text takes it back. */
export const trouble = (detail) => dispatchEvent(new CustomEvent("trouble", { detail }));

/** Opens a game, as text, in the analysis. */
export const analyse = (detail) => dispatchEvent(new CustomEvent("analyse", { detail }));

/** Reviews a game, as PGN. */
export const review = (detail) => dispatchEvent(new CustomEvent("review", { detail }));

/** Asks before something is lost: whether the user confirms `action`. */
export function confirmed(question, action) {
  const dialog = element("dialog", { className: "confirm" });
  const form = element("form", { method: "dialog" }, element("p", { textContent: question }));
  form.append(
    element("div", { className: "buttons" },
      element("button", { value: "no", textContent: "Cancel", autofocus: true }),
      element("button", { value: "yes", textContent: action, className: "danger" })),
  );
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}

/** Calls `act` once nothing has called it for so many milliseconds. */
export function settled(act, wait) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
}
