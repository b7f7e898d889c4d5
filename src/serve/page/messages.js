// The page's words in the reader's language. A message's key is its English text; a note after "|" tells apart messages
// that read alike only in English.

const LANGUAGES = ["en", "de", "es", "fr"];

/** Returns the language that the settings name, if they do. */
function chosen() {
  try {
    return JSON.parse(localStorage.getItem("settings"))?.language;
  } catch {
    return undefined;
  }
}

const wanted = [chosen(), ...navigator.languages].map((it) => String(it).slice(0, 2).toLowerCase());

/** The language of the page. */
export let language = wanted.find((it) => LANGUAGES.includes(it)) ?? "en";
/** The translations by message. English needs none. */
let translations = {};
try {
  if (language !== "en") translations = (await import(`./messages_${language}.js`)).default;
} catch {
  // The page remains usable.
  language = "en";
}
/** The language with the browser's region, for dates and numbers. */
export const locale = navigator.language.startsWith(language) ? navigator.language : language;

/** Returns a message in the page's language, with values for the names in braces. */
export function t(message, values = {}) {
  const text = translations[message] ?? message.replace(/\|.*/, "");
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** Marks a text as a message that `t` translates later. */
export const message = (text) => text;

const rules = new Intl.PluralRules(language);
/** Returns the form that goes with a count. */
export const plural = (count, one, other) => (rules.select(count) === "one" ? one : other);

/** Formats a whole number. */
export const number = (value) => value.toLocaleString(locale);

/** Translates the texts of the document, except those in elements with `translate="no"`. `data-about` is the note on an
 * element's message. */
function translateDocument() {
  document.documentElement.lang = language;
  if (language === "en") return;
  const translated = (text, element) => {
    const bare = text.trim().replace(/\s+/g, " ");
    const { about } = element.dataset;
    return /\p{L}/u.test(bare) ? text.replace(text.trim(), () => t(about ? `${bare}|${about}` : bare)) : text;
  };
  for (const element of document.body.querySelectorAll("*")) {
    if (element.closest("[translate=no]")) continue;
    for (const node of element.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) node.data = translated(node.data, element);
    }
    for (const name of ["aria-label", "title", "placeholder"]) {
      if (element.hasAttribute(name)) element.setAttribute(name, translated(element.getAttribute(name), element));
    }
  }
}
translateDocument();
