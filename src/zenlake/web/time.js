// Time: the tree as it was at an instant.
import { html, useEffect, useState } from "./vendor/htm-preact.js";
import { Held } from "./address.js";
import * as bus from "./bus.js";
import { record, records, text, texts } from "./checked.js";
import { brief, timeOf } from "./decode.js";

const SPANS = { "1 minute": 60, "10 minutes": 600, "1 hour": 3600, "1 day": 86400 };

/** The newest value of each key at an instant: by the lake, else by what journals remember. */
async function past(key, instant, span) {
  const iso = new Date(instant).toISOString();
  const asof = await bus.get(key, `_asof=${iso}`).catch(() => ({ rows: [] }));
  const good = asof.rows.filter((row) => row.key !== "ERROR");
  // Who does not know `_asof` answers with values of now: then none may be later than asked for.
  if (good.length && good.every((row) => (timeOf(row.timestamp) ?? Infinity) <= instant + 1)) return { rows: good, by: "the lake" };
  const from = new Date(instant - span * 1000).toISOString();
  const { rows, truncated } = await bus.get(key, `_time=[${from}..${iso}]`);
  const newest = new Map();
  for (const row of rows) { const t = timeOf(row.timestamp) ?? 0; if (row.key !== "ERROR" && t >= (newest.get(row.key)?.t ?? 0)) newest.set(row.key, { row, t }); }
  return { rows: [...newest.values()].map((one) => one.row), by: "what was recorded", truncated };
}

/** When something was lost, as far as the lake can tell: the last sample before each gap. */
const GAPS = "SELECT g.key AS key, g.x[0] AS first, g.x[1] AS last, max(s.time) AS at FROM (SELECT source, key, explode(gaps) AS x FROM gaps WHERE missing > 0) g JOIN samples s ON s.source_id = g.source AND s.source_sn < g.x[0] GROUP BY ALL ORDER BY at DESC LIMIT 200";

/** Marks of a span: gaps of the ledger, and alerts as they fired. */
async function marks(from, to) {
  const found = [];
  const gaps = await bus.get("@lake/sql", "_as=json", GAPS).catch(() => ({ rows: [] }));
  for (const row of gaps.rows) for (const one of records(row.value)) found.push({ at: Date.parse(text(one.at)), kind: "gap", text: `${text(one.key)}: ${text(one.first)} to ${text(one.last)} missing` });
  // Alerts are published like everything else, so whoever remembers samples remembers them.
  const alerts = await bus.get("alert/**", `_time=[${new Date(from).toISOString()}..${new Date(to).toISOString()}]`).catch(() => ({ rows: [] }));
  for (const row of alerts.rows) if (row.key !== "ERROR" && row.timestamp) found.push({ at: timeOf(row.timestamp), kind: "alert", text: `alert ${row.key.split("/").slice(1).join(" ")}` });
  return found.filter((one) => one.at >= from && one.at <= to);
}

const quoted = (text) => (/^[\w/.:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** The command that replays from an instant, for any folder of this machine: it names where the record lies and whom to tell. */
export function replayLine(key, iso, status) {
  const { data: folder, lake } = record(status?.service), data = text(folder), place = texts(status?.node?.locators)[0];
  const from = data ? (lake ? ` --lake ${quoted(`${data}/lake`)}` : ` --journal ${quoted(`${data}/journal`)}`) : "";
  return `zenlake replay ${quoted(key)} --from ${iso} --speed 4 --prefix replay${from}${place ? ` -e ${quoted(place)}` : ""}`;
}

/** One question at a time: while one is under way the newest wish waits, so that a slider that never rests is answered all the same, and never by an older instant. */
function oneByOne(ask, give, fail) {
  let wish = null, busy = false;
  return async (...wanted) => {
    wish = wanted;
    if (busy) return;
    for (busy = true; wish;) { const now = wish; wish = null; await ask(...now).then(give, fail); }
    busy = false;
  };
}

export function Time({ route, own, go }) {
  const span = Number(route.get("span") || 600), key = route.get("key") || "**";
  const [end, setEnd] = useState(Date.now());
  const at = Number(route.get("at") || end);
  const [found, setFound] = useState(null), [why, setWhy] = useState("");
  const [look] = useState(() => oneByOne(past, (one) => { setFound(one); setWhy(""); }, (error) => setWhy(error.message)));
  useEffect(() => { if (own) look(key, at, span); }, [key, at, span, own]);
  const [status, setStatus] = useState(null);
  useEffect(() => { bus.status().then(setStatus).catch(() => {}); }, []);
  const [marked, setMarked] = useState([]);
  useEffect(() => { if (!own) return; let live = true; marks(end - span * 1000, end).then((list) => live && setMarked(list)).catch(() => {}); return () => { live = false; }; }, [end, span, own]);
  const set = (more) => go("time", { key, span: String(span), at: String(at), ...more });
  const iso = new Date(at).toISOString();
  return html`<div class="card">
      <form onSubmit=${(e) => { e.preventDefault(); set({ key: new FormData(e.target).get("key") }); }}>
        <label class="wide">Keys<input name="key" defaultValue=${key} /></label>
        <label>Span<select value=${String(span)} onChange=${(e) => set({ span: e.target.value })}>${Object.entries(SPANS).map(([name, s]) => html`<option value=${s}>${name}</option>`)}</select></label>
        <button class="main">Look</button><button type="button" onClick=${() => { const now = Date.now(); setEnd(now); set({ at: String(now) }); }}>Now</button></form>
      <label>The instant: <output id="instant">${iso}</output><input type="range" id="slider" min=${end - span * 1000} max=${end} step=${Math.max(1, span)} value=${at} onInput=${(e) => set({ at: e.target.value })} /></label>
      <div class="marks" id="marks">${marked.map((one) => html`<button type="button" class=${one.kind === "alert" ? "hot" : ""} style=${{ left: `${(100 * (one.at - (end - span * 1000))) / (span * 1000)}%` }} title=${one.text} aria-label=${`${one.text}, go there`} onClick=${() => set({ at: String(one.at) })}></button>`)}</div>
      ${marked.length > 0 && html`<p class="dim">${marked.filter((one) => one.kind === "gap").length} gaps and ${marked.filter((one) => one.kind === "alert").length} alerts in this span; click a mark to go there.</p>`}
      <p class="dim">Replay from here, at four times the pace, beside what is live: <code id="replay">${replayLine(key, iso, status)}</code> <button type="button" onClick=${() => navigator.clipboard?.writeText(document.getElementById("replay").textContent)}>Copy</button></p></div>
    <div class="card" style="margin-top:.8rem">
      ${!own ? html`<${Held} says="This question came from a link. Run it?" question=${`${key} at ${iso}`} press="Run it" run=${() => set({})} />` : why ? html`<p class="bad" role="alert">${why}</p>` : !found ? html`<p>looking…</p>` : found.rows.length === 0 ? html`<p>Nothing is remembered of that time. <code>zenlake up</code> records all that is published; a storage with <code>history: "all"</code> does too.</p>` : html`
      <p role="status">${found.rows.length} keys as they were, by ${found.by}${found.truncated ? html`, <span class="hot">cut: ${found.truncated}</span>` : ""}</p>
      <table id="past"><thead><tr><th>key</th><th>value</th><th>since</th></tr></thead><tbody>${found.rows.sort((a, b) => a.key.localeCompare(b.key)).slice(0, 1000).map((row) => html`<tr><td>${row.key}</td><td>${brief(row)}</td><td>${row.timestamp ? new Date(timeOf(row.timestamp)).toISOString() : ""}</td></tr>`)}</tbody></table>`}</div>`;
}
