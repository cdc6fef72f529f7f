// Two runs of one trace, side by side: the same axis of touches, and their difference.
import { Chart } from "./chart.js";
import { ask, guarded, h } from "./dom.js";
import { COLOURS, count, duration, short, size } from "./format.js";
import { HeatMap, LEFT, RIGHT, WHOLE, legendOf } from "./heatmap.js";
import { layersOf, segments, viewOf, viewQuery } from "./run.js";
import { policiesOf, runTable } from "./runs.js";
import { saveButtons, savePng, saveSvg } from "./save.js";

export async function show(main, { args, query, write, here }) {
  if (args.length < 2) return choose(main, args);
  const keys = args.slice(0, 2), runs = await Promise.all(keys.map((key) => ask(`api/runs/${key}`)));
  const wait = h("p", { className: "soft", textContent: "Recording both runs …" });
  main.append(wait);
  const charted = [];
  for (const key of keys) charted.push(await ask(`api/runs/${key}/charts`));
  wait.remove();
  if (!here()) return () => {};
  const layers = layersOf(runs[0]);
  let layer = layers[query.layer] ? query.layer : "residency";
  const whole = { touches: charted[0].books.touches.at(-1), time: charted[0].books.time.at(-1), regions: charted[0].regions };
  const legend = h("span"), maps = [];
  const remember = () => write(keys, { layer, ...viewQuery(maps[0].view) });
  const linked = (view, from) => { maps.filter((m) => m !== from).forEach((m) => m.show(view, false)); chart.range(view.x0 * whole.touches, view.x1 * whole.touches); remember(); };
  const clicked = (region) => { location.hash = `#run/${keys[0]}?layer=${layer}&axis=touches&region=${region}`; };
  const common = { layer, axis: "touches", view: viewOf(query), changed: linked, clicked };
  maps.push(new HeatMap({ key: keys[0], run: runs[0], whole }, { ...common, height: 240 }),
    new HeatMap({ key: keys[1], run: runs[1], whole }, { ...common, height: 240 }),
    new HeatMap({ key: keys[0], against: keys[1], run: runs[0], whole }, { ...common, height: 240, shown: (m) => legend.replaceChildren(legendOf(m)) }));
  const chart = faultsOf(charted.map((c) => c.books), whole, (from, to) => maps[0].show({ ...maps[0].view, x0: from / whole.touches, x1: to / whole.touches }));
  const title = (letter, run) => h("p", {}, h("b", { textContent: `${letter}  ` }), h("a", { href: `#run/${run.key}`, textContent: policiesOf(run) }), h("span", { className: "soft", textContent: `  ${size(run.near_bytes)} near · ${duration(run.time_ns)} · ${count(run.faults)} faults · ${count(run.evictions)} evictions` }));
  const tools = h("div", { className: "row", style: "justify-content:space-between" }, segments(layers, layer, (name) => { layer = name; maps.forEach((m) => m.set({ layer })); remember(); }, "Layer"),
    h("span", {}, h("button", { type: "button", textContent: "Show all", onclick: () => maps[0].show(WHOLE) }), saveButtons({ png: () => savePng("difference", maps[2].canvas), svg: () => saveSvg("difference", maps[2].canvas) })));
  main.append(h("h1", { textContent: `${runs[0].workload}: side by side` }), h("p", { className: "soft", textContent: "Both are drawn over the program's touches, not over time: the same place is the same moment of the program." }),
    h("div", { className: "card" }, tools, title("A", runs[0]), maps[0].canvas, title("B", runs[1]), maps[1].canvas, h("p", {}, h("b", { textContent: "A − B  " }), h("span", { className: "soft", textContent: "where one has more than the other" })), maps[2].canvas, legend),
    h("div", { className: "card" }, chart.whole));
  chart.range(maps[0].view.x0 * whole.touches, maps[0].view.x1 * whole.touches);
  const themed = () => { maps.forEach((m) => m.repaint()); legend.replaceChildren(legendOf(maps[2])); };
  addEventListener("themed", themed);
  return () => { removeEventListener("themed", themed); maps.forEach((m) => m.close()); chart.close(); };
}

function faultsOf([a, b], whole, zoomed) {
  const at = a.touches, other = (values) => at.map((t) => interpolate(b.touches, values, t));
  return new Chart("Time so far, by touches", { label: "touches", values: at, show: short }, [
    { label: "A", colour: COLOURS[3], values: a.time.map((ns) => ns / 1e6) }, { label: "B", colour: COLOURS[0], values: other(b.time).map((ns) => ns / 1e6) },
  ], { left: LEFT, right: RIGHT, unit: "ms", zoomed, show: (v) => duration(v * 1e6), height: 170 });
}

/** The value at x between known ones. */
export function interpolate(xs, ys, x) {
  let low = 0, high = xs.length - 1;
  if (x <= xs[0]) return ys[0];
  if (x >= xs[high]) return ys[high];
  while (high - low > 1) { const middle = (low + high) >> 1; if (xs[middle] <= x) low = middle; else high = middle; }
  return ys[low] + ((ys[high] - ys[low]) * (x - xs[low])) / (xs[high] - xs[low] || 1);
}

async function choose(main, [first]) {
  const one = first && (await guarded(() => ask(`api/runs/${first}`)));
  const fits = (r) => !one || (r.key !== one.key && Boolean(r.tiering) === Boolean(one.tiering) && r.workload === one.workload && r.footprint_bytes === one.footprint_bytes);
  main.append(h("h1", { textContent: one ? `${one.workload} · ${policiesOf(one)}, side by side with …` : "Side by side: choose the first run" }), h("p", { className: "soft", textContent: "Two runs of one trace can be compared." }),
    await runTable({ among: fits, pick: (r) => { location.hash = one ? `#pair/${one.key}/${r.key}` : `#pair/${r.key}`; } }));
  return () => {};
}
