// The documentation of the API, made of its description.

import { get } from "./api.js";

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const api = await get("/openapi.json");
const nameOf = (schema) => schema?.$ref?.split("/").pop();

/** A schema in a word, with links to those that have a name. */
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

/** Fields of an object, those of its parts included. */
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
  return element("table", {}, element("tr", {}, ...head), ...rows.map(({ name, schema, required, description }) =>
    element("tr", {},
      element("td", {}, element("code", { textContent: name }), required ? " (required)" : ""),
      element("td", {}, kind(schema)),
      element("td", { textContent: description ?? schema.description ?? schema.oneOf?.map((of) => of.description).find(Boolean) ?? "" }),
    ),
  ));
}

function content(of) {
  return Object.entries(of ?? {}).flatMap(([type, { schema }]) => [
    element("li", {}, element("code", { textContent: type }), ": ", kind(schema)),
  ]);
}

function operation(path, method, it) {
  const section = element("section", { id: it.operationId });
  section.append(element("h2", {}, element("code", { textContent: `${method.toUpperCase()} ${path}` })));
  section.append(element("p", { textContent: [it.summary, it.description].filter(Boolean).join(" ") }));
  if (it.parameters) {
    section.append(fieldTable(it.parameters.map(({ name, schema, required, description }) => ({ name, schema, required, description }))));
  }
  if (it.requestBody) section.append(element("p", { textContent: "Body" }), element("ul", {}, ...content(it.requestBody.content)));
  for (const [status, { description, content: of }] of Object.entries(it.responses)) {
    section.append(element("p", {}, element("b", { textContent: status }), ` ${description}`), element("ul", {}, ...content(of)));
  }
  return section;
}

const docs = document.getElementById("docs");
docs.replaceChildren(element("p", { textContent: api.info.description }));
for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, it] of Object.entries(methods)) docs.append(operation(path, method, it));
}
docs.append(element("h2", { textContent: "Types" }));
for (const [name, schema] of Object.entries(api.components.schemas)) {
  docs.append(element("h3", { id: name, textContent: name }));
  docs.append(element("p", { textContent: schema.description ?? "" }));
  const variants = (schema.oneOf ?? []).flatMap((it) => it.enum ?? []);
  if (schema.enum ?? variants.length) docs.append(element("p", { textContent: (schema.enum ?? variants).join(", ") }));
  else if (schema.oneOf) docs.append(element("p", {}, kind(schema)));
  const rows = fields(schema);
  if (rows.length) docs.append(fieldTable(rows));
}
document.body.dataset.ready = "true";
