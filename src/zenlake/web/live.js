// Live: the tree of keys, and one key closely.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { Held } from "./address.js";
import * as bus from "./bus.js";
import { brief, decode, timeOf } from "./decode.js";
import { Guard, MOST_CHUNKS, MOST_TEXT } from "./checked.js";
import { Chart } from "./chart.js";
import { SPANS, at, history as pastOf } from "./history.js";

const HIGH = 24;

/** All keys that were heard of: from traffic, and from declarations in the admin space. */
export class Keys {
  constructor() { this.keys = new Map(); this.version = 0; this.structure = 0; this.skipped = 0; this.connected = false; this.why = ""; this.denied = false; this.listeners = new Set(); }
  note(key) {
    let found = this.keys.get(key);
    if (!found) { found = { key, count: 0, rate: 0, since: 0, at: 0, sample: null, before: null, declared: "" }; this.keys.set(key, found); this.structure++; }
    return found;
  }
  event(sample) {
    const found = this.note(sample.key);
    found.count++; found.since++; found.before = found.sample; found.sample = sample; found.deleted = sample.deleted; found.at = Date.now();
    this.version++;
  }
  token(key, alive) {
    if (alive) this.note(key).declared = "token";
    else if (this.keys.get(key)?.sample) this.note(key).declared = "";
    else if (this.keys.delete(key)) this.structure++;
    this.version++;
  }
  tick(seconds) { for (const one of this.keys.values()) { one.rate = one.rate * 0.5 + (one.since / seconds) * 0.5; one.since = 0; } this.version++; }
  async declared() {
    for (const kind of ["publisher", "subscriber", "queryable", "token"]) {
      try {
        const { rows } = await bus.get(`@/*/router/${kind}/**`);
        for (const row of rows) {
          const key = row.key.split("/").slice(4).join("/");
          if (key && !key.includes("*") && !key.startsWith("@")) this.note(key).declared = kind;
        }
      } catch { return; }
    }
    this.version++;
  }
  start() {
    // A page that nobody sees listens to nothing.
    let stop = null;
    const seen = () => {
      const hidden = document.visibilityState === "hidden";
      if (hidden && stop) { stop(); stop = null; }
      if (!hidden && !stop) stop = this.listen();
    };
    document.addEventListener("visibilitychange", seen);
    addEventListener("pageshow", seen);
    addEventListener("pagehide", () => { stop?.(); stop = null; bus.leave(); });
    seen();
    setInterval(() => this.tick(1), 1000);
    setInterval(() => this.connected && this.declared(), 10_000);
  }
  listen() {
    return bus.subscribe("**", 4096, {
      event: (sample) => this.event(sample),
      skipped: (many) => { this.skipped += many; this.version++; },
      token: (key, alive) => this.token(key, alive),
      state: (connected, why = "") => { if (connected && !this.connected) this.declared(); this.connected = connected; this.why = why; this.denied = why === "401"; this.version++; },
    });
  }
}

/** The chunks of a key, the last of very many in one. */
const chunksOf = (key) => { const all = key.split("/"); return all.length > MOST_CHUNKS ? [...all.slice(0, MOST_CHUNKS - 1), all.slice(MOST_CHUNKS - 1).join("/")] : all; };

function flat(keys, open, filter) {
  const root = { name: "", path: "", kids: new Map(), leaf: null, count: 0 };
  for (const one of keys.keys.values()) {
    if (filter && !one.key.toLowerCase().includes(filter)) continue;
    let node = root;
    for (const chunk of chunksOf(one.key)) {
      let kid = node.kids.get(chunk);
      if (!kid) { kid = { name: chunk, path: node.path ? `${node.path}/${chunk}` : chunk, kids: new Map(), leaf: null, count: 0 }; node.kids.set(chunk, kid); }
      kid.count++; node = kid;
    }
    node.leaf = one;
  }
  const rows = [];
  const walk = (node, depth) => {
    for (const kid of [...node.kids.values()].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))) {
      rows.push({ node: kid, depth });
      if (kid.kids.size && (filter ? true : open.has(kid.path))) walk(kid, depth + 1);
    }
  };
  walk(root, 0);
  return rows;
}

/** The paths above a key, which are open in the tree so that the key is seen. */
const above = (key) => chunksOf(key).slice(0, -1).map((_, i, all) => all.slice(0, i + 1).join("/"));

const age = (at) => { if (!at) return ""; const s = (Date.now() - at) / 1000; return s < 1 ? "now" : s < 90 ? `${Math.round(s)} s` : `${Math.round(s / 60)} min`; };
const rate = (r) => (r < 0.05 ? "" : r < 10 ? `${r.toFixed(1)}/s` : `${Math.round(r)}/s`);

export function Live({ keys, route, own, go }) {
  const [, draw] = useState(0);
  const [open, setOpen] = useState(() => new Set(above(route.get("key") ?? "")));
  const [filter, setFilter] = useState("");
  const [top, setTop] = useState(0);
  const box = useRef(null);
  useEffect(() => {
    let seen = -1, frame = 0, last = 0;
    const loop = (now) => { if (keys.version !== seen && now - last > 100) { seen = keys.version; last = now; draw((n) => n + 1); } frame = requestAnimationFrame(loop); };
    frame = requestAnimationFrame(loop);
    return () => cancelAnimationFrame(frame);
  }, []);
  const rows = useMemo(() => flat(keys, open, filter.toLowerCase()), [keys.structure, open, filter]);
  const chosen = route.get("key") || "";
  const high = box.current?.clientHeight || 600;
  const from = Math.max(0, Math.floor(top / HIGH) - 5), to = Math.min(rows.length, Math.ceil((top + high) / HIGH) + 5);
  const choose = (row) => {
    if (row.node.kids.size) { const next = new Set(open); next.has(row.node.path) ? next.delete(row.node.path) : next.add(row.node.path); setOpen(next); }
    if (row.node.leaf) go("live", { key: row.node.path });
  };
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...box.current.querySelectorAll(".row")], at = all.indexOf(document.activeElement);
    all[Math.min(all.length - 1, Math.max(0, at + step))]?.focus();
  };
  return html`<div class="split">
    <section class="panel" aria-label="Keys">
      <form onSubmit=${(e) => e.preventDefault()}><label class="wide">Find a key<input type="search" value=${filter} onInput=${(e) => setFilter(e.target.value)} /></label></form>
      <p class="dim" role="status">${keys.keys.size} keys${keys.skipped ? html`, <span class="hot">${keys.skipped} samples skipped to keep up</span>` : ""}</p>
      ${rows.length === 0 && html`<p>Nothing was heard yet. Try <code>zenlake put -k demo/hello -p hi</code>, or <code>zenlake demo fleet</code>.</p>`}
      <div class="rows" ref=${box} onScroll=${(e) => setTop(e.target.scrollTop)} onKeyDown=${move} tabindex="0" role="region" aria-label="Tree of keys">
        <div style=${{ height: rows.length * HIGH + "px" }}></div>
        ${rows.slice(from, to).map((row, i) => { const leaf = row.node.leaf; return html`<button class="row" key=${row.node.path} style=${{ top: (from + i) * HIGH + "px", paddingLeft: row.depth * 16 + 6 + "px" }}
            aria-pressed=${row.node.path === chosen} aria-expanded=${row.node.kids.size ? open.has(row.node.path) : undefined} onClick=${() => choose(row)}>
          <span class="dim" aria-hidden="true">${row.node.kids.size ? (open.has(row.node.path) || filter ? "▾" : "▸") : "·"}</span>
          <span class="name">${row.node.name}</span>${row.node.kids.size ? html`<span class="dim">${row.node.count}</span>` : ""}
          <span class="value">${leaf?.sample ? (leaf.deleted ? "deleted" : brief(leaf.sample)) : leaf ? leaf.declared : ""}</span>
          <span class="num">${leaf ? rate(leaf.rate) : ""}</span><span class="num">${leaf ? age(leaf.at) : ""}</span></button>`; })}
      </div>
    </section>
    <section class="panel" aria-label="One key">${chosen ? html`<${One} key=${chosen} name=${chosen} keys=${keys} own=${own} go=${go} />` : html`<p class="dim">Choose a key to see its value, its history, and to publish.</p>`}</section>
  </div>`;
}

/** What a sample says; where the page cannot read it, what the lake reads in it, a moment later, if it may be asked. */
function useDecoded(name, sample, may) {
  const [read, setRead] = useState({ now: null, before: null, why: "", table: null });
  const work = useRef({ busy: false, wish: null });
  const found = useMemo(() => (sample ? decode(sample) : null), [sample]);
  const unread = found?.kind === "hex" && found.bytes;
  useEffect(() => { setRead({ now: null, before: null, why: "", table: null }); }, [name]);
  useEffect(() => {
    if (!unread || !may) return;
    // One question at a time, about the newest sample: the lake is not asked faster than it answers.
    const state = work.current;
    state.wish = { name, found, sample };
    if (state.busy) return;
    (async () => {
      for (state.busy = true; state.wish;) {
        const one = state.wish;
        state.wish = null;
        await bus.decoded(one.name, one.found.bytes, one.sample.encoding).then(
          ({ rows, table }) => { const value = rows.length === 1 ? rows[0] : rows; setRead((old) => ({ now: { kind: "json", value, sample: one.sample }, before: old.now, why: "", table })); },
          (error) => setRead((old) => ({ ...old, now: null, why: error.message })));
      }
      state.busy = false;
    })();
  }, [name, found, may]);
  if (!unread || !may) return { found, before: undefined, table: null };
  return read.now ? { found: read.now, before: read.before, table: read.table } : { found: { ...found, why: `${found.why}; the lake: ${read.why || "asking…"}` }, before: null, table: null };
}

function Value({ found, before, chart }) {
  if (found.kind === "image") return html`<img alt="the value" src=${URL.createObjectURL(new Blob([found.bytes], { type: found.name }))} style="max-width:100%" />`;
  if (found.kind === "json") return html`<pre>${tree(found.value, before?.kind === "json" ? before.value : undefined, "", chart)}</pre>`;
  return html`<pre>${found.text?.length > MOST_TEXT ? `${found.text.slice(0, MOST_TEXT)}… (${found.text.length} characters)` : found.text}</pre>${found.why && html`<p class="dim">${found.why}</p>`}`;
}

/** The most values of a payload that are drawn. */
const MOST_DRAWN = 5000;

function tree(value, old, path, chart, pad = "", room = { left: MOST_DRAWN }) {
  if (room.left-- <= 0) return "…";
  if (typeof value === "number") return html`<button type="button" class=${"number" + (old !== undefined && old !== value ? " changed" : "")} title="chart it" onClick=${() => chart(path)}>${String(value)}</button>`;
  if (value === null || typeof value !== "object") return html`<span class=${old !== undefined && old !== value ? "changed" : ""}>${JSON.stringify(value)}</span>`;
  const list = Array.isArray(value), all = Object.entries(value), inner = pad + "  ";
  if (!all.length) return list ? "[]" : "{}";
  return html`${list ? "[" : "{"}${"\n"}${all.slice(0, 200).map(([name, part]) => html`${inner}${list ? "" : name + ": "}${tree(part, old && typeof old === "object" ? old[name] : undefined, path ? `${path}.${name}` : name, chart, inner, room)}${"\n"}`)}${all.length > 200 ? inner + "…\n" : ""}${pad}${list ? "]" : "}"}`;
}

function One({ name, keys, own, go }) {
  const [found, setFound] = useState(null);
  const [chart, setChart] = useState(null);
  const [span, setSpan] = useState(600);
  const [old, setOld] = useState(null);
  const [points, setPoints] = useState([]);
  const [history, setHistory] = useState(null);
  const [told, setTold] = useState("");
  // What nobody asked for by a click is not worth saying once there is a value.
  const [unasked, setUnasked] = useState(false);
  const known = keys.keys.get(name);
  // What is too long for the stream is there when it was asked for.
  const sample = known?.sample && known.sample.cut === undefined ? known.sample : found ?? known?.sample;
  const shown = useDecoded(name, sample, own);
  const before = useMemo(() => (shown.before === undefined && known?.before ? decode(known.before) : shown.before), [shown.found]);
  const kind = sample?.encoding ?? "application/json";
  const get = async (clicked) => { setUnasked(!clicked); try { const { rows } = await bus.get(name); setFound(rows[0] ?? null); setTold(rows.length ? "" : "no storage, recorder or queryable answers for this key"); } catch (error) { setTold(error.message); } };
  useEffect(() => { if (own && (!known?.sample || known.sample.cut !== undefined)) get(false); }, [name, own]);
  // What is published is shown at once, for it calls nobody; a get does, and so does what the lake reads.
  const held = !own && (!sample || sample.cut !== undefined || shown.found.kind === "hex");
  useEffect(() => {
    if (chart === null) return;
    let live = true;
    setPoints([]); setOld(null);
    const look = () => pastOf(name, chart, span, shown.table).then((one) => live && setOld(one), () => {});
    look();
    const timer = span > 600 ? setInterval(look, 30_000) : 0;
    return () => { live = false; clearInterval(timer); };
  }, [name, chart, span, shown.table]);
  useEffect(() => {
    // What comes while the chart is open, as far as it can be read.
    if (chart === null || shown.found?.kind !== "json") return;
    const of = shown.found.sample ?? sample, n = at(shown.found.value, chart), t = (timeOf(of?.timestamp) ?? Date.now()) / 1000;
    if (typeof n === "number") setPoints((list) => (list.length && list[list.length - 1][0] >= t ? list : [...list.slice(-999), [t, n]]));
  }, [shown.found]);
  const series = useMemo(() => {
    if (chart === null || !old) return { time: true, names: [chart || name], data: [points.map((p) => p[0]), points.map((p) => p[1])] };
    if (old.names.length > 1) return { time: true, ...old };
    const last = old.data[0].length ? old.data[0][old.data[0].length - 1] : 0, more = points.filter((p) => p[0] > last);
    return { time: true, names: old.names, data: old.data.map((column, i) => [...column, ...more.map((p) => (i === 0 ? p[0] : i === 1 ? p[1] : null))]) };
  }, [old, points, chart]);
  const past = async () => { setUnasked(false); try { const { rows } = await bus.get(name, "_time=[now(-1h)..]"); rows.sort((a, b) => (timeOf(b.timestamp) ?? 0) - (timeOf(a.timestamp) ?? 0)); setHistory(rows); } catch (error) { setTold(error.message); } };
  const publish = async (event) => { event.preventDefault(); setUnasked(false); const data = new FormData(event.target); try { await bus.put(name, data.get("value"), data.get("kind")); setTold("published"); } catch (error) { setTold(error.message); } };
  return html`<h2>${name}</h2>
    <p class="dim">${kind}${known ? `, ${known.count} samples since this page opened` : ""}${sample?.timestamp ? `, ${new Date(timeOf(sample.timestamp)).toISOString()}` : ""}</p>
    ${held && html`<${Held} says="This key came from a link. Get its value?" press="Get it" run=${() => go("live", { key: name })} />`}
    <div id="value">${sample ? html`<${Guard} key=${name} name=${name}><${Value} found=${shown.found} before=${before} chart=${setChart} /><//>` : html`<p class="dim">no value yet</p>`}</div>
    ${chart !== null && html`<p class="chart-of"><b>${chart || "value"}</b> of the last <select aria-label="how far back" id="span" value=${String(span)} onChange=${(e) => setSpan(Number(e.target.value))}>${Object.entries(SPANS).map(([words, s]) => html`<option value=${s}>${words}</option>`)}</select> <span class="dim">${old ? old.by : "looking…"}</span></p><${Chart} series=${series} />`}
    <h3>Do</h3>
    <form onSubmit=${publish}><label class="wide">Publish<input name="value" defaultValue="1" /></label><label>as<select name="kind" aria-label="encoding"><option>application/json</option><option>text/plain</option></select></label><button class="main">Put</button>
      <button type="button" onClick=${() => get(true)}>Get</button><button type="button" onClick=${past}>History</button></form>
    <p role="status">${unasked && known?.sample ? "" : told}</p>
    ${history && (history.length ? html`<h3>The last hour, ${history.length} samples</h3><table><thead><tr><th>time</th><th>value</th></tr></thead><tbody>${history.slice(0, 200).map((row) => html`<tr><td>${row.timestamp ? new Date(timeOf(row.timestamp)).toISOString() : ""}</td><td>${row.key === "ERROR" ? html`<span class="bad">${brief(row)}</span>` : brief(row)}</td></tr>`)}</tbody></table>` : html`<p>Nobody remembers this key. Start <code>zenlake up</code>, or a storage with <code>history: "all"</code>.</p>`)}`;
}
