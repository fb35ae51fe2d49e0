// Views and alerts: questions that the lake keeps answering; made, tried and dropped here.
import { html, useEffect, useState } from "./vendor/htm-preact.js";
import { Link } from "./address.js";
import * as bus from "./bus.js";
import { isRecord, iso, number, records, text } from "./checked.js";
import { decode } from "./decode.js";

const TIMES = ["never", "once", "twice"];
const ROOTS = { view: "@lake/views", alert: "@lake/alerts" };

/** When an alert would have been raised in the last day, asked for by a button. */
function Backtest({ name }) {
  const [told, setTold] = useState(null), [busy, setBusy] = useState(false);
  const ask = () => {
    setBusy(true);
    bus.get(`@lake/alerts/${name}`, "_time=[now(-1d)..]").then(({ rows }) => {
      const value = rows.length ? decode(rows[0]).value : null;
      if (!Array.isArray(value?.changes)) throw new Error(text(value?.error, "no lake answered"));
      setTold({ raised: records(value.changes).filter((one) => one.state === "raised") });
    }).catch((error) => setTold({ why: error.message })).finally(() => setBusy(false));
  };
  const from = (at) => ({ at: String(Date.parse(text(at))), span: "600" });
  return html`<button type="button" disabled=${busy} onClick=${ask}>${busy ? "trying…" : "Back-test a day"}</button>
    ${told?.why ? html` <span class="bad" role="alert">${told.why}</span>` : told && html` <span role="status">would have been raised ${TIMES[told.raised.length] ?? `${told.raised.length} times`}</span>${told.raised.slice(0, 20).map((one) => html` <${Link} view="time" route=${from(one.time)}>${iso(text(one.time)).slice(0, 19).replace("T", " ")}<//>`)}`}`;
}

/** Takes one away when it is clicked twice: its table, or what else is said, goes with it. */
export function Drop({ root, name, done, verb = "Drop", goes = "its table" }) {
  const [sure, setSure] = useState(false), [why, setWhy] = useState("");
  const drop = () => { if (!sure) { setSure(true); return; } bus.remove(`${root}/${name}`).then(done, (error) => { setSure(false); setWhy(error.message); }); };
  return html`<button type="button" aria-label=${`${sure ? `Really ${verb.toLowerCase()}` : verb} ${name}`} onClick=${drop} onBlur=${() => setSure(false)}>${sure ? `${verb} ${name} and ${goes}` : verb}</button>${why && html` <span class="bad" role="alert">${why}</span>`}`;
}

/** A form that makes the question of the SQL box a view or an alert. */
function Create({ sql, done }) {
  const [kind, setKind] = useState("view"), [why, setWhy] = useState(""), [busy, setBusy] = useState(false);
  const make = (event) => {
    event.preventDefault();
    const said = new FormData(event.target), form = event.target, name = said.get("name");
    const wanted = { sql: said.get("sql"), history: said.get("history") === "on", late: said.get("late"), ...(kind === "alert" ? { for: said.get("for") } : {}) };
    setBusy(true); setWhy("");
    bus.put(`${ROOTS[kind]}/${name}`, JSON.stringify(wanted), "application/json")
      .then(() => { form.reset(); done(); }, (error) => setWhy(error.message)).finally(() => setBusy(false));
  };
  return html`<details id="create"><summary>Make a view or an alert</summary>
    <form onSubmit=${make}>
      <label>Kind<select name="kind" value=${kind} onChange=${(e) => setKind(e.target.value)}><option value="view">view</option><option value="alert">alert</option></select></label>
      <label>Name<input name="name" required pattern="[a-z][a-z0-9_]*" placeholder="busy" title="lower-case letters, digits and _" /></label>
      <label class="all">Question<textarea name="sql" rows="2" required spellcheck="false" defaultValue=${sql} placeholder=${kind === "view" ? "SELECT key, count(*) AS n FROM samples GROUP BY key" : "SELECT id, percent FROM battery WHERE percent < 20"}></textarea></label>
      ${kind === "alert" && html`<label>True for<input name="for" defaultValue="0s" size="6" /></label>`}
      <label>Data may be late by<input name="late" defaultValue="10s" size="6" /></label>
      <label class="row-label"><input type="checkbox" name="history" /> begin with all that is kept</label>
      <button class="main" disabled=${busy}>${busy ? "starting…" : "Create"}</button></form>
    ${why && html`<p class="bad" role="alert">${why}</p>`}</details>`;
}

/** The names that a lake lets a table, a view or an alert have. */
export const NAME = /^[a-z][a-z0-9_]{0,63}$/;

/** What is drawn of the views or alerts in an answer. Who may not read every key is not told the question, how many rows there are and why one failed. */
const viewsOf = (kind, rows) => rows.filter(({ key, value }) => key !== "ERROR" && isRecord(value) && NAME.test(text(value.name)) && text(value.state))
  .map(({ key, value }) => ({ kind, key, name: value.name, sql: text(value.sql), state: text(value.state), why: text(value.why) || text(value.rights), rows: value.rows === undefined ? undefined : number(value.rows), raised: number(value.raised) }));

/** Views and alerts that the lake keeps up to date, with how they are. */
export function ViewsAndAlerts({ sql }) {
  const [rows, setRows] = useState([]), [looks, setLooks] = useState(0);
  useEffect(() => {
    let live = true;
    const look = () => Promise.all(Object.entries(ROOTS).map(([kind, root]) => bus.get(`${root}/**`).then(({ rows }) => viewsOf(kind, rows), () => []))).then((found) => live && setRows(found.flat()));
    look();
    const timer = setInterval(look, 5000);
    return () => { live = false; clearInterval(timer); };
  }, [looks]);
  const again = () => setLooks((n) => n + 1);
  const how = (one) => one.why ? `${one.state}: ${one.why}` : `${one.state}${one.rows !== undefined ? `, ${one.rows} rows` : ""}${one.raised ? `, ${one.raised} raised` : ""}`;
  return html`${rows.length === 0 ? html`<p class="dim">No views or alerts here yet. One is made below, or with <code>zenlake lake view create NAME "SELECT …"</code>; its rows are keys on the bus.</p>` : html`
    <div class="wider"><table id="continuous"><thead><tr><th>kind</th><th>name</th><th>question</th><th>how it is</th><th>do</th></tr></thead><tbody>${rows.map((one) => html`<tr key=${one.key}><td>${one.kind}</td><td><${Link} view="ask" route=${{ kind: "get", q: `${one.kind}/${one.name}/**` }}>${one.name}<//></td><td>${one.sql ? html`<a href=${"#/ask?" + new URLSearchParams({ kind: "sql", q: one.sql })}>${one.sql.slice(0, 160)}</a>` : html`<span class="dim">hidden: it may name keys that you may not read</span>`}</td><td class=${one.why || one.state === "stopped" ? "bad" : one.raised ? "hot" : "good"}>${how(one)}</td><td>${one.kind === "alert" && html`<${Backtest} name=${one.name} /> `}<${Drop} root=${ROOTS[one.kind]} name=${one.name} done=${again} /></td></tr>`)}</tbody></table></div>`}
    <${Create} key=${sql} sql=${sql} done=${again} />`;
}
