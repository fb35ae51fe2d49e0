// The address of the page: the view, the question, and whether this page made the address.
import { html } from "./vendor/htm-preact.js";

/** What entries of the browser's history have as their state if this page made them. It is in memory only: a page elsewhere, another tab and a reload cannot say it. */
let mark = "";

const addressOf = (view, route) => { const query = new URLSearchParams(route).toString(); return `#/${view}${query ? "?" + query : ""}`; };

/** The view and the question of the address; `own`: whether a click here made it, so that it may be asked. Any page elsewhere can lead here, and a question reaches queryables. */
export function here() {
  const [view, query = ""] = location.hash.replace(/^#\//, "").split("?");
  return { view, route: new URLSearchParams(query), own: mark !== "" && history.state === mark };
}

/** Go to a view and ask its question: only for what a person did on this page. */
export function go(view, route = {}) {
  mark ||= crypto.getRandomValues(new Uint32Array(4)).join("-");
  const address = addressOf(view, route);
  history[location.hash === address ? "replaceState" : "pushState"](mark, "", address);
  dispatchEvent(new PopStateEvent("popstate", { state: mark }));
}

/** Call `moved` when the address changes, whoever changes it; returns what ends that. */
export function watch(moved) {
  // A page that is left may be kept, and come back with an entry that a page elsewhere chooses.
  const left = () => { mark = ""; };
  const all = { popstate: moved, hashchange: moved, pagehide: left };
  for (const [name, act] of Object.entries(all)) addEventListener(name, act);
  return () => { for (const [name, act] of Object.entries(all)) removeEventListener(name, act); };
}

/** A link within this page whose question is asked when it is clicked. A question that came in an answer gets an `a` of its own instead: it is shown, and asked after a second click. */
export function Link({ view, route, children, ...more }) {
  const follow = (event) => {
    if (event.button || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(view, route);
  };
  return html`<a ...${more} href=${addressOf(view, route)} onClick=${follow}>${children}</a>`;
}

/** Shows what came with the address and is not asked before somebody clicks. */
export const Held = ({ says, question, press, run }) => html`<div class="held" role="status"><p>${says}</p><button type="button" class="main" onClick=${run}>${press}</button>${question && html`<pre tabindex="0">${question}</pre>`}</div>`;
