// The bus, over the node's own HTTP: queries, puts, and streams that come back by themselves.

let token = sessionStorage.getItem("zenlake-token") || "";
export const setToken = (text) => { token = text; sessionStorage.setItem("zenlake-token", text); };
const headers = (more = {}) => (token ? { ...more, authorization: `Bearer ${token}` } : more);

export const path = (key) => "/" + key.split("/").map(encodeURIComponent).join("/").replaceAll("%40", "@").replaceAll("%24", "$");

export class Refused extends Error {
  constructor(code, text) { super(text || `HTTP ${code}`); this.code = code; }
}

async function ask(url, options = {}) {
  const response = await fetch(url, { ...options, headers: headers(options.headers) });
  if (!response.ok) throw new Refused(response.status, (await response.text()).trim());
  return response;
}

export const status = async () => (await ask("/status")).json();

/** All replies to a selector; `body` travels as the query's payload. */
export async function get(key, parameters = "", body = undefined, signal = undefined) {
  const url = path(key) + (parameters ? "?" + encodeURIComponent(parameters) : "");
  const began = performance.now();
  const response = await ask(url, body === undefined ? { signal } : { method: "POST", body, signal, headers: { "content-type": "text/plain" } });
  const rows = await response.json();
  return { rows, ms: performance.now() - began, truncated: response.headers.get("zenlake-truncated") };
}

export const put = (key, body, kind) => ask(path(key), { method: "PUT", body, headers: { "content-type": kind } });
export const remove = (key) => ask(path(key), { method: "DELETE" });

/** Samples of a key expression until `stop()`; `on.state` hears when it is lost and found. */
export function subscribe(key, parameters, on) {
  const ending = new AbortController();
  const run = async () => {
    let pause = 250;
    while (!ending.signal.aborted) {
      try {
        const url = path(key) + (parameters ? "?" + parameters : "");
        const response = await ask(url, { signal: ending.signal, headers: { accept: "text/event-stream" } });
        on.state(true);
        pause = 250;
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          const events = (rest + value).split("\n\n");
          rest = events.pop();
          for (const text of events) {
            let kind = "", data = "";
            for (const line of text.split("\n")) {
              if (line.startsWith("event: ")) kind = line.slice(7);
              else if (line.startsWith("data: ")) data = line.slice(6);
            }
            if (data) on.event(kind, JSON.parse(data));
          }
        }
      } catch (error) {
        if (ending.signal.aborted) return;
        if (error.code === 401) { on.state(false, "401"); return; }
      }
      on.state(false);
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, 4000);
    }
  };
  run();
  return () => ending.abort();
}
