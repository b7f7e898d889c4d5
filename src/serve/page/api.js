// Requests to the server.

import { language, message, t } from "./messages.js";

/** What the server's English details say, for readers of other languages, by the type of the problem. The details of
 * other types are needed to correct a request. */
const SENTENCES = {
  "/problems/too-many-requests": message("The server has too much to do, or you asked too often: try again later."),
  "/problems/unavailable": message("The server is starting or stopping: try again in a moment."),
  "/problems/full": message("The server has no room left for this."),
  "/problems/too-large": message("This is too long for the server."),
  "/problems/unauthorised": message("The server does not know this token."),
  "/problems/internal": message("The server made a mistake."),
};

/** Returns what a problem says, in the reader's language if possible. */
function said(problem) {
  const sentence = language !== "en" && SENTENCES[problem.type];
  return sentence ? t(sentence) : problem.detail?.replace(/`([^`]*)`/g, "“$1”");
}

/** An error response from the server. */
export class ServerError extends Error {
  constructor(status, problem) {
    super((problem && said(problem)) ?? t("the server answers {status}", { status }));
    this.status = status;
    this.field = problem?.field;
  }
}

/** The token, under which a reload finds it if the browser stores anything. */
const TOKEN = "token";
let token = storedToken();

function storedToken() {
  try {
    return sessionStorage.getItem(TOKEN);
  } catch {
    return null;
  }
}

function setToken(given) {
  token = given;
  try {
    sessionStorage.setItem(TOKEN, given);
  } catch (error) {
    console.warn(error.message);
  }
}

/** Says what the browser only calls a failed request. */
function unreachable(error) {
  throw isAbort(error) ? error : new Error(t("The server does not answer: it may have been stopped."));
}

async function ask(path, options, isSecond = false) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await fetch(path, { ...options, headers }).catch(unreachable);
  if (response.status === 401 && !isSecond) {
    const given = prompt(t("This server asks for a token:"));
    if (given) {
      setToken(given.trim());
      return ask(path, options, true);
    }
  }
  if (!response.ok) {
    throw new ServerError(response.status, await response.json().catch(() => null));
  }
  return response;
}

const written = (body, accept, signal) => ({
  method: "POST",
  headers: { "Content-Type": "application/json", Accept: accept },
  body: JSON.stringify(body),
  signal,
});

export const get = async (path) => (await ask(path, {})).json();

export const post = async (path, body, signal) =>
  (await ask(path, written(body, "application/json", signal))).json();

/** Returns the HTML page in the response to a request. */
export const html = async (path, body) => (await ask(path, written(body, "text/html"))).text();

/** Yields the pieces of a stream as they arrive. */
export async function* stream(path, body, signal) {
  const response = await ask(path, written(body, "application/x-ndjson", signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(unreachable);
      if (done) return;
      const lines = (text + value).split("\n");
      text = lines.pop();
      // An empty line is a keep-alive from the server.
      for (const line of lines) if (line) yield JSON.parse(line);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Returns whether an error only means that the request was aborted. */
export const isAbort = (error) => error.name === "AbortError";

/** Returns the server's agents, networks and limits; waits while the server loads them. */
export async function agents() {
  for (;;) {
    try {
      return await get("/v1/agents");
    } catch (error) {
      if (error.status !== 503) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}
