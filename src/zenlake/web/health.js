// Health: the node, its sessions and services, and the service that it is a part of.
import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as bus from "./bus.js";

const size = (n) => { const names = ["B", "kB", "MB", "GB", "TB"]; let at = 0; while (n >= 1000 && at < 4) { n /= 1000; at++; } return `${at ? n.toFixed(1) : n} ${names[at]}`; };
const told = (name, v) => { if (typeof v !== "number") return String(v); if (/bytes|^size$|^budget$|memory|free|total/.test(name)) return size(Math.round(v)) + (/per.s/.test(name) ? "/s" : ""); return Number.isInteger(v) ? v.toLocaleString("en") : v.toFixed(1); };
const Facts = ({ of }) => html`<table class="facts"><tbody>${Object.entries(of).filter(([, v]) => v !== null && v !== undefined && v !== "").map(([name, v]) => html`<tr><th scope="row">${name.replaceAll("_", " ")}</th><td>${typeof v === "object" ? html`<pre>${JSON.stringify(v, null, 1)}</pre>` : told(name, v)}</td></tr>`)}</tbody></table>`;
/** What a session could not take or was not given: who is slow shows here. */
const dropped = (one) => Object.values({ ...one.stats?.dropped?.rx, ...one.stats?.dropped?.tx }).reduce((sum, n) => sum + (Number(n) || 0), 0);
/** The keys that a neighbour subscribes to: of these are the samples that it did not get. */
export const asked = (rows, peer) => rows.filter(({ value }) => [...(value?.clients ?? []), ...(value?.peers ?? []), ...(value?.routers ?? [])].includes(peer)).map(({ key }) => key.split("/subscriber/")[1]).slice(0, 5);
const Card = ({ name, children }) => html`<section class="card" aria-label=${name} tabindex="0"><h2>${name}</h2>${children}</section>`;

const many = (value) => (Array.isArray(value) ? value.length : Number(value) || 0);
const Ledger = ({ of }) => {
  const sources = of.value.sources.slice(0, 50), missing = sources.reduce((sum, one) => sum + many(one.missing), 0);
  return html`<h3>${of.key.split("/")[1]}</h3><p class=${missing ? "bad" : "good"}>${missing ? `gaps: ${missing} samples are missing` : "nothing is missing"}, ${of.value.sources.length} sources${of.value.totals?.healed ? html`, <span class="good">${of.value.totals.healed} healed</span>` : ""}${of.value.totals?.unprovable_rows ? html`, <span class="dim">${of.value.totals.unprovable_rows} samples without numbers</span>` : ""}</p>
    ${sources.length > 0 && html`<table><thead><tr><th>source</th><th>missing</th><th>healed</th></tr></thead><tbody>${sources.map((one) => html`<tr><td>${one.key ?? one.source}</td><td class=${many(one.missing) ? "bad" : "good"}>${many(one.missing)}</td><td>${many(one.healed)}</td></tr>`)}</tbody></table>`}`;
};

export function Health() {
  const [found, setFound] = useState(null), [why, setWhy] = useState(""), [config, setConfig] = useState(null), [events, setEvents] = useState([]), [ledgers, setLedgers] = useState([]), [subscribers, setSubscribers] = useState([]);
  useEffect(() => {
    const look = () => {
      bus.status().then((one) => { setFound(one); setWhy(""); if ((one.node.sessions ?? []).some(dropped)) bus.get("@/local/router/subscriber/**").then(({ rows }) => setSubscribers(rows)).catch(() => {}); }).catch((error) => setWhy(error.message));
      bus.get("@journal/*/ledger").then(({ rows }) => setLedgers(rows.filter((row) => row.value?.sources))).catch(() => {});
      bus.get("@/local/router/events").then(({ rows }) => setEvents(rows.flatMap((row) => (Array.isArray(row.value) ? row.value : [])))).catch(() => {});
    };
    look();
    bus.get("@/local/router/config").then(({ rows }) => rows[0] && setConfig(rows[0].value)).catch(() => {});
    const timer = setInterval(look, 2000);
    return () => clearInterval(timer);
  }, []);
  if (why) return html`<p class="bad" role="alert">${why}</p>`;
  if (!found) return html`<p>looking…</p>`;
  const service = found.service, node = found.node, stats = node.stats ?? {}, journal = service?.journal, lake = service?.lake;
  const storages = Object.entries(found.services).filter(([key]) => key.includes("/storages/"));
  const wanted = (peer) => asked(subscribers, peer);
  const clients = Object.entries(found.services).filter(([key]) => key.includes("/clients/"));
  return html`<div class="grid">
    <${Card} name="Node"><${Facts} of=${{ id: found.zid, mode: found.mode, version: node.version, uptime: `${Math.round(found.uptime)} s`, listens: (node.locators ?? []).join(" ") }} /><//>
    <${Card} name="Sessions">${node.sessions?.length ? html`<table><thead><tr><th>kind</th><th>id and link</th><th>received</th><th>dropped</th></tr></thead><tbody>${node.sessions.map((one) => html`<tr><td>${one.whatami}</td><td>${(one.peer ?? "").slice(0, 8)}<div class="link">${(one.links ?? []).map((l) => l.dst.split("/").pop()).join(" ")}</div></td><td>${size(one.stats?.rx_bytes ?? 0)}</td><td class=${dropped(one) ? "bad" : ""}>${dropped(one)}${dropped(one) && wanted(one.peer).length ? html`<div class="link">${wanted(one.peer).join(" ")}</div>` : ""}</td></tr>`)}</tbody></table>` : html`<p>Nobody is connected. Programs on this machine find the router by themselves.</p>`}<//>
    <${Card} name="Traffic and drops"><${Facts} of=${{ "received bytes": stats.rx_bytes, "received messages": stats.rx_messages, "sent bytes": stats.tx_bytes, "sent messages": stats.tx_messages }} />
      <h3>Dropped, by reason</h3>${Object.keys({ ...stats.dropped?.rx, ...stats.dropped?.tx }).length ? html`<${Facts} of=${{ ...stats.dropped.rx, ...stats.dropped.tx }} />` : html`<p class="good">nothing</p>`}<//>
    <${Card} name="Denied, refused, slow">${events.length ? html`<table><thead><tr><th>when</th><th>what</th></tr></thead><tbody>${events.slice(0, 20).map((one) => html`<tr><td>${told("", one.last_seconds_ago ?? 0)} s ago</td><td>${one.kind}${one.count > 1 ? ` (${one.count}×)` : ""}: ${one.user || one.peer}${one.key ? ` on ${one.key}` : ""}: ${one.reason}</td></tr>`)}</tbody></table>` : html`<p class="good">nobody</p>`}<//>
    <${Card} name="Ledger">${ledgers.map((row) => html`<${Ledger} of=${row} />`)}${ledgers.length ? "" : journal ? html`<p class=${journal.missing ? "bad" : "good"}>${journal.missing ?? 0} missing, ${journal.healed ?? 0} healed</p>` : html`<p>No journal is recorded here. <code>zenlake up</code> records, and proves what never came.</p>`}<//>
    <${Card} name="Journal">${journal ? html`<${Facts} of=${ledgers.length ? { ...journal, missing: undefined, healed: undefined } : journal} />` : html`<p>Start <code>zenlake up</code>.</p>`}<//>
    <${Card} name="Lake">${lake ? html`<p class=${(lake.behind ?? lake.lag ?? 0) > 100000 ? "bad" : "good"}>${told("", lake.behind ?? lake.lag ?? 0)} rows behind${lake.freshness !== undefined && lake.freshness !== null ? `, fresh to ${told("", lake.freshness)} s` : ""}</p><${Facts} of=${lake} />` : html`<p>No lake is fed from here. <code>zenlake up</code> starts one.</p>`}<//>
    <${Card} name="Storages">${storages.length ? storages.map(([key, value]) => html`<h3>${key.split("/").pop()}</h3><${Facts} of=${value} />`) : html`<p>None. <code>zenlake storage add</code> makes one.</p>`}<//>
    <${Card} name="Browsers and Node">${clients.length ? clients.map(([, value]) => html`<${Facts} of=${value} />`) : html`<p class="dim">no client of the remote API</p>`}<//>
    ${service && html`<${Card} name="Parts"><table><tbody>${(service.parts ?? []).map((one) => html`<tr><th scope="row">${one.name}</th><td class=${one.state === "up" ? "good" : "hot"}>${one.state}</td><td>${one.restarts} restarts</td></tr>`)}</tbody></table><//>`}
    ${config && html`<${Card} name="Configuration"><details><summary>All of it</summary><pre tabindex="0">${JSON.stringify(config, null, 1)}</pre></details><//>`}
  </div>`;
}
