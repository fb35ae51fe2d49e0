// The remote API over one WebSocket, as zenoh-ts speaks it, as far as this page needs it.

import { parsed } from "./checked.js";

export const ENCODINGS = [
  "zenoh/bytes", "zenoh/string", "zenoh/serialized", "application/octet-stream", "text/plain",
  "application/json", "text/json", "application/cdr", "application/cbor", "application/yaml",
  "text/yaml", "text/json5", "application/python-serialized-object", "application/protobuf",
  "application/java-serialized-object", "application/openmetrics-text", "image/png", "image/jpeg",
  "image/gif", "image/bmp", "image/webp", "application/xml", "application/x-www-form-urlencoded",
  "text/html", "text/xml", "text/css", "text/javascript", "text/markdown", "text/csv",
  "application/sql", "application/coap-payload", "application/json-patch+json",
  "application/json-seq", "application/jsonpath", "application/jwt", "application/mp4",
  "application/soap+xml", "application/yang", "audio/aac", "audio/flac", "audio/mp4", "audio/ogg",
  "audio/vorbis", "video/h261", "video/h263", "video/h264", "video/h265", "video/h266",
  "video/mp4", "video/ogg", "video/raw", "video/vp8", "video/vp9",
];
const CUSTOM = 0xffff;

// Messages by number: what this page says, and what it hears.
const SAY = { undeclareSubscriber: 3, declareLivelinessSubscriber: 10, getSessionInfo: 12, put: 14, delete: 15, get: 18, ping: 25, declareCutSubscriber: 100 };
const HEAR = { error: 2, sample: 5, reply: 7, final: 8, samples: 100 };
const ANSWER = 0x80;
const ANY = 2;
const PUT_QUALITY = 0xa5, GET_QUALITY = 0xad;
const LATEST = 0x1c, ALL_REPLIES = 0x14;

/** How long an answer may take, and how often the page asks whether the node is there. */
const PATIENCE = 10_000, EVERY = 15_000;
/** The most samples that one answer may have on a page. */
export const MOST = 100_000;

const encoder = new TextEncoder(), decoder = new TextDecoder();

// ------------------------------------------------------------------------------------- writing

const u8 = (n) => [n];
const u16 = (n) => [n & 255, n >> 8];
const u32 = (n) => [n & 255, (n >>> 8) & 255, (n >>> 16) & 255, n >>> 24];
const length = (n) => { const out = []; for (; n >= 0x80; n = Math.floor(n / 0x80)) out.push((n & 0x7f) | 0x80); out.push(n); return out; };
const bytes = (of) => [length(of.length), of];
const text = (of) => bytes(encoder.encode(of));
const none = [0];
const some = (parts) => [[1], ...parts];

/** The number of an encoding and its schema, or all of it as a schema. */
function encoding(name) {
  const at = name.indexOf(";"), number = ENCODINGS.indexOf(at < 0 ? name : name.slice(0, at));
  return number < 0 ? [u16(CUSTOM), ...text(name)] : [u16(number), ...text(at < 0 ? "" : name.slice(at + 1))];
}

function message(number, sequence, parts) {
  const all = [[number | ANSWER], u32(sequence), ...parts];
  const made = new Uint8Array(all.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of all) { made.set(part, at); at += part.length; }
  return made;
}

// ------------------------------------------------------------------------------------- reading

class Reader {
  constructor(buffer) { this.bytes = new Uint8Array(buffer); this.view = new DataView(buffer); this.at = 0; }
  u8() { return this.view.getUint8(this.at++); }
  u16() { this.at += 2; return this.view.getUint16(this.at - 2, true); }
  u32() { this.at += 4; return this.view.getUint32(this.at - 4, true); }
  u64() { this.at += 8; return this.view.getBigUint64(this.at - 8, true); }
  length() { let n = 0, by = 1, byte; do { byte = this.u8(); n += (byte & 0x7f) * by; by *= 0x80; } while (byte >= 0x80); return n; }
  part() { const n = this.length(), from = this.at; if (from + n > this.bytes.length) throw new RangeError("a message ends too early"); this.at += n; return this.bytes.subarray(from, from + n); }
  /** Bytes of their own: a part would keep the whole message in memory. */
  own() { return this.part().slice(); }
  text() { return decoder.decode(this.part()); }
  option(read) { return this.u8() ? read.call(this) : null; }
  encoding() { const number = this.u16(), schema = this.text(), name = ENCODINGS[number] ?? `unknown(${number})`; return number === CUSTOM ? schema : schema ? `${name};${schema}` : name; }
  zid() { const text = [...this.part()].reverse().map((b) => b.toString(16).padStart(2, "0")).join("").replace(/^0+/, ""); return text || "0"; }
  stamp() { return `${this.u64()}/${this.zid()}`; }
  sample() {
    const key = this.text(), payload = this.own(), deleted = this.u8() === 1, name = this.encoding();
    this.option(this.part);
    const timestamp = this.option(this.stamp);
    this.u8();
    return new Sample(key, payload, name, timestamp, deleted);
  }
}

/** Encodings whose values are JSON, and those whose values are text. */
export const JSONS = ["application/json", "text/json", "text/json5"], TEXTS = ["text/plain", "zenoh/string"];
const base64 = (of) => { let out = ""; for (let at = 0; at < of.length; at += 0x8000) out += String.fromCharCode(...of.subarray(at, at + 0x8000)); return btoa(out); };

/** A sample or a reply, in the shape that HTTP gives it: `value` is read when somebody looks. */
export class Sample {
  #value;
  constructor(key, payload, encoding, timestamp = null, deleted = false) { Object.assign(this, { key, payload, encoding, timestamp, deleted }); }
  get value() { return (this.#value ??= this.#read()); }
  #read() {
    if (!this.payload.length) return null;
    if (JSONS.includes(this.encoding)) { try { return parsed(decoder.decode(this.payload)); } catch { return base64(this.payload); } }
    if (TEXTS.includes(this.encoding)) { try { return new TextDecoder("utf-8", { fatal: true }).decode(this.payload); } catch { return base64(this.payload); } }
    return base64(this.payload);
  }
}

// ---------------------------------------------------------------------------------- the socket

/** The node said no; the page stays connected. */
export class Denied extends Error {}

/** A WebSocket to the node. `gone` is a promise that ends with it. */
export class Remote {
  #socket; #next = 0; #asked = new Map(); #heard = new Map(); #gets = new Map(); #left; #watch = 0;
  constructor(socket) {
    this.#socket = socket;
    this.open = true;
    this.gone = new Promise((resolve) => { this.#left = resolve; });
    socket.onmessage = (event) => this.#hear(new Reader(event.data));
    socket.onclose = () => this.#end();
  }

  /** Connect, with a token if there is one; a promise of a node that has answered. */
  static async to(url, token) {
    // A name of a sub-protocol is all that a browser can show; not every letter of a token may be in one.
    const shown = token ? ["zenlake.bearer64." + base64(encoder.encode(token)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")] : [];
    const socket = new WebSocket(url, [...shown, "zenlake"]);
    socket.binaryType = "arraybuffer";
    const made = new Remote(socket);
    await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error("no WebSocket within five seconds")), 5000);
      socket.onopen = () => { clearTimeout(late); resolve(); };
      made.gone.then(() => { clearTimeout(late); reject(new Error("the WebSocket was not accepted")); });
    }).catch((error) => { made.close(); throw error; });
    made.zid = (await made.#ask(SAY.getSessionInfo)).zid();
    made.#watch = setInterval(() => made.#ask(SAY.ping).catch(() => made.close()), EVERY);
    return made;
  }

  close() { this.#socket.close(); this.#end(); }

  #end() {
    if (!this.open) return;
    this.open = false;
    clearInterval(this.#watch);
    for (const one of [...this.#asked.values(), ...this.#gets.values()]) one.reject(new Error("the connection was lost"));
    this.#asked.clear(); this.#gets.clear(); this.#heard.clear();
    this.#left();
  }

  /** Send a message that wants an answer; a promise of the answer. */
  #ask(number, ...parts) {
    const sequence = this.#next = (this.#next + 1) >>> 0;
    return new Promise((resolve, reject) => {
      if (!this.open) { reject(new Error("the connection was lost")); return; }
      const late = setTimeout(() => { this.#asked.delete(sequence); reject(new Error("the node does not answer")); }, PATIENCE);
      const over = (act) => (what) => { clearTimeout(late); act(what); };
      this.#asked.set(sequence, { resolve: over(resolve), reject: over(reject) });
      this.#socket.send(message(number, sequence, parts));
    });
  }

  #hear(r) {
    const first = r.u8(), number = first & ~ANSWER;
    if (first & ANSWER) {
      const sequence = r.u32(), one = this.#asked.get(sequence);
      this.#asked.delete(sequence);
      if (number === HEAR.error) one?.reject(new Denied(r.text())); else one?.resolve(r);
      return;
    }
    const id = r.u32();
    if (number === HEAR.samples) {
      const heard = this.#heard.get(id), missed = r.u32(), samples = [];
      for (let n = r.length(); n > 0; n--) { const sample = r.sample(), cut = r.u32(); if (cut) sample.cut = cut; samples.push(sample); }
      heard?.(samples, missed);
    } else if (number === HEAR.sample) this.#heard.get(id)?.([r.sample()], 0);
    else if (number === HEAR.reply) this.#gets.get(id)?.reply(r.u8() ? r.sample() : new Sample("ERROR", r.own(), r.encoding()));
    else if (number === HEAR.final) { this.#gets.get(id)?.resolve(); this.#gets.delete(id); }
  }

  async #declare(number, heard, ...parts) {
    const id = this.#next = (this.#next + 1) >>> 0;
    this.#heard.set(id, heard);
    try { await this.#ask(number, u32(id), ...parts); } catch (error) { this.#heard.delete(id); throw error; }
    return () => { this.#heard.delete(id); if (this.open) this.#ask(SAY.undeclareSubscriber, u32(id)).catch(() => {}); };
  }

  /** `heard(samples, missed)` for all samples of a key expression, without payloads longer than `cut`; a promise of what ends it. */
  subscribe(key, cut, heard) { return this.#declare(SAY.declareCutSubscriber, heard, ...text(key), u8(ANY), u32(cut)); }

  /** `heard(samples)` for tokens that there are and that come (put) and go (delete). */
  liveliness(key, heard) { return this.#declare(SAY.declareLivelinessSubscriber, heard, ...text(key), u8(1)); }

  put(key, payload, name) { return this.#ask(SAY.put, ...text(key), ...bytes(payload), ...encoding(name), none, none, u8(PUT_QUALITY)); }
  delete(key) { return this.#ask(SAY.delete, ...text(key), none, none, u8(PUT_QUALITY)); }

  /** All replies: {rows, truncated}. `asked`: parameters, payload and its encoding, seconds, and a signal. */
  async get(key, { parameters = "", payload, kind = "text/plain", seconds = 10, signal } = {}) {
    const id = this.#next = (this.#next + 1) >>> 0, rows = [];
    let truncated = null;
    const over = new Promise((resolve, reject) => {
      const reply = (row) => { if (rows.length < MOST) rows.push(row); else { truncated = `rows; the page shows ${MOST}`; resolve(); this.#gets.delete(id); } };
      this.#gets.set(id, { reply, resolve, reject });
      signal?.addEventListener("abort", () => { this.#gets.delete(id); reject(signal.reason); });
    });
    over.catch(() => {});
    const body = payload === undefined ? [none, none] : [...some(bytes(payload)), ...some(encoding(kind))];
    const settings = /(^|;)_time(=|;|$)/.test(parameters) ? ALL_REPLIES : LATEST;
    try {
      await this.#ask(SAY.get, u32(id), ...text(key), ...text(parameters), ...body, none, u8(GET_QUALITY), u8(settings), u32(seconds * 1000));
      await over;
    } finally { this.#gets.delete(id); }
    return { rows, truncated };
  }
}
