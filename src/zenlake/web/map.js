// Map: routers, peers, clients and their links, as far as the admin spaces tell.
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import * as bus from "./bus.js";
import { Guard, list, nodeOf, number, record, records, text, written } from "./checked.js";
import { decode } from "./decode.js";

const SHAPES = { router: ["#0b7fab", 14], peer: ["#5aa469", 10], client: ["#c9852b", 8], device: ["#b565a7", 7] };

const per = (n) => (n < 1000 ? `${n.toFixed(0)} B/s` : n < 1e6 ? `${(n / 1e3).toFixed(1)} kB/s` : `${(n / 1e6).toFixed(1)} MB/s`);
const total = (one, names) => names.reduce((sum, name) => sum + number(one?.stats?.[name]), 0);
const drops = (one) => Object.values({ ...record(one?.stats?.dropped?.rx), ...record(one?.stats?.dropped?.tx) }).reduce((sum, n) => sum + number(n), 0);

/** Nodes and sessions; `before` has the bytes of the last look, for rates. */
async function picture(before) {
  const now = Date.now();
  const [{ rows }, old] = await Promise.all([bus.get("@/*/*", "_stats=true"), bus.get("@/*/z18/**").catch(() => ({ rows: [] }))]);
  const nodes = new Map(), links = new Map(), odd = [];
  const node = (zid, kind) => { const found = nodes.get(zid) ?? { id: zid, kind, about: null }; nodes.set(zid, found); return found; };
  for (const row of rows) {
    const kind = row.key.split("/")[2], said = decode(row).value, about = nodeOf(said);
    if (row.key === "ERROR") continue;
    if (!about) { odd.push(row.key); continue; }
    Object.assign(node(about.zid, kind), { kind, about: said, name: about.name });
    for (const one of about.sessions) {
      node(one.peer, one.whatami);
      const ends = [about.zid, one.peer].sort(), id = ends.join(), bytes = total(one, ["rx_bytes", "tx_bytes"]), last = before.get(id);
      links.set(id, { source: ends[0], target: ends[1], about: one, bytes, at: now, rate: last ? (1000 * Math.max(0, bytes - last.bytes)) / Math.max(1, now - last.at) : 0, lost: drops(one) });
    }
  }
  // Devices of the 2018 protocol, behind the broker of their router.
  for (const row of old.rows) {
    const [, zid, , kind, pid] = row.key.split("/");
    if (!/^sessions?$/.test(kind ?? "") || !pid || !nodes.has(zid)) continue;
    Object.assign(node(`z18/${pid}`, "device"), { about: row.value, name: `2018 ${pid.slice(0, 8)}` });
    links.set(`${zid},z18/${pid}`, { source: zid, target: `z18/${pid}`, about: row.value, bytes: 0, at: now, rate: 0, lost: 0 });
  }
  return { nodes: [...nodes.values()], links: [...links.values()].filter((l) => nodes.has(l.source) && nodes.has(l.target)), bytes: links, odd };
}

const LABEL = 120, EDGE = 30, LEAST = 320;

/** The part of the plane that all nodes and their names are in: what is seen, however many there are and however small the screen is. */
export function frame(nodes) {
  const x = nodes.map((one) => one.x), y = nodes.map((one) => one.y);
  const span = (values, room) => { const from = Math.min(...values) - room, size = Math.max(...values) + room - from, more = Math.max(0, LEAST - size); return [from - more / 2, size + more]; };
  const [left, width] = span(x, LABEL), [top, height] = span(y, EDGE);
  return [left, top, width, height].map(Math.round).join(" ");
}

const title = (n) => n.name ?? `${n.kind} ${n.id.slice(0, 8)}`;

/** What stops a key on its way from one node to another, in the words of the nodes between. */
export function verdict(pages, from, to) {
  const told = [];
  const all = (name) => pages.flatMap((page) => records(page[name]));
  const said = [...all("publishers"), ...all("heard").map((one) => ({ zid: one.from }))].filter((one) => !from || one.zid === from);
  told.push(said.length ? ["good", "publisher: there"] : ["bad", `publisher: ${from ? "this node has declared none, and nothing was heard from it" : "nobody has declared one, and nothing was heard"}`]);
  const wanted = all("subscribers").filter((one) => !to || one.zid === to);
  told.push(wanted.length ? ["good", "subscriber: there"] : ["bad", `subscriber: ${to ? "this node" : "nobody"} has not declared one`]);
  for (const page of pages) for (const one of records(page.neighbours)) {
    for (const [flow, who] of [["ingress", from], ["egress", to]]) {
      if (who && one.zid !== who) continue;
      for (const [message, rule] of Object.entries(record(one[flow]))) if (record(rule).allowed === false) told.push(["bad", `rule (${flow} of ${text(one.zid).slice(0, 8)}, ${message}): ${text(rule.access, "denied")}`]);
    }
    const lost = drops({ stats: { dropped: one.dropped } });
    if (lost && (!to || one.zid === to)) told.push(["hot", `dropped on the way to ${text(one.zid).slice(0, 8)}: ${lost} since its session opened`]);
    if (from && to && one.zid === from) told.push(list(one.goes_to).some((goal) => (goal?.zid ?? goal) === to) || pages.some((page) => page.zid === to) ? ["good", "route: samples pass"] : ["hot", `route: ${text(page.whatami)} ${text(page.zid).slice(0, 8)} passes them on to ${list(one.goes_to).map((goal) => text(goal?.zid ?? goal).slice(0, 8)).join(", ") || "nobody"}`]);
  }
  return told;
}

export function Map_() {
  const [seen, setSeen] = useState(null), [chosen, setChosen] = useState(null), [why, setWhy] = useState(""), [reasons, setReasons] = useState(null), bytes = useRef(new Map());
  const places = useRef(new Map());
  const [, draw] = useState(0);
  useEffect(() => {
    let live = true, simulation = null;
    const look = async () => {
      try {
        const found = await picture(bytes.current);
        if (!live) return;
        bytes.current = found.bytes;
        for (const one of found.nodes) { const old = places.current.get(one.id); if (old) Object.assign(one, { x: old.x, y: old.y }); }
        places.current = new Map(found.nodes.map((one) => [one.id, one]));
        simulation?.stop();
        const d3 = window.d3;
        simulation = d3.forceSimulation(found.nodes).force("link", d3.forceLink(found.links).id((n) => n.id).distance(170)).force("charge", d3.forceManyBody().strength(-600)).force("x", d3.forceX(400)).force("y", d3.forceY(250)).stop();
        for (let i = 0; i < 120; i++) simulation.tick();
        setSeen(found); setWhy(""); draw((n) => n + 1);
      } catch (error) { if (live) setWhy(error.message); }
    };
    look();
    const timer = setInterval(look, 3000);
    return () => { live = false; clearInterval(timer); };
  }, []);
  const ask = async (event) => { event.preventDefault(); const asked = new FormData(event.target); try { const { rows } = await bus.get(`@/*/*/why/${asked.get("key")}`); setReasons(rows.length ? verdict(records(rows.map((row) => row.value)), asked.get("from"), asked.get("to")) : []); } catch (error) { setReasons([]); setWhy(error.message); } };
  const choice = (name) => html`<label>${name}<select name=${name}><option value="">any node</option>${(seen?.nodes ?? []).filter((n) => n.kind !== "device").map((n) => html`<option value=${n.id}>${title(n)}</option>`)}</select></label>`;
  return html`<div class="split"><section class="panel" aria-label="Network">
      ${why && html`<p class="bad" role="alert">${why}</p>`}
      ${seen && seen.odd.length > 0 && html`<p class="hot" role="status">odd answer from ${seen.odd.slice(0, 5).join(", ")}</p>`}
      ${seen && seen.nodes.length === 0 && html`<p>No admin space answers. Start the router with <code>adminspace.enabled: true</code>, as <code>zenlake router</code> does.</p>`}
      ${seen && html`<p class="dim" role="status">${seen.nodes.length} nodes, ${seen.links.length} sessions</p>
      <svg class="map" viewBox=${seen.nodes.length ? frame(seen.nodes) : "0 0 800 500"} role="group" aria-label="Map of nodes">
        ${seen.links.map((l) => html`<line class=${l.lost ? "lost" : ""} x1=${l.source.x} y1=${l.source.y} x2=${l.target.x} y2=${l.target.y} stroke-width=${1 + Math.min(6, Math.log10(1 + l.rate))} />`)}
        ${seen.links.map((l) => html`<text class="rate" x=${(l.source.x + l.target.x) / 2} y=${(l.source.y + l.target.y) / 2 - 4}>${l.lost ? `${l.lost} dropped` : l.rate ? per(l.rate) : ""}</text>`)}
        ${seen.nodes.map((n) => { const [colour, size] = SHAPES[n.kind] ?? SHAPES.client; return html`<g role="button" tabindex="0" aria-label=${title(n) === n.name ? `${n.kind} ${n.name}` : title(n)} transform=${`translate(${n.x},${n.y})`} onClick=${() => setChosen(n)} onKeyDown=${(e) => e.key === "Enter" && setChosen(n)}><circle r=${size} fill=${colour} /><text x=${n.x < 400 ? -size - 4 : size + 4} y="4" text-anchor=${n.x < 400 ? "end" : "start"}>${title(n)}</text></g>`; })}
      </svg>`}
    </section><section class="panel" aria-label="Details" style="flex:0 1 24rem">
      ${chosen ? html`<${Guard} key=${chosen.id} name=${chosen.id}><h2>${chosen.kind} ${chosen.id}</h2><pre tabindex="0">${written(chosen.about ?? { note: "it shows no admin space; what its neighbours say of it", sessions: seen.links.filter((l) => l.source.id === chosen.id || l.target.id === chosen.id).map((l) => l.about) }, 2)}</pre><//>` : html`<p class="dim">Choose a node for its sessions, links, traffic and drops.</p>`}
      <h3>Why does a key flow, or not?</h3>
      <form onSubmit=${ask}><label class="wide">Key<input name="key" required /></label>${choice("from")}${choice("to")}<button>Why</button></form>
      ${reasons && (reasons.length ? html`<ul id="why">${reasons.map(([how, said]) => html`<li class=${how}>${said}</li>`)}</ul>` : html`<p>no node answers</p>`)}
    </section></div>`;
}
