// Map: routers, peers, clients and their links, as far as the admin spaces tell.
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import * as bus from "./bus.js";
import { decode } from "./decode.js";

const SHAPES = { router: ["#0b7fab", 14], peer: ["#5aa469", 10], client: ["#c9852b", 8], device: ["#b565a7", 7] };

async function picture() {
  const { rows } = await bus.get("@/*/*", "_stats=true");
  const nodes = new Map(), links = new Map();
  const node = (zid, kind) => { const found = nodes.get(zid) ?? { id: zid, kind, about: null }; nodes.set(zid, found); return found; };
  for (const row of rows) {
    const kind = row.key.split("/")[2], about = decode(row).value;
    if (!about?.zid) continue;
    Object.assign(node(about.zid, kind), { kind, about });
    for (const one of about.sessions ?? []) {
      node(one.peer ?? one.zid, one.whatami);
      const ends = [about.zid, one.peer ?? one.zid].sort();
      links.set(ends.join(), { source: ends[0], target: ends[1], about: one });
    }
  }
  return { nodes: [...nodes.values()], links: [...links.values()].filter((l) => nodes.has(l.source) && nodes.has(l.target)) };
}

export function Map_() {
  const [seen, setSeen] = useState(null), [chosen, setChosen] = useState(null), [why, setWhy] = useState(""), [reasons, setReasons] = useState(null);
  const places = useRef(new Map());
  const [, draw] = useState(0);
  useEffect(() => {
    let live = true, simulation = null;
    const look = async () => {
      try {
        const found = await picture();
        if (!live) return;
        for (const one of found.nodes) { const old = places.current.get(one.id); if (old) Object.assign(one, { x: old.x, y: old.y }); }
        places.current = new Map(found.nodes.map((one) => [one.id, one]));
        simulation?.stop();
        const d3 = window.d3;
        simulation = d3.forceSimulation(found.nodes).force("link", d3.forceLink(found.links).id((n) => n.id).distance(110)).force("charge", d3.forceManyBody().strength(-260)).force("x", d3.forceX(400)).force("y", d3.forceY(250)).stop();
        for (let i = 0; i < 120; i++) simulation.tick();
        setSeen(found); setWhy(""); draw((n) => n + 1);
      } catch (error) { if (live) setWhy(error.message); }
    };
    look();
    const timer = setInterval(look, 5000);
    return () => { live = false; clearInterval(timer); };
  }, []);
  const ask = async (event) => { event.preventDefault(); try { const { rows } = await bus.get(`@/*/*/why/${new FormData(event.target).get("key")}`); setReasons(rows); } catch (error) { setReasons([]); setWhy(error.message); } };
  return html`<div class="split"><section class="panel" aria-label="Network">
      ${why && html`<p class="bad" role="alert">${why}</p>`}
      ${seen && seen.nodes.length === 0 && html`<p>No admin space answers. Start the router with <code>adminspace.enabled: true</code>, as <code>zenlake router</code> does.</p>`}
      ${seen && html`<p class="dim" role="status">${seen.nodes.length} nodes, ${seen.links.length} sessions</p>
      <svg class="map" viewBox="0 0 800 500" role="group" aria-label="Map of nodes">
        ${seen.links.map((l) => html`<line x1=${l.source.x} y1=${l.source.y} x2=${l.target.x} y2=${l.target.y} />`)}
        ${seen.nodes.map((n) => { const [colour, size] = SHAPES[n.kind] ?? SHAPES.client; return html`<g role="button" tabindex="0" aria-label=${`${n.kind} ${n.id.slice(0, 8)}`} transform=${`translate(${n.x},${n.y})`} onClick=${() => setChosen(n)} onKeyDown=${(e) => e.key === "Enter" && setChosen(n)}><circle r=${size} fill=${colour} /><text x=${size + 3} y="4">${n.kind} ${n.id.slice(0, 8)}</text></g>`; })}
      </svg>`}
    </section><section class="panel" aria-label="Details" style="flex:0 1 24rem">
      ${chosen ? html`<h2>${chosen.kind} ${chosen.id}</h2><pre tabindex="0">${JSON.stringify(chosen.about ?? { note: "it shows no admin space; what its neighbours say of it", sessions: seen.links.filter((l) => l.source.id === chosen.id || l.target.id === chosen.id).map((l) => l.about) }, null, 2)}</pre>` : html`<p class="dim">Choose a node for its sessions, links, traffic and drops.</p>`}
      <h3>Why does a key flow, or not?</h3>
      <form onSubmit=${ask}><label class="wide">Key<input name="key" required /></label><button>Why</button></form>
      ${reasons && (reasons.length ? html`<pre tabindex="0">${reasons.map((row) => row.key.split("/")[1].slice(0, 8) + "\n" + JSON.stringify(row.value, null, 2)).join("\n")}</pre>` : html`<p>no node answers</p>`)}
    </section></div>`;
}
