// Health: the node, its sessions and services, and the service that it is a part of.
import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as bus from "./bus.js";
import { Drawn, Guard, isRecord, list, number, record, records, text, texts, written } from "./checked.js";

const size = (n) => { const names = ["B", "kB", "MB", "GB", "TB"]; let at = 0; while (n >= 1000 && at < 4) { n /= 1000; at++; } return `${at ? n.toFixed(1) : n} ${names[at]}`; };
const told = (name, v) => { if (typeof v !== "number") return String(v); if (/bytes|^size$|^budget$|memory|free|total/.test(name)) return size(Math.round(v)) + (/per.s/.test(name) ? "/s" : ""); return Number.isInteger(v) ? v.toLocaleString("en") : v.toFixed(1); };
const Facts = ({ of }) => html`<table class="facts"><tbody>${Object.entries(record(of)).filter(([, v]) => v !== null && v !== undefined && v !== "").map(([name, v]) => html`<tr><th scope="row">${name.replaceAll("_", " ")}</th><td>${typeof v === "object" ? html`<pre>${written(v, 1)}</pre>` : told(name, v)}</td></tr>`)}</tbody></table>`;
/** What a session could not take or was not given: who is slow shows here. */
const dropped = (one) => Object.values(reasons(one.stats)).reduce((sum, n) => sum + n, 0);
/** Of these nobody misses anything: what came twice, and replies that nobody waits for any more. */
const HARMLESS = ["ignored", "duplicate"];
const lossy = (one) => Object.entries(reasons(one.stats)).some(([reason, n]) => n && !HARMLESS.includes(reason));
/** What was dropped in both directions, by reason. */
export const reasons = (stats) => { const sums = {}; for (const way of [stats?.dropped?.rx, stats?.dropped?.tx]) for (const [reason, n] of Object.entries(record(way))) sums[reason] = (sums[reason] ?? 0) + number(n); return sums; };
/** Reasons of drops in other words. */
const WORDS = { ignored: "came too late, or made no sense", duplicate: "came twice", incomplete: "a part of it never came", congestion: "not read fast enough", oversized: "too large for a low-latency session", full: "a program here does not take it", oldest: "a ring here kept newer ones", websocket: "a browser is too slow", events: "a reader of events is too slow" };
const Drops = ({ of }) => html`<table><thead><tr><th>key</th><th>why</th><th>dropped</th></tr></thead><tbody>${records(of.keys).slice(0, 20).map((row) => html`<tr><td class="key">${text(row.key)}</td><td>${text(row.reason)}</td><td class="bad">${of.estimate ? "≈ " : ""}${number(row.dropped).toLocaleString("en")}</td></tr>`)}</tbody></table>${of.keys.length > 20 ? html`<p class="dim">and ${of.keys.length - 20} more</p>` : ""}`;
const Card = ({ name, children }) => html`<section class="card" aria-label=${name} tabindex="0"><h2>${name}</h2><${Guard}><${Drawn} by=${children} /><//></section>`;

const many = (value) => (Array.isArray(value) ? value.length : Number(value) || 0);
const Ledger = ({ of }) => {
  const all = records(of.value.sources), sources = all.slice(0, 50), missing = sources.reduce((sum, one) => sum + many(one.missing), 0);
  // A robot that came back as new is another source of the same key.
  const key = (one) => text(one.key ?? one.source), often = {};
  for (const one of sources) often[key(one)] = (often[key(one)] ?? 0) + 1;
  return html`<h3>${of.key.split("/")[1]}</h3><p class=${missing ? "bad" : "good"}>${missing ? `gaps: ${missing} samples are missing` : "nothing is missing"}, ${all.length} sources${number(of.value.totals?.healed) ? html`, <span class="good">${number(of.value.totals.healed)} healed</span>` : ""}${number(of.value.totals?.unprovable_rows) ? html`, <span class="dim">${number(of.value.totals.unprovable_rows)} samples without numbers</span>` : ""}</p>
    ${sources.length > 0 && html`<table><thead><tr><th>source</th><th>missing</th><th>healed</th></tr></thead><tbody>${sources.map((one) => html`<tr><td>${key(one)}${often[key(one)] > 1 ? html`<div class="link">${text(one.source)}</div>` : ""}</td><td class=${many(one.missing) ? "bad" : "good"}>${many(one.missing)}</td><td>${many(one.healed)}</td></tr>`)}</tbody></table>`}`;
};

export function Health() {
  const [found, setFound] = useState(null), [why, setWhy] = useState(""), [config, setConfig] = useState(null), [events, setEvents] = useState([]), [ledgers, setLedgers] = useState([]), [drops, setDrops] = useState(null);
  useEffect(() => {
    const look = () => {
      bus.status().then((one) => { setFound(one); setWhy(""); }).catch((error) => setWhy(error.message));
      bus.get("@journal/*/ledger").then(({ rows }) => setLedgers(rows.filter((row) => Array.isArray(row.value?.sources)))).catch(() => {});
      bus.get("@/local/router/drops").then(({ rows }) => Array.isArray(rows[0]?.value?.keys) && setDrops(rows[0].value)).catch(() => {});
      bus.get("@/local/router/events").then(({ rows }) => setEvents(rows.flatMap((row) => records(row.value)))).catch(() => {});
    };
    look();
    bus.get("@/local/router/config").then(({ rows }) => rows[0] && setConfig(rows[0].value)).catch(() => {});
    const timer = setInterval(look, 2000);
    return () => clearInterval(timer);
  }, []);
  if (why) return html`<p class="bad" role="alert">${why}</p>`;
  if (!found) return html`<p>looking…</p>`;
  const service = isRecord(found.service) ? found.service : null, node = record(found.node), stats = record(node.stats), journal = service?.journal, lake = service?.lake;
  const storages = Object.entries(record(found.services)).filter(([key]) => key.includes("/storages/"));
  const lost = (peer) => records(records(drops?.sessions).find((one) => one.peer === peer)?.keys).slice(0, 5).map((row) => text(row.key));
  const clients = Object.entries(record(found.services)).filter(([key]) => key.includes("/clients/"));
  return html`<div class="grid">
    <${Card} name="Node">${() => html`<${Facts} of=${{ id: found.zid, mode: found.mode, version: node.version, uptime: `${Math.round(found.uptime)} s`, listens: texts(node.locators).join(" ") }} />`}<//>
    <${Card} name="Sessions">${() => html`${records(node.sessions).length ? html`<table><thead><tr><th>kind</th><th>id and link</th><th>received</th><th>dropped</th></tr></thead><tbody>${records(node.sessions).map((one) => html`<tr><td>${text(one.whatami)}</td><td>${text(one.peer).slice(0, 8)}<div class="link">${records(one.links).map((l) => text(l.dst).split("/").pop()).join(" ")}</div></td><td>${size(number(one.stats?.rx_bytes))}</td><td class=${lossy(one) ? "bad" : ""}>${dropped(one)}${lost(one.peer).length ? html`<div class="link">${lost(one.peer).join(" ")}</div>` : ""}</td></tr>`)}</tbody></table>` : html`<p>Nobody is connected. Programs on this machine find the router by themselves.</p>`}`}<//>
    <${Card} name="Traffic and drops">${() => html`<${Facts} of=${{ "received bytes": stats.rx_bytes, "received messages": stats.rx_messages, "sent bytes": stats.tx_bytes, "sent messages": stats.tx_messages }} />
      <h3>Dropped, by reason</h3>${Object.keys(reasons(stats)).length ? html`<table class="facts"><tbody>${Object.entries(reasons(stats)).map(([reason, n]) => html`<tr><th scope="row">${reason}${WORDS[reason] ? html`<div class="link">${WORDS[reason]}</div>` : ""}</th><td>${told("", n)}</td></tr>`)}</tbody></table>` : html`<p class="good">nothing</p>`}
      ${drops?.keys.length ? html`<h3>Dropped, by key</h3><${Drops} of=${drops} />` : ""}`}<//>
    <${Card} name="Denied, refused, slow">${() => html`${events.length ? html`<table><thead><tr><th>when</th><th>what</th></tr></thead><tbody>${events.slice(0, 20).map((one) => html`<tr><td>${told("", number(one.last_seconds_ago))} s ago</td><td>${text(one.kind)}${number(one.count) > 1 ? ` (${one.count}×)` : ""}: ${text(one.user) || text(one.peer)}${text(one.key) ? ` on ${text(one.key)}` : ""}: ${text(one.reason)}</td></tr>`)}</tbody></table>` : html`<p class="good">nobody</p>`}`}<//>
    <${Card} name="Ledger">${() => html`${ledgers.map((row) => html`<${Ledger} of=${row} />`)}${ledgers.length ? "" : journal ? html`<p class=${number(journal.missing) ? "bad" : "good"}>${number(journal.missing)} missing, ${number(journal.healed)} healed</p>` : html`<p>No journal is recorded here. <code>zenlake up</code> records, and proves what never came.</p>`}`}<//>
    <${Card} name="Journal">${() => html`${journal ? html`<${Facts} of=${ledgers.length ? { ...journal, missing: undefined, healed: undefined } : journal} />` : html`<p>Start <code>zenlake up</code>.</p>`}`}<//>
    <${Card} name="Lake">${() => html`${lake ? html`<p class=${number(lake.behind ?? lake.lag) > 100000 ? "bad" : "good"}>${told("", number(lake.behind ?? lake.lag))} rows behind${typeof lake.freshness === "number" ? `, fresh to ${told("", lake.freshness)} s` : ""}</p><${Facts} of=${lake} />` : html`<p>No lake is fed from here. <code>zenlake up</code> starts one.</p>`}`}<//>
    <${Card} name="Storages">${() => html`${storages.length ? storages.map(([key, value]) => html`<h3>${key.split("/").pop()}</h3><${Facts} of=${value} />`) : html`<p>None. <code>zenlake storage add</code> makes one.</p>`}`}<//>
    <${Card} name="Browsers and Node">${() => html`${clients.length ? clients.map(([, value]) => html`<${Facts} of=${value} />`) : html`<p class="dim">no client of the remote API</p>`}`}<//>
    ${service && html`<${Card} name="Parts">${() => html`<table><tbody>${records(service.parts).map((one) => html`<tr><th scope="row">${text(one.name)}</th><td class=${one.state === "up" ? "good" : "hot"}>${text(one.state)}</td><td>${number(one.restarts)} restarts</td></tr>`)}</tbody></table>`}<//>`}
    ${config && html`<${Card} name="Configuration">${() => html`<details><summary>All of it</summary><pre tabindex="0">${written(config, 1)}</pre></details>`}<//>`}
  </div>`;
}
