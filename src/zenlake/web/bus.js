// The bus, as this page reaches it: over the node's WebSocket; over HTTP what is HTTP's, and all of it where no WebSocket opens.
import { isRecord, list, parsed, text } from "./checked.js";
import { Denied, Remote } from "./remote.js";

let token = sessionStorage.getItem("zenlake-token") || "";
export const setToken = (text) => { token = text; sessionStorage.setItem("zenlake-token", text); };
const headers = (more = {}) => (token ? { ...more, authorization: `Bearer ${token}` } : more);

/** Whether a key can be named over HTTP: browsers take the chunks `.` and `..` of an address away, however they are written, and ask for another key. */
export const hasPath = (key) => !key.split("/").some((chunk) => chunk === "." || chunk === "..");

export function path(key) {
  if (!hasPath(key)) throw new Error(`'${key}' cannot be asked for over HTTP, whose addresses have no '.' and '..' as chunks; get it with zenlake get`);
  return "/" + key.split("/").map(encodeURIComponent).join("/").replaceAll("%40", "@").replaceAll("%24", "$");
}

export class Refused extends Error {
  constructor(code, text) { super(text || `HTTP ${code}`); this.code = code; }
}

async function ask(url, options = {}) {
  const response = await fetch(url, { ...options, headers: headers(options.headers) });
  if (!response.ok) throw new Refused(response.status, (await response.text()).trim());
  return response;
}

// ---------------------------------------------------------------------------------- the socket

const SOCKET = "/@ws";
/** Milliseconds until a WebSocket is tried again where none opened though HTTP answers. */
const AGAIN = 60_000;
let remote = null, opening = null, without = 0;

/** There is no WebSocket to be had here: a proxy between, or too many of them. */
class NoSocket extends Error {}

async function open() {
  if (Date.now() < without) throw new NoSocket();
  try {
    remote = await Remote.to(`${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}${SOCKET}`, token);
    return remote;
  } catch (error) {
    // A browser does not say why. HTTP does, at the same place.
    const answer = await fetch(SOCKET, { headers: headers() });
    if (answer.status === 401 || answer.status === 429) throw new Refused(answer.status, await answer.text());
    without = Date.now() + AGAIN;
    throw new NoSocket(error.message);
  }
}

/** The socket, opened if it is not; one at a time. */
async function connected() {
  if (remote?.open) return remote;
  opening ??= open().finally(() => { opening = null; });
  return opening;
}

/** How the page reaches the bus just now. */
export const way = () => (remote?.open ? "WebSocket" : "HTTP");

/** Close the socket: a page that is left may be kept by the browser, a connection not. */
export const leave = () => { remote?.close(); remote = null; };

/** Do something over the socket, or over HTTP where there is none. */
async function over(socket, http) {
  let to;
  try { to = await connected(); } catch (error) { if (error instanceof Refused) throw error; return http(); }
  try { return await socket(to); } catch (error) { if (error instanceof Denied) throw new Refused(400, error.message); throw error; }
}

// ------------------------------------------------------------------------- asking and publishing

export const status = async () => { const found = parsed(await (await ask("/status")).text()); if (!isRecord(found)) throw new Error("odd answer from /status"); return found; };

/** Rows of an answer over HTTP, as far as they are rows. */
const rowsOf = (json) => list(parsed(json)).filter((row) => isRecord(row) && typeof row.key === "string").map(({ key, value, encoding, timestamp }) => ({ key, value: value ?? null, encoding: text(encoding), timestamp: text(timestamp) || null }));

/** What a lake answers is HTTP's: it takes its time, is large, and is what a download gives too. */
const ofHttp = (key) => key.startsWith("@lake/");
const bytes = (body) => (typeof body === "string" ? new TextEncoder().encode(body) : body);

/** All replies to a selector; `body` travels as the query's payload. */
export async function get(key, parameters = "", body = undefined, signal = undefined) {
  const began = performance.now();
  const http = async () => {
    const url = path(key) + (parameters ? "?" + encodeURIComponent(parameters) : "");
    const response = await ask(url, body === undefined ? { signal } : { method: "POST", body, signal, headers: { "content-type": "text/plain" } });
    return { rows: rowsOf(await response.text()), truncated: response.headers.get("zenlake-truncated") };
  };
  const socket = (to) => to.get(key.replace(/^@\/local(?=\/|$)/, `@/${to.zid}`), { parameters, payload: body === undefined ? undefined : bytes(body), signal });
  const answer = await (ofHttp(key) ? http() : over(socket, http));
  return { ...answer, ms: performance.now() - began };
}

export async function put(key, body, kind) {
  const http = () => ask(path(key), { method: "PUT", body, headers: { "content-type": kind } });
  await (ofHttp(key) ? http() : over((to) => to.put(key, bytes(body), kind), http));
}

export async function remove(key) {
  const http = () => ask(path(key), { method: "DELETE" });
  await (ofHttp(key) ? http() : over((to) => to.delete(key), http));
}

/** What a lake reads in the payload of a sample: {rows, table}. */
export async function decoded(key, bytes, encoding) {
  const response = await ask(path(`@lake/decode/${key}`), { method: "POST", body: bytes, headers: { "content-type": encoding } });
  const [row] = rowsOf(await response.text());
  if (!row) throw new Error("no lake runs here that could read it: `zenlake up` starts one");
  if (row.key === "ERROR") throw new Error(text(row.value?.error, "the lake cannot read it"));
  if (!isRecord(row.value) || !Array.isArray(row.value.rows)) throw new Error("odd answer from the lake");
  return { rows: row.value.rows, table: typeof row.value.table === "string" ? row.value.table : null };
}

// ------------------------------------------------------------------------------------ listening

/** Samples of a key expression until what is returned is called; payloads longer than `cut` are left out.
 *  `on.event` hears samples, `on.skipped` how many were left out, `on.token` tokens that come and go, `on.state` when it is lost and found. */
export function subscribe(key, cut, on) {
  const ending = new AbortController(), signal = ending.signal;
  const run = async () => {
    for (let pause = 250; !signal.aborted; pause = Math.min(pause * 2, 4000)) {
      const began = () => { on.state(true); pause = 125; };
      let why = "";
      try {
        const to = await connected();
        if (!signal.aborted) await heard(to, key, cut, on, signal, began);
      } catch (error) {
        if (error instanceof NoSocket) await events(key, cut, on, signal, began).catch((found) => { why = found.code ?? ""; });
        else why = error.code ?? error.message;
      }
      if (signal.aborted) return;
      on.state(false, String(why));
      if (why === 401) return;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  };
  run();
  return () => ending.abort();
}

/** Listen over the socket, until it is gone or nobody wants to hear more. */
async function heard(to, key, cut, on, signal, began) {
  const ends = [await to.subscribe(key, cut, (samples, missed) => {
    if (missed) on.skipped(missed);
    for (const sample of samples) on.event(sample);
  })];
  began();
  // Who may not see tokens still sees samples.
  await to.liveliness(key, ([token]) => on.token(token.key, !token.deleted)).then((end) => ends.push(end), () => {});
  if (!signal.aborted) await Promise.race([to.gone, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
  for (const end of ends) end();
}

/** Listen to server-sent events, until they end. */
async function events(key, cut, on, signal, began) {
  const response = await ask(`${path(key)}?_cut=${cut}`, { signal, headers: { accept: "text/event-stream" } });
  began();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      let kind = "", data = "";
      for (const line of part.split("\n")) {
        if (line.startsWith("event: ")) kind = line.slice(7);
        else if (line.startsWith("data: ")) data = line.slice(6);
      }
      if (!data) continue;
      const found = parsed(data);
      if (kind === "SKIPPED") on.skipped(found.skipped ?? 0);
      else on.event({ ...found, deleted: kind === "DELETE" });
    }
  }
}
