// What a number was: samples of the last minutes, minutes and hours of long times.
import * as bus from "./bus.js";
import { number, records, text } from "./checked.js";
import { decode, timeOf } from "./decode.js";

/** How far a chart looks back, in seconds. */
export const SPANS = { "10 minutes": 600, "1 hour": 3600, "1 day": 86_400, "30 days": 2_592_000 };
const MOST = 20_000;

export const at = (value, path) => (path ? path.split(".").reduce((inner, name) => (inner === null || inner === undefined ? undefined : inner[name]), value) : value);

const quoted = (text) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

async function rows(sql) {
  const { rows } = await bus.get("@lake/sql", "_as=json", sql);
  const found = rows.find((row) => row.key !== "ERROR");
  return records(found?.value);
}

const seconds = (at) => Date.parse(text(at).replace(" ", "T")) / 1000;

/** Minutes or hours of a field, as the table `rollups` has them; none if it has none. */
async function rolled(key, field, span) {
  const width = span <= 86_400 ? "minute" : "hour";
  // A field inside of others is a.b where the table has structs, and a_b where it has columns.
  const names = [...new Set([field || "value", field.replaceAll(".", "_") || "value"])];
  const found = await rows(`SELECT start, sum(sum) / sum(count) AS mean, min(min) AS low, max(max) AS high FROM rollups WHERE key = ${quoted(key)} AND field IN (${names.map(quoted).join(", ")}) AND width = '${width}' AND start >= now() - INTERVAL ${span} SECONDS GROUP BY start ORDER BY start LIMIT ${MOST}`);
  return { by: `by ${width}, of rollups`, names: ["mean", "least", "greatest"], data: [found.map((one) => seconds(one.start)), ...["mean", "low", "high"].map((name) => found.map((one) => number(one[name], null)))] };
}

/** Every value of a field that the lake has decoded, of the table that the key belongs to. */
async function typed(key, field, span, table) {
  if (!field || field.includes("`")) return { by: "", names: [field], data: [[], []] };
  const column = field.split(".").map((name) => "`" + name + "`").join(".");
  const found = await rows(`SELECT time, CAST(${column} AS DOUBLE) AS v FROM \`${table}\` WHERE key = ${quoted(key)} AND time >= now() - INTERVAL ${span} SECONDS ORDER BY time LIMIT ${MOST}`);
  return { by: `samples, of the table ${table}`, names: [field], data: [found.map((one) => seconds(one.time)), found.map((one) => number(one.v, null))] };
}

/** Every value of a field in samples that whoever remembers them gives back. */
async function sampled(key, field, span) {
  const { rows, truncated } = await bus.get(key, `_time=[now(-${span}s)..]`);
  const points = [];
  for (const row of rows) {
    const value = row.key === "ERROR" ? {} : decode(row), n = value.kind === "json" ? at(value.value, field) : undefined;
    if (typeof n === "number") points.push([(timeOf(row.timestamp) ?? 0) / 1000, n]);
  }
  points.sort((a, b) => a[0] - b[0]);
  return { by: truncated ? `samples, cut: ${truncated}` : "samples", names: [field || key], data: [points.map((p) => p[0]), points.map((p) => p[1])] };
}

/** The history of a field for a chart. `table`: the one that has it decoded, if the page cannot. */
export async function history(key, field, span, table) {
  if (span > 600) {
    const long = await rolled(key, field, span).catch(() => null);
    if (long?.data[0].length) return long;
  }
  return table ? typed(key, field, span, table) : sampled(key, field, span);
}
