// Values as people read them: JSON, CBOR, text, numbers, images, and hex with the reason.

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

function cbor(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  const length = (low) => {
    if (low < 24) return low;
    if (low === 24) return view.getUint8(at++);
    if (low === 25) { at += 2; return view.getUint16(at - 2); }
    if (low === 26) { at += 4; return view.getUint32(at - 4); }
    if (low === 27) { at += 8; return Number(view.getBigUint64(at - 8)); }
    throw new Error("indefinite length");
  };
  const take = (many) => { const part = bytes.slice(at, at + many); if (part.length < many) throw new Error("it ends too early"); at += many; return part; };
  const read = (depth) => {
    if (depth > 60) throw new Error("it is nested too deep");
    const first = view.getUint8(at++), major = first >> 5, low = first & 31;
    if (major === 7) {
      if (low === 20) return false; if (low === 21) return true; if (low === 22 || low === 23) return null;
      if (low === 26) { at += 4; return view.getFloat32(at - 4); }
      if (low === 27) { at += 8; return view.getFloat64(at - 8); }
      throw new Error("a simple value that is not known");
    }
    const n = length(low);
    if (major === 0) return n;
    if (major === 1) return -1 - n;
    if (major === 2) return "0x" + [...take(n)].map((b) => b.toString(16).padStart(2, "0")).join("");
    if (major === 3) return new TextDecoder().decode(take(n));
    if (major === 4) return Array.from({ length: Math.min(n, bytes.length) }, () => read(depth + 1));
    if (major === 5) { const found = {}; for (let i = 0; i < Math.min(n, bytes.length); i++) found[read(depth + 1)] = read(depth + 1); return found; }
    return read(depth + 1);
  };
  const value = read(0);
  if (at !== bytes.length) throw new Error("bytes are left over");
  return value;
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
    const number = Number(value);
    return value.trim() !== "" && Number.isFinite(number) ? { kind: "json", value: number } : { kind: "text", text: value };
  }
  let bytes;
  try { bytes = payloadOf(sample); } catch { return { kind: "text", text: String(value) }; }
  if (/^image\/(png|jpeg|gif|webp|bmp)$/.test(name)) return { kind: "image", bytes, name };
  if (name === "application/cbor") {
    try { return { kind: "json", value: cbor(bytes) }; } catch (error) { return { kind: "hex", text: hex(bytes), why: `no CBOR: ${error.message}` }; }
  }
  const text = (() => { try { return new TextDecoder("utf-8", { fatal: true }).decode(bytes); } catch { return null; } })();
  if (text !== null && !/[\x00-\x08\x0e-\x1f]/.test(text)) {
    const inner = text.trim();
    if (/^[[{"\d-]/.test(inner)) { try { return { kind: "json", value: JSON.parse(inner) }; } catch { /* text then */ } }
    return { kind: "text", text };
  }
  return { kind: "hex", bytes, text: hex(bytes), why: `the encoding ${encoding} says nothing that this page can read` };
}

export const brief = (sample) => {
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
