// One run: its heat map, what happened over time below it, and a region's own story.
import { Chart } from "./chart.js";
import { ask, guarded, h, say } from "./dom.js";
import { COLOURS, PARTS, count, duration, percent, short, size, words } from "./format.js";
import { HeatMap, LEFT, RIGHT, WHOLE, legendOf } from "./heatmap.js";
import { runTable } from "./runs.js";
import { saveButtons, saveCsv, savePng, saveSvg } from "./save.js";

export const LAYERS = { touches: "Touches", residency: "Residency", faults: "Faults", evictions: "Evictions", prefetched: "Prefetched", unused: "Prefetched in vain" };
export const TIER_LAYERS = { touches: "Touches", residency: "Near", middle: "In host memory", faults: "Faults", far_reads: "Read from SSD", evictions: "Evictions", spills: "Left host memory" };
export const layersOf = (run) => (run.tiering ? TIER_LAYERS : LAYERS);
const SHARES = { running: "compute", fault_handling: "fault_handling", transfer_in: "transfer_in", transfer_out: "transfer_out", policy_overhead: "policy_overhead" };

export async function show(main, { args, query, write, here }) {
  if (!args[0]) {
    main.append(h("h1", { textContent: "Runs" }), h("p", { className: "soft", textContent: "Everything that the store has, and the races of this page." }), await runTable());
    return () => {};
  }
  const key = args[0], run = await ask(`api/runs/${key}`);
  main.append(head(run), facts(run));
  const wait = h("p", { className: "soft", role: "status", textContent: "Recording the run …" });
  main.append(wait);
  const progress = setInterval(() => guarded(async () => {
    const { touches } = await ask(`api/runs/${key}/progress`);
    if (touches) wait.textContent = `Recording the run: ${short(touches)} of ${short(run.touches)} touches`;
  }), 300);
  let charted;
  try {
    charted = await ask(`api/runs/${key}/charts`);
  } finally {
    clearInterval(progress);
    wait.remove();
  }
  return here() ? showRecorded(main, run, charted, query, (q) => write([key], q)) : () => {};
}

export function head(run) {
  const policies = run.tiering || `${run.eviction} + ${run.prefetch} + ${run.placement}`;
  return h("div", { className: "spread" }, h("div", {}, h("h1", { textContent: `${run.workload} · ${policies}` }),
    h("p", { className: "soft", textContent: `${size(run.footprint_bytes)} in ${size(run.near_bytes)} of near memory${run.middle_bytes ? ` and ${size(run.middle_bytes)} of host memory` : ""} · ${run.machine} · ${run.facts.provenance}` })),
  h("a", { href: `#pair/${run.key}`, textContent: "Side by side with …" }));
}

function facts(run) {
  const fact = (name, value) => h("div", {}, h("b", { textContent: value }), name);
  const hits = run.counts.hits / run.counts.touches;
  const parts = Object.entries(run.parts).filter(([, ns]) => ns > 0);
  return h("div", { className: "card" }, h("div", { className: "facts" }, fact("time", duration(run.time_ns)), fact("touches", short(run.touches)), fact("found near", percent(hits)), fact("faults", count(run.faults)),
    fact("evictions", count(run.evictions)), fact("moved in", size(run.bytes_in)), fact("moved out", size(run.bytes_out)), run.counts.pages_unused !== undefined && fact("pages unused", count(run.counts.pages_unused))),
  h("div", { className: "bar", role: "img", ariaLabel: "Parts of time" }, parts.map(([part, ns]) => h("i", { title: `${words(part)} ${duration(ns)}`, style: `width:${(100 * ns) / run.time_ns}%;background:${PARTS[part]}` }))),
  h("div", { className: "legend", style: "margin-top:6px" }, parts.map(([part, ns]) => h("span", {}, h("i", { style: `background:${PARTS[part]}` }), `${words(part)} ${percent(ns / run.time_ns)}`))),
  run.notes.map((note) => h("p", { className: "soft", textContent: note })));
}

export function segments(names, chosen, choose, label) {
  const group = h("span", { className: "segments", role: "group", ariaLabel: label });
  for (const [name, text] of Object.entries(names)) {
    const button = h("button", { type: "button", textContent: text, ariaPressed: String(name === chosen), onclick: () => {
      group.querySelectorAll("button").forEach((b) => { b.ariaPressed = String(b === button); });
      choose(name);
    } });
    button.dataset.name = name;
    group.append(button);
  }
  return group;
}

export const viewOf = (query) => Object.fromEntries(Object.keys(WHOLE).map((k) => [k, query[k] === undefined || !Number.isFinite(+query[k]) ? WHOLE[k] : Math.min(1, Math.max(0, +query[k]))]));
export const viewQuery = (view) => Object.fromEntries(Object.entries(view).filter(([k, v]) => v !== WHOLE[k]).map(([k, v]) => [k, +v.toPrecision(9)]));

function showRecorded(main, run, charted, query, write) {
  const books = charted.books, whole = { touches: books.touches.at(-1), time: books.time.at(-1), regions: charted.regions };
  const layers = layersOf(run);
  let layer = layers[query.layer] ? query.layer : "touches", axis = query.axis === "touches" ? "touches" : "time", region = query.region;
  const side = h("div", { className: "card side", hidden: true });
  const legend = h("span"), detail = h("span", { className: "soft" });
  const remember = () => write({ layer, axis, region, ...viewQuery(map.view) });
  const linked = () => charts.forEach((c) => c.range(map.view.x0 * unit(), map.view.x1 * unit()));
  const unit = () => (axis === "time" ? whole.time / 1e6 : whole.touches);
  let fetched = null;
  const map = new HeatMap({ key: run.key, run, whole }, {
    layer, axis, view: viewOf(query), clicked: (r) => tell(r),
    changed: () => { remember(); linked(); },
    shown: () => {
      legend.replaceChildren(legendOf(map));
      detail.textContent = `a column is ${map.perBin > 1 ? `at least ${count(map.perBin)} touches` : "single touches"}${charted.regions_per_cell > 1 ? `, a row ${charted.regions_per_cell} regions` : ""}`;
      finerCharts();
    },
  });
  /** Charts of a zoomed view are drawn from its finer recording. */
  const finerCharts = () => guarded(async () => {
    const wanted = map.canvas.dataset.ready === "yes" && map.view.x1 - map.view.x0 < 0.2 ? JSON.stringify(map.view) : null;
    if (wanted === fetched) return;
    fetched = wanted;
    const found = wanted ? await ask(`api/runs/${run.key}/charts?${new URLSearchParams({ ...map.view, axis, detail: 1 })}`) : charted;
    if (wanted === fetched) fill(found.books);
  });
  const charts = (run.tiering ? tierCharts : chartsOf)(run, axis, charted.page_bytes, (from, to) => map.show({ ...map.view, x0: from / unit(), x1: to / unit() }));
  const fill = (from) => charts.forEach((c) => c.fill(from, axis));
  const tools = h("div", { className: "row", style: "justify-content:space-between" },
    h("span", {}, segments(layers, layer, (name) => { layer = name; map.set({ layer }); remember(); }, "Layer"), " ",
      segments({ time: "by time", touches: "by touches" }, axis, (name) => { axis = name; fetched = null; map.view = { ...map.view, x0: 0, x1: 1 }; map.set({ axis }); fill(books); linked(); remember(); }, "Axis")),
    h("span", {}, h("button", { type: "button", textContent: "Show all", onclick: () => map.show(WHOLE) }), " ", saveButtons({
      png: () => savePng("heatmap", map.canvas), svg: () => saveSvg("heatmap", map.canvas),
      csv: () => saveCsv("run", Object.fromEntries(Object.entries(books))),
    })));
  const tell = (r) => guarded(async () => {
    region = r;
    remember();
    const told = await ask(`api/runs/${run.key}/story?region=${r}`);
    side.hidden = false;
    side.replaceChildren(...story(run, told, () => { side.hidden = true; region = undefined; remember(); map.resize(); }));
  });
  const below = h("div", { className: "card" }, charts.map((c) => c.whole));
  main.append(h("div", { className: "card" }, tools, h("div", { className: "split-or-not" }, map.canvas), h("div", { className: "spread" }, legend, detail, h("span", { className: "soft", textContent: "wheel: zoom · Shift + wheel: regions · drag: pan · click: a region's story · a launch: zoom to it" }))), side, below, objectTable(run));
  fill(books);
  linked();
  if (query.region !== undefined) tell(+query.region);
  const themed = () => { map.repaint(); legend.replaceChildren(legendOf(map)); };
  addEventListener("themed", themed);
  return () => { removeEventListener("themed", themed); map.close(); charts.forEach((c) => c.close()); };
}

/** Bytes over time. They are booked when they are sent, and may be on their way for longer than a bin:
 *  then over the time that the link or the SSD takes for them, so that no rate is above its own. */
const flow = (pages, time, busy, page) => pages.slice(1).map((v, i) => { const d = Math.max(time[i + 1] - time[i], busy[i + 1] - busy[i]); return d > 0 ? (page * (v - pages[i])) / d : 0; });
/** Differences between neighbours, over those of another column. */
const rate = (values, over, factor = 1) => values.slice(1).map((v, i) => { const d = over[i + 1] - over[i]; return d > 0 ? (factor * (v - values[i])) / d : 0; });
const share = (values, i, whole) => Math.max(0, values[i + 1] - values[i]) / whole;

const line = (label, c, more = {}) => ({ label, colour: c, values: [], ...more });
const x = (axis = "time") => ({ label: axis === "time" ? "ms" : "touches", values: [], show: (v) => (axis === "time" ? duration(v * 1e6) : short(v)) });

function chartsOf(run, axis, page, zoomed) {
  const common = { left: LEFT, right: RIGHT, sync: "run", zoomed };
  const rates = new Chart("Faults and evictions per ms", x(axis), [line("faults per ms", COLOURS[3]), line("evictions per ms", COLOURS[6])], common);
  rates.columns = (b) => [rate(b.faults, b.time, 1e6), rate(b.evictions, b.time, 1e6)];
  const link = new Chart("Link", x(axis), [line("in, GB/s", COLOURS[0]), line("out, GB/s", COLOURS[1]), line("remote, GB/s", COLOURS[4])], { ...common, unit: "GB/s" });
  link.columns = (b) => [flow(b.pages_in, b.time, b.link_in_time, page), flow(b.pages_written_back, b.time, b.link_out_time, page), rate(b.remote_bytes, b.time)];
  const names = Object.keys(SHARES);
  const stacked = new Chart("Parts of time", x(axis), names.map((n) => line(words(SHARES[n]), PARTS[SHARES[n]], { fill: `${PARTS[SHARES[n]]}55` })).reverse(), { ...common, top: 1, show: (v) => percent(v) });
  stacked.columns = (b) => {
    const bins = b.time.length - 1, sums = names.map(() => new Array(bins).fill(0)), own = names.map(() => new Array(bins).fill(0));
    for (let i = 0; i < bins; i += 1) {
      const all = names.reduce((s, n) => s + Math.max(0, b[n][i + 1] - b[n][i]), 0) || 1;
      names.reduce((before, n, j) => { own[j][i] = share(b[n], i, all); sums[j][i] = before + own[j][i]; return sums[j][i]; }, 0);
    }
    stacked.series.forEach((s, j) => { s.shown = own[names.length - 1 - j]; });
    return sums.reverse();
  };
  const frame = run.facts.region_bytes;
  const near = new Chart("Near memory in use", x(axis), [line("in use", COLOURS[2], { fill: `${COLOURS[2]}33` })], { ...common, unit: "share", top: 1.02, show: (v) => percent(v) });
  near.columns = (b) => [b.frames_used.slice(1).map((v) => (v * frame) / run.near_bytes)];
  return filled([rates, link, stacked, near]);
}

/** Over three tiers a region is a page, and the SSD is what takes time. */
function tierCharts(run, axis, page, zoomed) {
  const common = { left: LEFT, right: RIGHT, sync: "run", zoomed };
  const found = new Chart("Where touches were found", x(axis), [line("near", COLOURS[2]), line("host memory", COLOURS[0]), line("SSD", COLOURS[1])], { ...common, show: percent, top: 1.02 });
  found.columns = (b) => [rate(b.hits, b.touches), rate(b.middle_hits, b.touches), rate(b.far_reads, b.touches)];
  const ssd = new Chart("SSD", x(axis), [line("read, GB/s", COLOURS[1]), line("written, GB/s", COLOURS[6])], { ...common, unit: "GB/s" });
  const written = (b) => b.near_written.map((v, i) => v + b.middle_written[i] + b.near_flushed[i] + b.middle_flushed[i]);
  ssd.columns = (b) => [flow(b.far_reads, b.time, b.read_busy, page), flow(written(b), b.time, b.write_busy, page)];
  const held = new Chart("Memory in use", x(axis), [line("near", COLOURS[2]), line("host memory", COLOURS[0])], { ...common, unit: "share", show: percent, top: 1.02 });
  held.columns = (b) => [b.near_used.slice(1).map((v) => (v * page) / run.near_bytes), b.middle_used.slice(1).map((v) => (run.middle_bytes ? (v * page) / run.middle_bytes : 0))];
  return filled([found, ssd, held]);
}

/** Charts that are filled from books, by time or by touches. */
function filled(all) {
  for (const chart of all) {
    chart.fill = (books, by) => {
      chart.x.label = by === "time" ? "ms" : "touches";
      chart.x.show = (v) => (by === "time" ? duration(v * 1e6) : short(v));
      chart.data(by === "time" ? books.time.slice(1).map((ns) => ns / 1e6) : books.touches.slice(1), chart.columns(books));
    };
  }
  return all;
}

function story(run, told, close) {
  const owner = [...run.objects].reverse().find((o) => o.first <= told.region);
  const lines = told.lines.map((line, i) => {
    const touched = i + 1 < told.lines.length ? told.lines[i + 1].touches - line.touches : told.touches - line.touches;
    return h("tr", {}, h("td", { className: "n", textContent: duration(line.time) }), h("td", { textContent: line.what }), h("td", { textContent: run.tiering ? `${line.why} (${line.by})` : line.what === "came" ? `by ${line.why} (${line.by})` : `as ${line.why} (${line.by})` }),
      h("td", { className: "n", textContent: `${line.pages}` }), h("td", { className: "n", textContent: line.what === "came" ? count(touched) : "" }));
  });
  return [h("div", { className: "spread" }, h("b", { textContent: `Region ${told.region}, of ${owner?.name ?? "no object"}: ${count(told.touches)} touches, ${count(told.all_lines)} moves` }), h("button", { type: "button", className: "quiet", textContent: "Close", onclick: close })),
    h("table", {}, h("thead", {}, h("tr", {}, ["at", "it", "why", "pages", "touched then"].map((t, i) => h("th", { textContent: t, className: [0, 3, 4].includes(i) ? "n" : "" })))), h("tbody", {}, lines)),
    told.all_lines > told.lines.length && h("p", { className: "soft", textContent: `The first ${count(told.lines.length)} moves.` })].filter(Boolean);
}

function objectTable(run) {
  const t = run.object_table, columns = Object.keys(t);
  const show = (name, v) => (name === "bytes" ? size(v) : typeof v === "number" ? count(v) : v);
  return h("div", { className: "card" }, h("div", { className: "spread" }, h("h2", { textContent: "Objects", style: "margin-top:0" }), saveButtons({ csv: () => saveCsv("objects", t) })),
    h("table", {}, h("thead", {}, h("tr", {}, columns.map((c) => h("th", { className: c === "name" ? "" : "n", textContent: words(c) })))),
      h("tbody", {}, t.name.map((_, i) => h("tr", {}, columns.map((c) => h("td", { className: c === "name" ? "" : "n", textContent: show(c, t[c][i]) })))))));
}
