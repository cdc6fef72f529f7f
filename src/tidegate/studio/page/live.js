// Running arenas of this user: rates, near memory, and which regions of each array are near.
import { Chart } from "./chart.js";
import { h, say } from "./dom.js";
import { COLOURS, count, percent, ramp, short, size } from "./format.js";

const KEPT = 240; // points of a chart

export async function show(main, { here }) {
  const place = h("div"), none = h("p", { className: "soft", textContent: "No arena runs. Start one: tidegate live run --near 128MiB examples/larger_than_ram.py" }), cards = new Map();
  main.append(h("h1", { textContent: "Live" }), h("p", { className: "soft", textContent: "Arenas of your programs, as they run." }), none, place);
  const source = new EventSource("api/live/events");
  source.onmessage = (e) => {
    if (!here()) return;
    say();
    const arenas = JSON.parse(e.data);
    none.hidden = arenas.length > 0;
    const names = new Set(arenas.map((a) => a.name));
    for (const [name, card] of cards) if (!names.has(name)) { card.close(); cards.delete(name); }
    for (const arena of arenas) {
      if (!cards.has(arena.name)) { cards.set(arena.name, cardOf(arena)); place.append(cards.get(arena.name).whole); }
      cards.get(arena.name).update(arena);
    }
    place.dataset.seen = String(+(place.dataset.seen ?? 0) + 1);
  };
  source.onerror = () => here() && say("The server does not answer. Start it again with tidegate studio; this page goes on then.");
  return () => { source.close(); cards.forEach((card) => card.close()); };
}

function cardOf(arena) {
  const began = performance.now(), times = [], faults = [], near = [];
  const chart = new Chart("Faults per second", { label: "s", values: [], show: (v) => `${v.toFixed(1)} s` }, [{ label: "faults/s", colour: COLOURS[3], values: [] }], { height: 120, legend: false, show: short });
  const used = new Chart("Near memory in use", { label: "s", values: [], show: (v) => `${v.toFixed(1)} s` }, [{ label: "near", colour: COLOURS[2], fill: `${COLOURS[2]}33`, values: [] }], { height: 100, legend: false, show: size });
  const facts = h("div", { className: "facts" }), strips = h("div");
  const whole = h("div", { className: "card arena" }, h("b", { textContent: `process ${arena.process} · ${arena.tiering ?? `${arena.eviction} + ${arena.prefetch} + ${arena.placement}`}` }), facts, chart.whole, used.whole, h("h2", { textContent: "What is near, by array" }), strips);
  whole.dataset.process = arena.process;
  const update = (now) => {
    times.push((performance.now() - began) / 1000); faults.push(now.faults_per_second); near.push(now.near_bytes);
    if (times.length > KEPT) [times, faults, near].forEach((column) => column.shift());
    chart.data([...times], [[...faults]]);
    used.data([...times], [[...near]]);
    const fact = (name, value) => h("div", {}, h("b", { textContent: value }), name);
    facts.replaceChildren(fact("faults/s", short(now.faults_per_second)), fact("faults", count(now.faults)), fact("noticed uses found near", now.hit_share === null ? "–" : percent(now.hit_share)), fact("evictions", count(now.evictions)), fact("near", `${size(now.near_bytes)} of ${size(now.near_limit)}`), fact("read", size(now.bytes_in)), fact("written", size(now.bytes_out)));
    strips.replaceChildren(...now.residency.map(stripOf));
  };
  return { whole, update, close: () => { chart.close(); used.close(); whole.remove(); } };
}

/** One array: a cell for each region, darker or brighter the more of it is near. */
function stripOf(array) {
  const canvas = h("canvas", { className: "strip", width: Math.max(1, array.near.length), height: 1 }), g = canvas.getContext("2d"), colours = ramp("residency");
  const image = g.createImageData(canvas.width, 1), to = new Uint32Array(image.data.buffer);
  [...array.near].forEach((digit, i) => { to[i] = colours[Math.round((255 * +digit) / 9)]; });
  g.putImageData(image, 0, 0);
  canvas.dataset.near = array.near;
  const share = [...array.near].reduce((sum, digit) => sum + +digit, 0) / (9 * Math.max(1, array.near.length));
  return h("div", {}, h("div", { className: "spread" }, h("span", { textContent: array.name }), h("span", { className: "soft", textContent: `${size(array.bytes)}, about ${percent(share)} near` })), canvas);
}
