// A race: policies or systems on one workload, with bars that grow as runs end.
import { ask, follow, guarded, h, progressOf, say } from "./dom.js";
import { PARTS, count, duration, size, words } from "./format.js";
import { runTable } from "./runs.js";
import { download, saveButtons, saveCsv } from "./save.js";

const KINDS = { eviction: "Eviction policies", system: "Published systems", tiering: "Three tiers" };
const FIRST = { eviction: ["lrm", "lru", "cp", "random", "mru"], system: ["uvm", "lru", "tm"], tiering: ["bam", "tier-order", "tier-reuse"] };

export function field(label, name, value, more = {}) {
  return h("label", {}, label, h("input", { name, value: value ?? "", spellcheck: false, autocomplete: "off", ...more }));
}

export function listOf(id, names) {
  return h("datalist", { id }, names.map((name) => h("option", { value: name })));
}

export async function show(main, { query, write, here }) {
  const names = await ask("api/names");
  const kind = KINDS[query.kind] ? query.kind : "eviction";
  const known = { eviction: names.eviction, system: names.systems, tiering: names.tiering };
  const chosen = query.policies === undefined ? FIRST[kind] : query.policies.split(",").filter(Boolean);
  const chips = h("div", { className: "chips" });
  const others = field("Others, such as random(seed=2) or mine.py:Mine", "others", chosen.filter((p) => !known[kind].includes(p)).join(", "), { size: 38 });
  const fill = (of, on) => chips.replaceChildren(...known[of].map((name) => h("label", {}, h("input", { type: "checkbox", value: name, checked: on.includes(name) }), name)));
  const kinds = h("select", { name: "kind", onchange: () => fill(kinds.value, FIRST[kinds.value]) }, Object.entries(KINDS).map(([value, text]) => h("option", { value, textContent: text, selected: value === kind })));
  fill(kind, chosen);
  const traces = names.opened.traces ?? [];
  const form = h("form", { className: "card", onsubmit: (e) => { e.preventDefault(); start(); } },
    h("div", { className: "row" }, field("Workload or trace", "workload", query.workload ?? traces[0] ?? "matmul", { required: true, size: 28, list: "workloads" }), field("Size", "bytes", query.bytes ?? (query.workload || traces.length ? "" : "256MiB"), { size: 8, placeholder: "as it is" }), field("Scale", "scale", query.scale, { size: 6, placeholder: "1/8" }),
      h("label", {}, "Machine", h("select", { name: "machine" }, h("option", { value: "", textContent: "default" }), Object.keys(names.machines).map((m) => h("option", { value: m, textContent: m, selected: m === query.machine })))),
      field("Near memory", "near", query.near, { size: 12, placeholder: "512MiB, 1GiB" }), field("or oversubscribed by", "oversubscribe", query.oversubscribe ?? (query.near ? "" : "50%"), { size: 12 })),
    h("div", { className: "row" }, h("label", {}, "Compare", kinds), others, h("label", {}, "Prefetch", h("input", { name: "prefetch", value: query.prefetch ?? "", size: 10, placeholder: "default" })), h("button", { className: "main", textContent: "Start the race" })),
    h("fieldset", {}, h("legend", { textContent: "Who takes part" }), chips), listOf("workloads", [...traces, ...names.workloads]));
  const { whole, show: progress } = progressOf(), results = h("div", { id: "results" }), list = h("div");
  const asked = () => {
    const of = Object.fromEntries(new FormData(form));
    const order = (name) => (chosen.includes(name) ? chosen.indexOf(name) : chosen.length); // the first is what others are held against
    const policies = [...chips.querySelectorAll(":checked")].map((c) => c.value).sort((a, b) => order(a) - order(b)).concat(of.others.split(/,(?![^(]*\))/).map((s) => s.trim()).filter(Boolean)).join(",");
    return { of, policies };
  };
  const start = () => guarded(async () => {
    say();
    const { of, policies } = asked();
    write([], { workload: of.workload, bytes: of.bytes, scale: of.scale, machine: of.machine, near: of.near, oversubscribe: of.oversubscribe, prefetch: of.prefetch, kind: of.kind === "eviction" ? "" : of.kind, policies });
    const body = { workload: of.workload, bytes: of.bytes, scale: of.scale, machine: of.machine, near: of.near, oversubscribe: of.near ? "" : of.oversubscribe };
    if (of.kind === "eviction") Object.assign(body, { eviction: policies, prefetch: of.prefetch });
    else body[of.kind] = policies;
    results.replaceChildren();
    const job = await ask("api/race", { body });
    const done = await follow(job, (j) => { progress(j); results.replaceChildren(...table(j)); }, here);
    if (done.state === "done" && here()) results.replaceChildren(...table(done), ...(await after(done)));
  });
  main.append(h("h1", { textContent: "Race" }), form, whole, results, list);
  const drawn = await guarded(() => runTable());
  if (drawn && here()) list.append(h("h2", { textContent: "Earlier runs" }), drawn);
  return () => {};
}

/** A table for each size of near memory, with a bar for each run. */
export function table(job) {
  const sizes = [...new Set(job.rows.map((r) => r.near))];
  return sizes.map((near) => {
    const rows = job.rows.filter((r) => r.near === near), times = rows.map((r) => r.time_ns ?? 0), slowest = Math.max(...times), first = rows[0].time_ns;
    const columns = ["policy", "time", `against ${rows[0].policy}`, "faults", "evictions", "in", "out", "", ""];
    return h("div", { className: "card" }, h("div", { className: "spread" }, h("b", { textContent: `near memory ${size(near)}, of ${size(rows[0].footprint)}` }), h("span", { className: "legend" }, Object.entries(PARTS).filter(([p]) => rows.some((r) => r.parts?.[p] > 0)).map(([p, c]) => h("span", {}, h("i", { style: `background:${c}` }), words(p))))),
      h("table", {}, h("thead", {}, h("tr", {}, columns.map((c, i) => h("th", { className: i > 0 && i < 7 ? "n" : "", textContent: c })))), h("tbody", {}, rows.map((r) => rowOf(r, slowest, first)))));
  });
}

function rowOf(r, slowest, first) {
  if (r.failed) return h("tr", { className: "failed" }, h("td", { textContent: r.policy }), h("td", { colSpan: 8, textContent: `failed: ${r.failed}` }));
  const parts = Object.entries(r.parts).filter(([, ns]) => ns > 0);
  return h("tr", {}, h("td", {}, h("a", { href: `#run/${r.key}`, textContent: r.policy })), h("td", { className: "n", textContent: duration(r.time_ns) }), h("td", { className: "n", textContent: first ? `${(first / r.time_ns).toFixed(2)}×` : "–" }), h("td", { className: "n", textContent: count(r.faults) }), h("td", { className: "n", textContent: count(r.evictions) }),
    h("td", { className: "n", textContent: size(r.bytes_in) }), h("td", { className: "n", textContent: size(r.bytes_out) }), h("td", { style: "width:30%" }, h("div", { className: "bar", style: `width:${(100 * r.time_ns) / slowest}%` }, parts.map(([part, ns]) => h("i", { title: `${words(part)} ${duration(ns)}`, style: `flex:${ns};background:${PARTS[part]}` })))),
    h("td", {}, h("a", { href: `#pair/${r.key}`, textContent: "compare" })));
}

async function after(job) {
  const figure = await (await ask(`api/jobs/${job.number}/figure.svg`, { raw: true })).text();
  const picture = h("img", { className: "figure", alt: "Time by parts, and over sizes", src: `data:image/svg+xml,${encodeURIComponent(figure)}` });
  const names = ["workload", "machine", "near", "policy", "time_ns", "faults", "evictions", "bytes_in", "bytes_out", "failed", "key"];
  const csv = () => saveCsv("race", Object.fromEntries(names.map((n) => [n, job.rows.map((r) => r[n])])));
  const png = () => { const c = h("canvas", { width: picture.naturalWidth * 2, height: picture.naturalHeight * 2 }), g = c.getContext("2d"); g.fillStyle = "#fff"; g.fillRect(0, 0, c.width, c.height); g.drawImage(picture, 0, 0, c.width, c.height); download("race.png", c.toDataURL(), "image/png"); };
  const stored = job.result.stored ? [`${job.result.stored} of ${job.rows.length} runs are from the store`] : [];
  return [h("div", { className: "card" }, h("div", { className: "spread" }, h("b", { textContent: "The same figure as tidegate compare --plot" }), saveButtons({ png, svg: () => download("race.svg", figure, "image/svg+xml"), csv })), picture, [...job.result.notes, ...stored].map((n) => h("p", { className: "soft", textContent: n })))];
}
