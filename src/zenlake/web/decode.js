// Values as people read them: JSON, CBOR, text, numbers, images, and hex with the reason.

import { assign, bounded, strictly } from "./checked.js";
import { JSONS, TEXTS } from "./remote.js";

export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

const hex = (bytes, most = 512) => {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, most); at += 16) {
    const part = [...bytes.slice(at, at + 16)];
    const shown = part.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join("");
    lines.push(at.toString(16).padStart(4, "0") + "  " + part.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(48) + " " + shown);
  }
  return lines.join("\n") + (bytes.length > most ? `\n… ${bytes.length} bytes` : "");
};

const half = (n) => { const sign = n & 0x8000 ? -1 : 1, power = (n >> 10) & 31, part = n & 1023; return sign * (power === 0 ? part * 2 ** -24 : power === 31 ? (part ? NaN : Infinity) : (1024 + part) * 2 ** (power - 25)); };
const BREAK = Symbol("break");

function cbor(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  /** How much follows; Infinity: until a break. */
  const length = (low) => {
    if (low < 24) return low;
    if (low === 24) return view.getUint8(at++);
    if (low === 25) { at += 2; return view.getUint16(at - 2); }
    if (low === 26) { at += 4; return view.getUint32(at - 4); }
    if (low === 27) { at += 8; return Number(view.getBigUint64(at - 8)); }
    if (low === 31) return Infinity;
    throw new Error("a length that is reserved");
  };
  const take = (many) => { const part = bytes.slice(at, at + many); if (part.length < many) throw new Error("it ends too early"); at += many; return part; };
  const read = (depth) => {
    if (depth > 60) throw new Error("it is nested too deep");
    if (at >= bytes.length) throw new Error("it ends too early");
    const first = view.getUint8(at++), major = first >> 5, low = first & 31;
    if (major === 7) {
      if (low === 20) return false; if (low === 21) return true; if (low === 22 || low === 23) return null;
      if (low === 25) { at += 2; return half(view.getUint16(at - 2)); }
      if (low === 26) { at += 4; return view.getFloat32(at - 4); }
      if (low === 27) { at += 8; return view.getFloat64(at - 8); }
      if (low === 31) return BREAK;
      throw new Error("a simple value that is not known");
    }
    const n = length(low);
    if (n === Infinity && (major < 2 || major === 6)) throw new Error("a number or tag without an end");
    const item = () => { const found = read(depth + 1); if (found === BREAK) throw new Error("a break that ends nothing"); return found; };
    /** `n` items, or all before the break. */
    const items = function* (one) { for (let i = 0; i < n; i++) { if (n === Infinity) { const next = read(depth + 1); if (next === BREAK) return; yield one(next); } else yield one(item()); } };
    if (major === 0) return n;
    if (major === 1) return -1 - n;
    if (major === 2) return n === Infinity ? "0x" + [...items((part) => String(part).slice(2))].join("") : "0x" + [...take(n)].map((b) => b.toString(16).padStart(2, "0")).join("");
    if (major === 3) return n === Infinity ? [...items(String)].join("") : new TextDecoder().decode(take(n));
    if (major === 4) return [...items((one) => one)];
    if (major === 5) { const found = {}; for (const name of items((one) => one)) assign(found, String(name), item()); return found; }
    return item();
  };
  const value = read(0);
  if (value === BREAK) throw new Error("a break that ends nothing");
  if (at !== bytes.length) throw new Error("bytes are left over");
  return value;
}

const NUMBER = /^[+-]?(\d+|(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?)$/, MOST_DIGITS = 400;
/** The number that a text spells; null if it spells none, or one that would be shown as another. */
const numberOf = (digits) => {
  if (digits.length > MOST_DIGITS || !NUMBER.test(digits)) return null;
  const value = Number(digits);
  return Number.isFinite(value) && (Number.isSafeInteger(value) || !/^[+-]?\d+$/.test(digits)) ? value : null;
};

/** What a payload is whose publisher named no encoding, by its bytes alone: the rule that the lake has, too. */
function implied(bytes) {
  let text;
  try { text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes); } catch { return null; }
  const inner = text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, "");
  const value = /^[[{]/.test(inner) ? strictly(text) : numberOf(inner);
  return value === undefined || value === null ? { kind: "text", text } : { kind: "json", value };
}

/** The payload of a sample: as it came over the WebSocket, or as HTTP writes what is no text. */
const payloadOf = (sample) => sample.payload ?? bytesOf(sample.value);

/** {kind: "json"|"text"|"image"|"hex"|"cut", …} of a sample, whichever way it came. */
export function decode(sample) {
  const { encoding } = sample, name = (encoding || "").split(";")[0];
  if (sample.cut !== undefined) return { kind: "cut", text: `${sample.cut} bytes: not in the stream; Get it to see it` };
  const readable = [...JSONS, ...TEXTS].includes(encoding), value = readable || !sample.payload?.length ? sample.value : undefined;
  if (value === null) return name === "application/json" ? { kind: "json", value } : { kind: "text", text: "" };
  if (JSONS.includes(encoding)) return { kind: "json", value };
  if (TEXTS.includes(encoding)) {
    if (typeof value !== "string") return { kind: "json", value };
    const number = numberOf(value.trim());
    return number === null ? { kind: "text", text: value } : { kind: "json", value: number };
  }
  let bytes;
  try { bytes = payloadOf(sample); } catch { return { kind: "text", text: String(value) }; }
  if (/^image\/(png|jpeg|gif|webp|bmp)$/.test(name)) return { kind: "image", bytes, name };
  if (name === "application/cbor") {
    try { return { kind: "json", value: bounded(cbor(bytes)) }; } catch (error) { return { kind: "hex", text: hex(bytes), why: `no CBOR: ${error.message}` }; }
  }
  return implied(bytes) ?? { kind: "hex", bytes, text: hex(bytes), why: `the encoding ${encoding} says nothing that this page can read` };
}

/** A line about a sample; what is odd about it is no reason to show nothing. */
export const brief = (sample) => { try { return line(sample); } catch (error) { return `odd value: ${error.message}`; } };

const line = (sample) => {
  const found = decode(sample);
  if (found.kind === "cut") return `${sample.cut} bytes`;
  if (found.kind === "json") return JSON.stringify(found.value)?.slice(0, 120) ?? "";
  if (found.kind === "hex") return `${payloadOf(sample).length} bytes`;
  if (found.kind === "image") return `${found.name}, ${found.bytes.length} bytes`;
  return (found.text || "").slice(0, 120).replaceAll("\n", " ");
};

/** Milliseconds since 1970 of a timestamp `<ntp64>/<id>`. */
export const timeOf = (stamp) => {
  if (!stamp) return null;
  const ntp = BigInt(stamp.split("/")[0]);
  return Number(ntp >> 32n) * 1000 + Number(((ntp & 0xffffffffn) * 1000n) >> 32n);
};
