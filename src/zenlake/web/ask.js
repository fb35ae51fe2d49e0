// Ask: a get, or SQL; answers as table and chart, shareable by their URL.
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { Held, Link } from "./address.js";
import * as bus from "./bus.js";
import { Guard, columnsOf, isRecord, number, parsed, records as recordsOf, text as textOf } from "./checked.js";
import { brief, decode, timeOf } from "./decode.js";
import { Chart } from "./chart.js";
import { ViewsAndAlerts } from "./continuous.js";
import { Tables } from "./tables.js";

const SAVED = "zenlake-asked";
const load = () => { try { return recordsOf(parsed(localStorage.getItem(SAVED))).filter((one) => typeof one.q === "string"); } catch { return []; } };

const instant = (value) => (typeof value === "string" && /^\d{4}-\d\d-\d\d[T ]/.test(value) ? Date.parse(value.replace(" ", "T")) / 1000 : null);

/** Columns of numbers over the first column that is a time, or over the row number. */
export function series(records) {
  if (records.length < 2) return null;
  const columns = Object.keys(records[0]);
  const numeric = columns.filter((name) => records.some((r) => typeof r[name] === "number") && records.every((r) => r[name] === null || r[name] === undefined || typeof r[name] === "number")).slice(0, 6);
  if (!numeric.length) return null;
  const time = columns.find((name) => records.every((r) => instant(r[name]) !== null));
  const split = time && columns.find((name) => records.every((r) => typeof r[name] === "string" && instant(r[name]) === null));
  if (split) {
    // One line for each name, on the instants that any of them has.
    const names = [...new Set(records.map((r) => r[split]))].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    if (names.length > 1 && names.length <= 12) {
      const x = [...new Set(records.map((r) => instant(r[time])))].sort((a, b) => a - b), at = new Map(x.map((t, i) => [t, i])), y = names.map(() => x.map(() => null));
      for (const r of records) y[names.indexOf(r[split])][at.get(instant(r[time]))] = r[numeric[0]] ?? null;
      return { time: true, names: names.map((name) => `${numeric[0]} of ${name}`), data: [x, ...y] };
    }
  }
  const order = records.map((r, i) => [time ? instant(r[time]) : i, r]).sort((a, b) => a[0] - b[0]);
  return { time: Boolean(time), names: numeric, data: [order.map((o) => o[0]), ...numeric.map((name) => order.map((o) => o[1][name] ?? null))] };
}

const split = (text) => { const at = text.indexOf("?"); return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)]; };

/** Where an answer of SQL is downloaded, but for its form; nothing if the question cannot stand in an address. */
export const sqlLink = (text) => { const sql = text.trim().replace(/;$/, ""); return sql.includes(";") ? "" : bus.path("@lake/sql") + "?" + encodeURIComponent(`_as=arrow;_sql=${sql};_download=`); };

/** The keys that a text may become: those that begin with it first, then those that have it inside. */
export function suggested(keys, typed, most = 50) {
  const starts = [], inside = [];
  for (const key of keys) { const at = key.indexOf(typed); if (at === 0) starts.push(key); else if (at > 0 && inside.length < most) inside.push(key); if (starts.length >= most) break; }
  return [...starts, ...inside].slice(0, most);
}

async function run(kind, text) {
  if (kind === "get") {
    const [key, parameters] = split(text.trim());
    const answer = await bus.get(key, parameters);
    const records = answer.rows.map((row) => ({ key: row.key, value: brief(row), time: row.timestamp ? new Date(timeOf(row.timestamp)).toISOString() : null, encoding: row.encoding }));
    const numbers = answer.rows.map((row) => decode(row)).map((v) => (v.kind === "json" && typeof v.value === "number" ? v.value : null));
    if (numbers.some((n) => n !== null)) records.forEach((r, i) => { r.number = numbers[i]; });
    return { ...answer, records, link: bus.hasPath(key) ? bus.path(key) + "?" + encodeURIComponent([parameters, "_download="].filter(Boolean).join(";")) : "" };
  }
  const answer = await bus.get("@lake/sql", "_as=json;_proof=true", text);
  if (!answer.rows.length) throw new Error("No lake answers here. `zenlake up` starts one; this node has none that answers SQL.");
  const failed = answer.rows.find((row) => row.key === "ERROR");
  if (failed) { const found = decode(failed); throw new Error(textOf(found.value?.error) || brief(failed)); }
  let records = [], proof = null;
  const whole = answer.rows.length === 1 ? decode(answer.rows[0]).value : null;
  if (whole && !Array.isArray(whole) && Array.isArray(whole.rows)) return { ...answer, records: recordsOf(whole.rows), proof: isRecord(whole.proof) ? whole.proof : null, link: sqlLink(text) };
  for (const row of answer.rows) {
    const found = decode(row);
    const value = found.kind === "json" ? found.value : null;
    if (row.key.includes("proof") || (value && !Array.isArray(value) && value.complete !== undefined)) proof = isRecord(value) ? value : null;
    else if (Array.isArray(value)) records = records.concat(recordsOf(value));
    else if (value && Array.isArray(value.rows)) records = records.concat(recordsOf(value.rows));
    else if (value && typeof value === "object") records.push(value);
  }
  return { ...answer, records, proof, link: sqlLink(text) };
}

const WORDS = "SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN ON AS AND OR NOT IN LIKE BETWEEN IS NULL COUNT AVG MIN MAX SUM WINDOW DISTINCT HAVING DESC INTERVAL ALL".split(" ");

/** What the word before the caret may become: tables, columns, words of SQL. */
export function completions(text, caret, tables) {
  const word = /[\w.]*$/.exec(text.slice(0, caret))[0];
  if (!word) return { word, found: [] };
  const low = word.toLowerCase(), dot = low.lastIndexOf(".");
  const names = tables.map((row) => row.key.split("/").pop());
  const columns = tables.flatMap((row) => { const name = row.key.split("/").pop(); return columnsOf(decode(row).value).map((one) => (dot >= 0 ? `${name}.${one}` : one)); });
  const all = [...new Set([...names, ...columns, ...WORDS])];
  return { word, found: all.filter((one) => one.toLowerCase().startsWith(low) && one.toLowerCase() !== low).slice(0, 10) };
}

/** The box for SQL: Tab takes the first completion, Ctrl+Enter runs. */
function Box({ text, tables }) {
  const box = useRef(null);
  const [offered, setOffered] = useState({ word: "", found: [] });
  const look = () => setOffered(completions(box.current.value, box.current.selectionStart, tables));
  const take = (name) => { const end = box.current.selectionStart; box.current.setRangeText(name + " ", end - offered.word.length, end, "end"); box.current.focus(); setOffered({ word: "", found: [] }); };
  const pressed = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit();
    else if (event.key === "Tab" && !event.shiftKey && offered.found.length) { event.preventDefault(); take(offered.found[0]); }
    else if (event.key === "Escape") setOffered({ word: "", found: [] });
  };
  return html`<label class="wide">SQL<textarea ref=${box} name="q" rows="3" spellcheck="false" placeholder="SELECT key, count(*) AS n FROM samples GROUP BY key" defaultValue=${text} onInput=${look} onKeyDown=${pressed} aria-describedby="offered"></textarea></label>
    <div class="suggest" id="offered">${offered.found.length > 0 ? offered.found.map((name) => html`<button type="button" onClick=${() => take(name)}>${name}</button>`) : html`<span class="dim">Tab completes tables and columns, Ctrl+Enter runs</span>`}</div>`;
}

const proved = (proof) => (proof.complete ? html`<span class="good">complete</span>` : recordsOf(proof.sources).some((one) => one.missing) ? html`<span class="bad">incomplete: ${recordsOf(proof.sources).reduce((sum, one) => sum + number(one.missing), 0)} samples are missing</span>` : html`<span class="hot">whether it is complete cannot be proved</span>`);

/** A table, and its columns when it is opened; a click writes a name into the question. */
function Table({ row }) {
  const [open, setOpen] = useState(false);
  const name = row.key.split("/").pop(), columns = columnsOf(decode(row).value);
  const write = (word) => { const box = document.querySelector("textarea[name=q]"); box.setRangeText(word, box.selectionStart, box.selectionEnd, "end"); box.focus(); };
  return html`<button type="button" onClick=${() => { write(name); setOpen(true); }}>${name}</button>${open && columns.map((one) => html` <button type="button" class="number" onClick=${() => write(one)}>${one}</button>`)}`;
}

/** Seconds after which a question is asked again, as an address may say; 0: it is not. */
const MOST_EVERY = 3600, LEAST_EVERY = 5;
const everyOf = (text) => (Number(text) > 0 ? Math.min(MOST_EVERY, Math.max(LEAST_EVERY, Number(text))) : 0);

export function Ask({ keys, route, own, go }) {
  const kind = route.get("kind") || "get", text = route.get("q") || "";
  const [answer, setAnswer] = useState(null), [why, setWhy] = useState(""), [busy, setBusy] = useState(false), [saved, setSaved] = useState(load()), [tables, setTables] = useState([]), [looked, setLooked] = useState(false), [typed, setTyped] = useState(""), [looks, setLooks] = useState(0);
  useEffect(() => {
    let live = true;
    setAnswer(null); setWhy(""); setBusy(Boolean(text && own));
    if (text && own) { run(kind, text).then((found) => live && setAnswer(found)).catch((error) => live && setWhy(error.message)).finally(() => live && setBusy(false)); }
    return () => { live = false; };
  }, [kind, text, own, route.get("n")]);
  const every = everyOf(route.get("every"));
  useEffect(() => {
    if (!every || !text || !own) return;
    // The next one is asked when this one was answered: on a busy machine they would pile up.
    let timer = null, live = true;
    const later = () => { timer = live && setTimeout(again, every * 1000); };
    const again = () => (document.visibilityState === "visible" ? run(kind, text).then((found) => { if (live) { setAnswer(found); setWhy(""); } }).catch((error) => live && setWhy(error.message)).finally(later) : later());
    later();
    return () => { live = false; clearTimeout(timer); };
  }, [kind, text, own, every]);
  useEffect(() => {
    // A lake that starts takes its time: it is looked for until it is there. Tables appear by themselves: they are looked for now and then.
    let timer = null, live = true;
    const look = () => bus.get("@lake/tables/**").then(({ rows }) => rows.filter((r) => r.key !== "ERROR")).catch(() => []).then((found) => { if (!live) return; setTables(found); setLooked(true); timer = setTimeout(look, found.length ? 15_000 : 3000); });
    look();
    return () => { live = false; clearTimeout(timer); };
  }, [looks]);
  const submit = (kind) => (event) => { event.preventDefault(); go("ask", { kind, q: new FormData(event.target).get("q"), n: String(Date.now()) }); };
  const save = () => { const next = [{ kind, q: text }, ...saved.filter((one) => one.q !== text)].slice(0, 20); localStorage.setItem(SAVED, JSON.stringify(next)); setSaved(next); };
  const plotted = answer ? series(answer.records) : null;
  const columns = answer?.records.length ? Object.keys(answer.records[0]) : [];
  return html`<div class="card">
      <form onSubmit=${submit("get")}><label class="wide">Get<input name="q" list="keys" placeholder="robot/**?_time=[now(-1m)..]" defaultValue=${kind === "get" ? text : ""} onInput=${(e) => setTyped(e.target.value)} spellcheck="false" /></label><button class="main">Get</button></form>
      <datalist id="keys">${suggested(keys.keys.keys(), typed).map((key) => html`<option value=${key}></option>`)}</datalist>
      <form onSubmit=${submit("sql")}><${Box} text=${kind === "sql" ? text : ""} tables=${tables} /><button class="main">Run</button></form>
      ${looked && !tables.length && html`<p class="dim">No lake answers here. <code>zenlake up</code> starts one; Spark takes half a minute.</p>`}
      ${tables.length > 0 && html`<p class="dim">Tables; a click writes the name and shows the columns: ${tables.map((row) => html`<${Table} key=${row.key} row=${row} /> `)}</p>`}
      ${saved.length > 0 && html`<p class="dim">Saved: ${saved.map((one) => html`<${Link} view="ask" route=${{ kind: one.kind === "sql" ? "sql" : "get", q: one.q }}>${one.q.slice(0, 60)}<//> `)}</p>`}
    </div>
    <div class="card" style="margin-top:.8rem" aria-live="polite">
      ${text && !own ? html`<${Held} says=${`This question came from a link${every ? `, which asks it again every ${every} s` : ""}. Run it?`} question=${text} press="Run it" run=${() => go("ask", { kind, q: text, ...(every ? { every: String(every) } : {}), n: String(Date.now()) })} />` : busy ? html`<p>asking…</p>` : why ? html`<p class="bad" role="alert">${why}</p>` : !answer ? html`<p class="dim">Answers come here. The address of this page is the question: share it. Whoever opens the link sees the question, and runs it by a click.</p>` : html`
        <p id="answer"><b>${answer.records.length}</b> rows in ${answer.ms.toFixed(0)} ms${answer.truncated ? html`, <span class="hot">cut: ${answer.truncated}</span>` : ""}${answer.proof ? html`, ${proved(answer.proof)}` : ""}
          ${" "}<button type="button" onClick=${save}>Save</button>
          ${" "}<label><input type="checkbox" checked=${every > 0} onChange=${(e) => go("ask", { kind, q: text, ...(e.target.checked ? { every: "5" } : {}) })} /> again every 5 s</label>
          ${answer.link && ["csv", "jsonl", "arrow", "parquet"].map((form) => html` <a href=${answer.link + form} download>${form}</a>`)}</p>
        ${plotted && html`<${Guard} name="the chart"><${Chart} series=${plotted} /><//>`}
        <table><thead><tr>${columns.map((name) => html`<th>${name}</th>`)}</tr></thead><tbody>${answer.records.slice(0, 1000).map((r) => html`<tr>${columns.map((name) => html`<td>${typeof r[name] === "object" && r[name] !== null ? JSON.stringify(r[name]) : String(r[name] ?? "")}</td>`)}</tr>`)}</tbody></table>`}
    </div>
    <div class="card" style="margin-top:.8rem"><h2>Views and alerts</h2><${ViewsAndAlerts} sql=${kind === "sql" ? text : ""} /></div>
    <div class="card" style="margin-top:.8rem"><h2>Tables of keys</h2><${Tables} rows=${tables} done=${() => setLooks((n) => n + 1)} /></div>`;
}
