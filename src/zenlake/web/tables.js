// Tables of keys: which ones the keys made, and the keys without one; made, changed, renamed, merged and removed here.
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import * as bus from "./bus.js";
import { isRecord, number, record, records, text, texts } from "./checked.js";
import { Drop, NAME } from "./continuous.js";

const ROOT = "@lake/tables", NOTHING = { name: "", format: "", encoding: "", was: "" };
const put = (name, table) => bus.put(`${ROOT}/${name}`, JSON.stringify(table), "application/json");
const made = (found) => (found === true ? "by itself" : found === false ? "by command" : "");

/** What is drawn of the tables in an answer: those that have keys. `lake.json5` alone changes the ones without `found`. */
const tablesOf = (rows) => rows.map(({ key, value }) => ({ name: key.split("/").pop(), ...of(record(value)) })).filter((one) => NAME.test(one.name) && one.format).sort((a, b) => a.name.localeCompare(b.name));
const of = (value) => ({ format: text(value.format), encoding: text(value.encoding), rows: number(value.rows), made: made(value.found) });

/** What is drawn of the keys without a table: how many wait, and the others by reason. */
const withoutOf = (rows) => {
  const good = rows.filter(({ key, value }) => key !== "ERROR" && isRecord(value)).map(({ value }) => value);
  return { waiting: good.reduce((sum, one) => sum + number(one.waiting), 0), reasons: good.flatMap((one) => records(one.without_table)).map((one) => ({ reason: text(one.reason), count: number(one.count), examples: texts(one.examples) })) };
};

/** A form that makes a table, or changes the one of that name; `said` is what is in its fields. The table that it `was` gets another name. */
function Edit({ box, said, setSaid, known, done }) {
  const [why, setWhy] = useState(""), [busy, setBusy] = useState(false), renames = said.was !== "" && said.was !== said.name;
  const save = (event) => {
    event.preventDefault(); setBusy(true); setWhy("");
    put(said.name, renames ? { from: said.was } : { format: said.format, encoding: said.encoding || null })
      .then(() => { setSaid(NOTHING); done(); }, (error) => setWhy(error.message)).finally(() => setBusy(false));
  };
  const field = (name, more) => html`<input name=${name} value=${said[name]} onInput=${(e) => setSaid((one) => ({ ...one, [name]: e.target.value }))} spellcheck="false" ...${more} />`;
  return html`<details id="edit-table" ref=${box}><summary>Add or change a table</summary>
    <form onSubmit=${save}>
      <label>Name${field("name", { required: true, pattern: "[a-z][a-z0-9_]*", placeholder: "climate", title: "lower-case letters, digits and _" })}</label>
      <label class="wide">Keys${field("format", { required: true, disabled: renames, placeholder: "home/${room}/temp" })}</label>
      <label>Encoding of payloads${field("encoding", { disabled: renames, placeholder: "as samples say" })}</label>
      <button class="main" disabled=${busy}>${busy ? "filling…" : renames ? `Rename ${said.was}` : known.includes(said.name) ? "Change" : "Add"}</button></form>
    ${why && html`<p class="bad" role="alert">${why}</p>`}</details>`;
}

/** Gives a table the keys of another one, which goes; a choice, and a click. */
function Merge({ name, others, done }) {
  const [other, setOther] = useState(""), [why, setWhy] = useState(""), [busy, setBusy] = useState(false);
  const merge = () => { setBusy(true); setWhy(""); put(name, { merge: other }).then(() => { setOther(""); done(); }, (error) => setWhy(error.message)).finally(() => setBusy(false)); };
  return html`<select aria-label=${`Merge into ${name}`} value=${other} onChange=${(e) => { setOther(e.target.value); setWhy(""); }}><option value="">Merge…</option>${others.map((one) => html`<option value=${one}>${one}</option>`)}</select>${other && html` <button type="button" disabled=${busy} onClick=${merge}>${busy ? "filling…" : `Merge ${other} into ${name}`}</button>`}${why && html` <span class="bad" role="alert">${why}</span>`}`;
}

/** The tables in an answer of a lake, and the keys that have none; `done` is called when one was changed. */
export function Tables({ rows, done }) {
  const [without, setWithout] = useState(withoutOf([])), [said, setSaid] = useState(NOTHING), [changes, setChanges] = useState(0), box = useRef(null);
  useEffect(() => {
    let live = true;
    const look = () => bus.get("@lake/without_table").then(({ rows }) => live && setWithout(withoutOf(rows)), () => {});
    look();
    const timer = setInterval(look, 5000);
    return () => { live = false; clearInterval(timer); };
  }, [changes]);
  const tables = tablesOf(rows), mine = tables.filter((one) => one.made).map((one) => one.name), again = () => { setChanges((n) => n + 1); done(); };
  const begin = (given) => { setSaid({ ...NOTHING, ...given }); box.current.open = true; box.current.querySelector("input").focus(); };
  return html`${tables.length === 0 ? html`<p class="dim">No tables of keys here yet. Keys that differ in names and numbers alone get one by themselves; another is added below.</p>` : html`
    <div class="wider"><table id="tables"><thead><tr><th>table</th><th>keys</th><th>encoding</th><th>rows</th><th>made</th><th>do</th></tr></thead><tbody>${tables.map((one) => html`<tr key=${one.name}><td>${one.name}</td><td>${one.format}</td><td>${one.encoding || html`<span class="dim">as samples say</span>`}</td><td>${one.rows.toLocaleString("en")}</td><td>${one.made || html`<span class="dim">in lake.json5</span>`}</td><td>${one.made && html`<button type="button" aria-label=${`Change ${one.name}`} onClick=${() => begin({ name: one.name, format: one.format, encoding: one.encoding, was: one.name })}>Change</button> ${mine.length > 1 && html`<${Merge} name=${one.name} others=${mine.filter((other) => other !== one.name)} done=${again} />`} <${Drop} root=${ROOT} name=${one.name} done=${again} verb="Remove" goes="its rows" />`}</td></tr>`)}</tbody></table></div>`}
    <${Edit} box=${box} said=${said} setSaid=${setSaid} known=${mine} done=${again} />
    ${(without.reasons.length > 0 || without.waiting > 0) && html`<h3>Keys without a table</h3>`}
    ${without.waiting > 0 && html`<p class="dim">${without.waiting} new keys wait for their siblings</p>`}
    ${without.reasons.length > 0 && html`<div class="wider"><table id="without"><thead><tr><th>why</th><th>keys</th><th>examples; a click starts a table</th></tr></thead><tbody>${without.reasons.slice(0, 50).map((one) => html`<tr><td>${one.reason}</td><td>${one.count.toLocaleString("en")}</td><td>${one.examples.slice(0, 10).map((key) => html`<button type="button" class="number" onClick=${() => begin({ format: key })}>${key}</button> `)}</td></tr>`)}</tbody></table></div>`}`;
}
