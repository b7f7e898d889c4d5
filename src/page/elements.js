/* Elements */

function make(name, attributes = {}, ...children) {
  const isDrawn = ["svg", "path", "line", "text", "circle", "g", "rect", "use", "title"].includes(name);
  const element = isDrawn
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    // The content security policy forbids styles as attributes.
    if (key === "style") element.style.cssText = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A table, whose empty cells are no headings; the columns whose numbers are in `texts` hold text, the first one always does. */
function table(head, rows, texts = []) {
  const row = (cells, kind) => make("tr", {}, ...cells.map((cell, column) => make(cell === "" ? "td" : kind, texts.includes(column) ? { class: "text" } : {}, cell)));
  return make("table", {}, row(head, "th"), ...rows.map((cells) => row(cells, "td")));
}
