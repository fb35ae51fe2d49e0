// Answers of others, checked before they are drawn: anybody on the bus may answer anything.
import { html, useEffect, useErrorBoundary } from "./vendor/htm-preact.js";

/** How deep a value is shown, and how long a text in it. */
export const MOST_DEPTH = 60, MOST_TEXT = 100_000;
/** The most chunks of a key that are levels of a tree; the others are one. */
export const MOST_CHUNKS = 64;

/** The value of a JSON text: everything that comes from outside comes through here or, if it was no JSON, through `bounded`. */
export const parsed = (json) => bounded(JSON.parse(json));

/** Whether a name stands twice in one object of a text that is JSON: then nobody can say which value is meant. */
function namedTwice(json) {
  const open = [];
  for (const [part] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g)) {
    const within = open.at(-1);
    if (part === "{") open.push({ names: new Set(), name: null });
    else if (part === "[") open.push(null);
    else if (part === "}" || part === "]") open.pop();
    else if (part[0] === '"' && within) within.name ??= JSON.parse(part);
    else if (part === "," && within) within.name = null;
    else if (part === ":" && within) { if (within.names.has(within.name)) return true; within.names.add(within.name); }
  }
  return false;
}

/** The value of a text that is JSON, with finite numbers and no name twice; undefined if it is none. */
export function strictly(json) {
  try {
    const value = JSON.parse(json, (_, one) => { if (one === Infinity || one === -Infinity) throw new RangeError("beyond all doubles"); return one; });
    return namedTwice(json) ? undefined : bounded(value);
  } catch { return undefined; }
}

/** A value that was just parsed, cut where it is too deep or a text in it too long, and not to be mistaken for an element. */
export function bounded(value, depth = 0) {
  if (typeof value === "string") return value.length > MOST_TEXT ? `${value.slice(0, MOST_TEXT)}… (${value.length} characters)` : value;
  if (value === null || typeof value !== "object") return value;
  if (depth >= MOST_DEPTH) return "… (nested too deep)";
  for (const name of Object.keys(value)) assign(value, name, bounded(value[name], depth + 1));
  // Preact takes an object with a `__b` above 0 for an element, with whatever `type` and `props` it has, and writes `__b` where there is none.
  if (!Array.isArray(value)) Object.defineProperty(value, "__b", { value: 0, writable: false, enumerable: false });
  return value;
}

/** Set a name of an object, also one such as `__proto__`, which is a name like others. */
export function assign(of, name, value) {
  if (Object.hasOwn(of, name)) of[name] = value;
  else Object.defineProperty(of, name, { value, writable: true, enumerable: true, configurable: true });
}

export const isRecord = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
/** The value if it is of the kind, else an empty one of that kind. */
export const record = (value) => (isRecord(value) ? value : {});
export const list = (value) => (Array.isArray(value) ? value : []);
export const records = (value) => list(value).filter(isRecord);
export const text = (value, other = "") => (typeof value === "string" ? value : typeof value === "number" ? String(value) : other);
export const texts = (value) => list(value).filter((one) => typeof one === "string");
export const number = (value, other = 0) => (typeof value === "number" && Number.isFinite(value) ? value : other);
/** A time as it is written; nothing if it is none. */
export const iso = (at) => { const time = new Date(at); return Number.isNaN(time.getTime()) ? "" : time.toISOString(); };

/** The names of columns in what a lake says of a table: a list of names or records, or a record. */
export const columnsOf = (facts) => texts(Array.isArray(facts?.columns) ? facts.columns.map((one) => (isRecord(one) ? one.name : Array.isArray(one) ? one[0] : one)) : Object.keys(record(facts?.columns)));

/** What a node says of itself, or null if it is nothing that could be drawn. */
export function nodeOf(about) {
  if (!isRecord(about) || typeof about.zid !== "string" || !about.zid) return null;
  if (about.sessions !== undefined && !Array.isArray(about.sessions)) return null;
  const sessions = list(about.sessions), good = records(sessions).filter((one) => typeof (one.peer ?? one.zid) === "string");
  if (good.length !== sessions.length) return null;
  return { zid: about.zid, name: text(record(about.metadata).name) || undefined, sessions: good.map((one) => ({ ...one, peer: one.peer ?? one.zid, whatami: text(one.whatami, "client") })) };
}

/** A value as text, cut where it is too long. */
export const written = (value, indent = 0) => bounded(JSON.stringify(value, null, indent) ?? "");

/** Milliseconds until what could not be drawn is tried again. */
const AGAIN = 5000;

/** Draws what is inside; what cannot be drawn spoils this alone, and says so. */
export function Guard({ name, children }) {
  const [error, reset] = useErrorBoundary();
  useEffect(() => { const timer = error && setTimeout(reset, AGAIN); return () => clearTimeout(timer); }, [error]);
  if (error) return html`<p class="bad" role="alert">odd answer${name ? ` in ${name}` : ""}: ${String(error?.message ?? error).slice(0, 200)}</p>`;
  return children;
}

/** Draws what a function gives, so that a guard around it sees what goes wrong there. */
export const Drawn = ({ by }) => by();
