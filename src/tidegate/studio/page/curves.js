// Curves: misses and reuse of a workload, and time over near memory, with a marker to drag.
import { Chart } from "./chart.js";
import { ask, follow, guarded, h, progressOf, say } from "./dom.js";
import { COLOURS, duration, percent, short, size } from "./format.js";
import { interpolate } from "./pair.js";
import { field, listOf } from "./race.js";

const FITS = "100%,90%,80%,70%,60%,50%,40%,30%,20%";

export async function show(main, { query, write, here }) {
  const names = await ask("api/names");
  const form = h("form", { className: "card", onsubmit: (e) => { e.preventDefault(); guarded(start); } },
    h("div", { className: "row" }, field("Workload or trace", "workload", query.workload ?? names.opened.traces?.[0] ?? "zipf", { required: true, size: 26, list: "traces" }), field("Size", "bytes", query.bytes ?? (query.workload ? "" : "128MiB"), { size: 8, placeholder: "as it is" }), field("Scale", "scale", query.scale, { size: 6, placeholder: "1/8" }),
      field("Systems, for time over near memory", "system", query.system ?? "uvm,lru,tm", { size: 22 }), h("button", { className: "main", textContent: "Draw" })), listOf("traces", [...(names.opened.traces ?? []), ...names.workloads]));
  const first = progressOf(), second = progressOf(), drawn = h("div");
  let charts = [];
  const close = () => { charts.forEach((c) => c.close()); charts = []; };
  const start = async () => {
    say();
    close();
    drawn.replaceChildren();
    const of = Object.fromEntries(new FormData(form));
    write([], { ...of, now: query.now, instead: query.instead });
    const workload = { workload: of.workload, bytes: of.bytes, scale: of.scale };
    const done = await follow(await ask("api/curves", { body: workload }), first.show, here);
    if (done.state !== "done" || !here()) return;
    const marker = new Marker(done.result.footprint_bytes, query, (sizes) => write([], { ...of, ...sizes }));
    const add = (title, bytes, curves, { show, ...more }) => {
      const x = { label: "near memory", values: bytes, show: size };
      charts.push(new Chart(title, x, curves, { height: 240, show, marks: marker.of(bytes), ...more }));
      drawn.append(h("div", { className: "card" }, charts.at(-1).whole, marker.add(charts.at(-1), bytes, curves, show)));
    };
    misses(done.result, add);
    charts.push(reuse(done.result));
    drawn.append(h("div", { className: "card" }, charts.at(-1).whole));
    if (!of.system.trim()) return;
    const race = await follow(await ask("api/race", { body: { ...workload, system: of.system, fits: FITS, belady: false } }), second.show, here);
    if (race.state === "done" && here()) times(race, add);
  };
  main.append(h("h1", { textContent: "Curves" }), h("p", { className: "soft", textContent: "What a workload needs, and what more or less near memory would change." }), form, first.whole, second.whole, drawn);
  if (query.workload) guarded(start);
  return close;
}

function misses(found, add) {
  const best = found.lru.bytes.map((b) => interpolate(found.belady.bytes, found.belady.ratio, b));
  const curves = [{ label: "LRU", colour: COLOURS[0], values: found.lru.ratio, step: true }, { label: "Belady", colour: COLOURS[2], values: best }];
  add(`Misses of ${found.name}`, found.lru.bytes, curves, { unit: "share of touches, by region", show: percent });
}

function reuse(found) {
  const { bytes, touches } = found.histogram, known = bytes.map((b, i) => [b, touches[i]]).filter(([b]) => b !== null);
  const x = { label: "distance, at least", values: known.map(([b]) => Math.max(b, found.unit_bytes / 2)), show: size };
  return new Chart("Touches by reuse distance", x, [{ label: "touches", colour: COLOURS[1], values: known.map(([, n]) => n), fill: `${COLOURS[1]}44`, step: true, points: true }], { height: 180, show: short, log: true });
}

function times(job, add) {
  const policies = [...new Set(job.rows.map((r) => r.policy))], sizes = [...new Set(job.rows.map((r) => r.near))].sort((a, b) => a - b);
  const curves = policies.map((p, i) => ({ label: p, colour: COLOURS[i % COLOURS.length], points: true, values: sizes.map((s) => job.rows.find((r) => r.near === s && r.policy === p)?.time_ns ?? null).map((ns) => (ns === null ? null : ns / 1e6)) }));
  add("Time over near memory", sizes, curves, { show: (v) => duration(v * 1e6) });
}

/** Two sizes of near memory to compare; dragging one moves it in every chart. */
class Marker {
  constructor(footprint, { now, instead }, changed) {
    Object.assign(this, { footprint, changed, charts: [], sizes: [Number(now) || footprint / 2, Number(instead) || 0.75 * footprint] });
  }

  /** The marks of a chart over these sizes; a chart may not reach as far as another. */
  of(bytes) {
    const within = (value) => Math.min(bytes.at(-1), Math.max(bytes[0], value));
    return ["now", "instead"].map((name, i) => {
      const sizes = this.sizes;
      return { name, label: `Near memory ${name}`, get value() { return within(sizes[i]); }, moved: (value) => this.move(i, value) };
    });
  }

  /** Add a chart and return what it reads at the marks. */
  add(chart, bytes, curves, show) {
    const [now, instead] = chart.settings.marks, text = h("p", { className: "reading", role: "status" });
    const tell = () => {
      const change = (one) => `${one.label}: ${show(interpolate(bytes, one.values, now.value))} → ${show(interpolate(bytes, one.values, instead.value))}`;
      const share = (mark) => percent(mark.value / this.footprint);
      text.replaceChildren(h("b", { textContent: `With ${size(instead.value)} instead of ${size(now.value)}` }), ` (${share(instead)} instead of ${share(now)} of the footprint)`, ...curves.map((one) => h("span", {}, h("i", { style: `background:${one.colour}` }), change(one))));
    };
    this.charts.push({ chart, tell });
    tell();
    return text;
  }

  move(which, value) {
    this.sizes[which] = value;
    this.charts.forEach(({ chart, tell }) => { if (chart.plot) chart.placeMarks(); tell(); });
    this.changed({ now: Math.round(this.sizes[0]), instead: Math.round(this.sizes[1]) });
  }
}
