// The page: five views, each with an address.
import { html, render, useEffect, useState } from "./vendor/htm-preact.js";
import { Link, go, here, watch } from "./address.js";
import { setToken, way } from "./bus.js";
import { Ask } from "./ask.js";
import { Guard } from "./checked.js";
import { Health } from "./health.js";
import { Keys, Live } from "./live.js";
import { Map_ } from "./map.js";
import { Time } from "./time.js";

const VIEWS = { live: ["Live", Live], map: ["Map", Map_], ask: ["Ask", Ask], time: ["Time", Time], health: ["Health", Health] };
const keys = new Keys();
keys.start();

const now = () => { const at = here(); return { ...at, view: Object.hasOwn(VIEWS, at.view) ? at.view : "live" }; };

function App() {
  const [at, setAt] = useState(now());
  const [, draw] = useState(0);
  useEffect(() => {
    const pressed = (event) => { if (event.altKey && event.key >= "1" && event.key <= "5") go(Object.keys(VIEWS)[event.key - 1]); };
    const unwatch = watch(() => setAt(now()));
    addEventListener("keydown", pressed);
    const timer = setInterval(() => draw((n) => n + 1), 500);
    return () => { unwatch(); removeEventListener("keydown", pressed); clearInterval(timer); };
  }, []);
  useEffect(() => { document.title = `${VIEWS[at.view][0]} · zenlake`; }, [at.view]);
  const [name, View] = VIEWS[at.view];
  const enter = (event) => { event.preventDefault(); setToken(new FormData(event.target).get("token")); location.reload(); };
  return html`<header><h1>zenlake</h1><nav aria-label="Views">${Object.entries(VIEWS).map(([id, [title]], i) => html`<${Link} view=${id} aria-current=${id === at.view ? "page" : undefined} title=${`Alt+${i + 1}`}>${title}<//>`)}</nav>
      <span class=${"state " + (keys.connected ? "good" : "bad")} role="status" id="state" title=${keys.connected ? `over ${way()}` : keys.why}>${keys.connected ? "connected" : "not connected"}</span></header>
    <main aria-label=${name}>${keys.denied ? html`<form onSubmit=${enter}><label class="wide">This node asks who you are. Your token:<input type="password" name="token" autocomplete="off" /></label><button class="main">Enter</button></form>` : html`<${Guard} key=${at.view} name=${name}><${View} keys=${keys} route=${at.route} own=${at.own} go=${go} /><//>`}</main>`;
}

render(html`<${App} />`, (document.getElementById("app").textContent = "", document.getElementById("app")));
window.zenlake = { keys, way };
