// The documentation of the API, generated from its OpenAPI description.

import { get, post } from "./api.js";
import { element } from "./dom.js";

/** The endpoints that most people look for, in this order, with a body to try. */
const EXAMPLES = {
  "/v1/move": { moves: ["e4", "e5"], agent: "human", elo: 1400 },
  "/v1/analyse": { moves: ["e4", "c5"], lines: 2, limits: { nodes: 400 } },
  "/v1/people": { moves: ["e4", "e5", "Nf3"] },
  "/v1/eval": { fen: "8/8/8/4k3/8/8/4P3/4K3 w - - 0 1" },
  "/v1/generate": { moves: ["d4"], games: 1, white_elo: 1800, black_elo: 1800 },
  "/v1/explain": { moves: ["e4"], move: "c5", attention: false },
  "/v1/attention": { layer: 1, head: 1 },
};
/** Maximum number of characters of a response that are shown. */
const MOST = 4000;

const api = await get("/openapi.json");
const nameOf = (schema) => schema?.$ref?.split("/").pop();

/** Formats text in which parts in backticks are code. */
const rich = (text = "") =>
  text.split("`").map((part, index) => (index % 2 ? element("code", { textContent: part }) : part));

/** Describes a schema in a word, with links to named schemas. */
function kind(schema) {
  if (!schema) return "";
  const name = nameOf(schema);
  if (name) return element("a", { href: `#${name}`, textContent: name });
  const several = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  if (several) {
    const parts = several.filter((it) => it.type !== "null").flatMap((it) => [" or ", kind(it)]);
    return element("span", {}, ...parts.slice(1));
  }
  if (schema.enum) return schema.enum.join(", ");
  const types = [schema.type ?? "anything"].flat().filter((it) => it !== "null");
  if (types[0] === "array") return element("span", {}, "list of ", kind(schema.items));
  return types.join(" or ");
}

/** Returns the fields of an object, including those of its parts. */
function fields(schema) {
  const own = Object.entries(schema.properties ?? {}).map(([name, it]) => ({
    name,
    schema: it,
    required: schema.required?.includes(name),
  }));
  const parts = (schema.allOf ?? []).map((it) => api.components.schemas[nameOf(it)] ?? it);
  return [...parts.flatMap(fields), ...own];
}

function fieldTable(rows) {
  const head = ["field", "type", "meaning"].map((textContent) => element("th", { textContent }));
  const meaning = ({ schema, description }) =>
    description ?? schema.description ?? schema.oneOf?.map((of) => of.description).find(Boolean);
  const made = rows.map((row) =>
    element("tr", {},
      element("td", {}, element("code", { textContent: row.name }), row.required ? " (required)" : ""),
      element("td", {}, kind(row.schema)),
      element("td", {}, ...rich(meaning(row)))));
  return element("table", {}, element("tr", {}, ...head), ...made);
}

const content = (of) =>
  Object.entries(of ?? {}).map(([type, { schema }]) =>
    element("li", {}, element("code", { textContent: type }), ": ", kind(schema)));

/** Shows a request as a command, with a button that sends it. */
function example(path, body) {
  const text = JSON.stringify(body);
  const command = `curl ${location.origin}${path} \\\n  -H 'Content-Type: application/json' -d '${text}'`;
  const answer = element("pre", { hidden: true, tabIndex: 0 });
  const button = element("button", { type: "button", textContent: "Try it" });
  button.addEventListener("click", async () => {
    button.disabled = true;
    answer.hidden = false;
    answer.textContent = "…";
    try {
      const written = JSON.stringify(await post(path, body), null, 2);
      answer.textContent = written.length > MOST ? `${written.slice(0, MOST)}\n…` : written;
    } catch (error) {
      answer.textContent = error.message;
    }
    button.disabled = false;
  });
  return [element("pre", { textContent: command, tabIndex: 0 }), button, answer];
}

function operation(path, method, it) {
  const section = element("section", { id: it.operationId });
  section.append(element("h2", {}, element("code", { textContent: `${method.toUpperCase()} ${path}` })));
  section.append(element("p", {}, ...rich([it.summary, it.description].filter(Boolean).join(" "))));
  if (EXAMPLES[path]) section.append(...example(path, EXAMPLES[path]));
  if (it.parameters) section.append(fieldTable(it.parameters));
  if (it.requestBody) section.append(element("p", { textContent: "Body" }), element("ul", {}, ...content(it.requestBody.content)));
  for (const [status, { description, content: of }] of Object.entries(it.responses)) {
    if (isCommon(of)) continue;
    section.append(element("p", {}, element("b", { textContent: status }), " ", ...rich(description)), element("ul", {}, ...content(of)));
  }
  return section;
}

/** Returns whether a response is one of the errors that are described once for all endpoints. */
const isCommon = (of) => Boolean(of?.["application/problem+json"]);

/** Returns every error once. */
function problems(operations) {
  const all = operations.flatMap(([, , { responses }]) => Object.entries(responses));
  const common = new Map(all.filter(([, { content: of }]) => isCommon(of)).map(([status, { description }]) => [status, description]));
  const rows = [...common].sort().map(([status, description]) =>
    element("tr", {}, element("td", {}, element("b", { textContent: status })), element("td", {}, ...rich(description))));
  return element("section", { id: "errors" },
    element("h2", { textContent: "Errors" }),
    element("p", {}, ...rich("Errors are returned as `application/problem+json`, a "), kind({ $ref: "/Problem" }), "."),
    element("table", {}, ...rows));
}

function type(name, schema) {
  const parts = [element("h3", { id: name, textContent: name }), element("p", {}, ...rich(schema.description))];
  const variants = (schema.oneOf ?? []).flatMap((it) => it.enum ?? []);
  const values = schema.enum ?? variants;
  if (values.length) parts.push(element("p", { textContent: values.join(", ") }));
  else if (schema.oneOf) parts.push(element("p", {}, kind(schema)));
  const rows = fields(schema);
  if (rows.length) parts.push(fieldTable(rows));
  return parts;
}

/** Sorts endpoints with examples first, followed by the other API endpoints. */
function place([path]) {
  const known = Object.keys(EXAMPLES).indexOf(path);
  return known >= 0 ? known : path.startsWith("/v1/") ? 50 : path.startsWith("/api/") ? 60 : 70;
}

const operations = Object.entries(api.paths)
  .flatMap(([path, methods]) => Object.entries(methods).map(([method, it]) => [path, method, it]))
  .sort((one, other) => place(one) - place(other));
const contents = operations.map(([path, , { operationId }]) => element("li", {}, element("a", { href: `#${operationId}`, textContent: path })));
document.getElementById("docs").replaceChildren(
  element("p", {}, ...rich(api.info.description)),
  element("ul", { className: "contents" }, ...contents),
  ...operations.map((it) => operation(...it)),
  problems(operations),
  element("h2", { textContent: "Types" }),
  ...Object.entries(api.components.schemas).flatMap(([name, schema]) => type(name, schema)),
);
document.getElementById(location.hash.slice(1))?.scrollIntoView();
document.body.dataset.ready = "true";
