// A line chart of one or more series.
import { html, useEffect, useRef } from "./vendor/htm-preact.js";

const COLOURS = ["#2a9fd6", "#e07b39", "#5aa469", "#b565a7", "#c9a227", "#d64550"];

export function Chart({ label, points, series }) {
  const box = useRef(null), plot = useRef(null);
  const data = series ? series.data : [points.map((p) => p[0]), points.map((p) => p[1])];
  const names = series ? series.names : [label];
  const shape = names.join("|");
  useEffect(() => {
    const ink = getComputedStyle(document.body).color;
    const axis = { stroke: ink, grid: { stroke: "#8884" } };
    plot.current = new window.uPlot({ width: box.current.clientWidth || 500, height: 220, scales: { x: { time: series ? series.time : true } }, axes: [axis, axis],
      series: [{}, ...names.map((name, i) => ({ label: name, stroke: COLOURS[i % COLOURS.length], width: 2, points: { show: data[0].length < 60 } }))] }, data, box.current);
    const fit = () => plot.current?.setSize({ width: box.current.clientWidth, height: 220 });
    window.addEventListener("resize", fit);
    return () => { window.removeEventListener("resize", fit); plot.current.destroy(); plot.current = null; };
  }, [shape]);
  useEffect(() => { plot.current?.setData(data); });
  return html`<div class="chart" ref=${box} role="img" aria-label=${`chart of ${names.join(", ")}`} data-points=${data[0].length}></div>`;
}
