// Health: the node, its sessions and services, and the service that it is a part of.
import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as bus from "./bus.js";

const Facts = ({ of }) => html`<table><tbody>${Object.entries(of).filter(([, v]) => v !== null && v !== undefined && v !== "").map(([name, v]) => html`<tr><th scope="row">${name.replaceAll("_", " ")}</th><td>${typeof v === "object" ? html`<pre>${JSON.stringify(v, null, 1)}</pre>` : String(v)}</td></tr>`)}</tbody></table>`;
const Card = ({ name, children }) => html`<section class="card" aria-label=${name}><h2>${name}</h2>${children}</section>`;

const many = (value) => (Array.isArray(value) ? value.length : Number(value) || 0);
const Ledger = ({ of }) => {
  const sources = of.value.sources.slice(0, 50), missing = sources.reduce((sum, one) => sum + many(one.missing), 0);
  return html`<h3>${of.key.split("/")[1]}</h3><p class=${missing ? "bad" : "good"}>${missing ? "gaps: something is missing" : "complete"}, ${of.value.sources.length} sources</p>
    ${sources.length > 0 && html`<table><thead><tr><th>source</th><th>missing</th><th>healed</th></tr></thead><tbody>${sources.map((one) => html`<tr><td>${one.key ?? one.source}</td><td class=${many(one.missing) ? "bad" : "good"}>${many(one.missing)}</td><td>${many(one.healed)}</td></tr>`)}</tbody></table>`}`;
};

export function Health() {
  const [found, setFound] = useState(null), [why, setWhy] = useState(""), [config, setConfig] = useState(null), [ledgers, setLedgers] = useState([]);
  useEffect(() => {
    const look = () => {
      bus.status().then((one) => { setFound(one); setWhy(""); }).catch((error) => setWhy(error.message));
      bus.get("@journal/*/ledger").then(({ rows }) => setLedgers(rows.filter((row) => row.value?.sources))).catch(() => {});
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
  const clients = Object.entries(found.services).filter(([key]) => key.includes("/clients/"));
  return html`<div class="grid">
    <${Card} name="Node"><${Facts} of=${{ id: found.zid, mode: found.mode, version: node.version, uptime: `${Math.round(found.uptime)} s`, listens: (node.locators ?? []).join(" ") }} /><//>
    <${Card} name="Sessions">${node.sessions?.length ? html`<table><thead><tr><th>kind</th><th>id</th><th>link</th></tr></thead><tbody>${node.sessions.map((one) => html`<tr><td>${one.whatami}</td><td>${(one.peer ?? "").slice(0, 12)}</td><td>${(one.links ?? []).map((l) => l.dst).join(" ")}</td></tr>`)}</tbody></table>` : html`<p>Nobody is connected. Programs on this machine find the router by themselves.</p>`}<//>
    <${Card} name="Traffic and drops"><${Facts} of=${{ "received bytes": stats.rx_bytes, "received messages": stats.rx_messages, "sent bytes": stats.tx_bytes, "sent messages": stats.tx_messages }} />
      <h3>Dropped, by reason</h3>${Object.keys({ ...stats.dropped?.rx, ...stats.dropped?.tx }).length ? html`<${Facts} of=${{ ...stats.dropped.rx, ...stats.dropped.tx }} />` : html`<p class="good">nothing</p>`}<//>
    <${Card} name="Ledger">${ledgers.map((row) => html`<${Ledger} of=${row} />`)}${ledgers.length ? "" : journal ? html`<p class=${journal.missing ? "bad" : "good"}>${journal.missing ?? 0} missing, ${journal.healed ?? 0} healed</p>` : html`<p>No journal is recorded here. <code>zenlake up</code> records, and proves what never came.</p>`}<//>
    <${Card} name="Journal">${journal ? html`<${Facts} of=${journal} />` : html`<p>Start <code>zenlake up</code>.</p>`}<//>
    <${Card} name="Lake">${lake ? html`<${Facts} of=${lake} />` : html`<p>No lake is fed from here. <code>zenlake up</code> starts one.</p>`}<//>
    <${Card} name="Storages">${storages.length ? storages.map(([key, value]) => html`<h3>${key.split("/").pop()}</h3><${Facts} of=${value} />`) : html`<p>None. <code>zenlake storage add</code> makes one.</p>`}<//>
    <${Card} name="Browsers and Node">${clients.length ? clients.map(([, value]) => html`<${Facts} of=${value} />`) : html`<p class="dim">no client of the remote API</p>`}<//>
    ${service && html`<${Card} name="Parts"><table><tbody>${(service.parts ?? []).map((one) => html`<tr><th scope="row">${one.name}</th><td class=${one.state === "up" ? "good" : "hot"}>${one.state}</td><td>${one.restarts} restarts</td></tr>`)}</tbody></table><//>`}
    ${config && html`<${Card} name="Configuration"><details><summary>All of it</summary><pre tabindex="0">${JSON.stringify(config, null, 1)}</pre></details><//>`}
  </div>`;
}
