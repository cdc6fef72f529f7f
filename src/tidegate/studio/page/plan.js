// Plans: where each object of a program lives at each launch, predicted times, and the code.
import { ask, follow, guarded, h, progressOf, say } from "./dom.js";
import { colour, duration, percent, size } from "./format.js";
import { field, listOf } from "./race.js";
import { download, saveButtons, saveCsv } from "./save.js";

export async function show(main, { query, write, here }) {
  const names = await ask("api/names"), progress = progressOf(), drawn = h("div");
  const form = h("form", { className: "card", onsubmit: (e) => { e.preventDefault(); guarded(start); } }, h("div", { className: "row" },
    h("label", {}, "Program", h("select", { name: "program" }, names.programs.map((p) => h("option", { value: p, textContent: p, selected: p === (query.program ?? "srad") })))),
    field("Near memory", "near", query.near ?? "1GiB", { size: 10 }), field("Placement", "placement", query.placement ?? "rdm", { size: 14, list: "placements" }), h("button", { className: "main", textContent: "Plan" })), listOf("placements", names.placement));
  const start = async () => {
    say();
    drawn.replaceChildren();
    const of = Object.fromEntries(new FormData(form));
    write([], of);
    const job = await follow(await ask("api/plan", { body: of }), progress.show, here);
    if (job.state === "done" && here()) drawn.replaceChildren(...planned(job.result));
  };
  main.append(h("h1", { textContent: "Plan" }), h("p", { className: "soft", textContent: "Where each object of a program should live at each launch, and what that would bring. For your own program: tidegate plan FILE --emit json > plan.json, then tidegate studio plan.json." }), form, progress.whole, drawn);
  if (query.program) guarded(start);
  else if (names.opened.plan) drawn.replaceChildren(...planned(names.opened.plan));
  return () => {};
}

function planned(plan) {
  const objects = [...new Set(plan.places.flatMap((p) => p.objects))];
  const sizes = plan.sizes ?? Object.fromEntries(plan.places.flatMap((p) => p.visits.flat(2)).map((a) => [a.object, a.bytes]));
  const cell = (place, name) => {
    if (!place.objects.includes(name)) return h("td", { className: "cell soft", textContent: "·" });
    const near = place.near[name] ?? 0, share = Math.min(1, near / (sizes[name] || near || 1));
    const actions = (place.visits[0] ?? []).filter((a) => a.object === name).map((a) => a.verb);
    return h("td", { className: "cell", title: actions.length ? `before its first launch: ${actions.join(", ")}` : "nothing is asked for", style: `background:color-mix(in srgb, ${colour("--accent")} ${Math.round(70 * share)}%, transparent)`, textContent: `${percent(share)}${actions.length ? " •" : ""}` });
  };
  const grid = h("table", { className: "places" }, h("thead", {}, h("tr", {}, h("th", { textContent: "object" }), plan.places.map((p) => h("th", { textContent: p.region })))),
    h("tbody", {}, objects.map((o) => h("tr", {}, h("td", { textContent: `${o}${sizes[o] ? `, ${size(sizes[o])}` : ""}` }), plan.places.map((p) => cell(p, o))))));
  const columns = { object: [], launch: [], near_bytes: [] };
  plan.places.forEach((p) => p.objects.forEach((o) => { columns.object.push(o); columns.launch.push(p.region); columns.near_bytes.push(p.near[o] ?? 0); }));
  return [h("div", { className: "card" }, h("div", { className: "spread" }, h("b", { textContent: `${plan.source}: near at the last launch of each place` }), saveButtons({ csv: () => saveCsv("plan", columns) })), h("div", { className: "scroll" }, grid), h("p", { className: "soft", textContent: "• something is asked for before the first launch (point at it)" })),
    predicted(plan), ...code(plan), ...(plan.notes?.length ? [h("div", { className: "card" }, plan.notes.map((n) => h("p", { className: "soft", textContent: n })))] : [])];
}

function predicted(plan) {
  const all = Object.entries(plan.predicted ?? {}), times = all.map(([, p]) => p.time_ns ?? 0), slowest = Math.max(1, ...times), um = plan.predicted?.um?.time_ns;
  return h("div", { className: "card" }, h("b", { textContent: "Predicted, of what the compiler believes" }), h("table", {}, h("tbody", {}, all.map(([name, p]) => h("tr", {}, h("td", { style: "white-space:nowrap", textContent: name === plan.chosen ? `${name} (chosen)` : name }),
    p.time_ns === undefined ? h("td", { colSpan: 3, className: "soft", textContent: p.failed ?? p["why not"] }) : [h("td", { className: "n", textContent: duration(p.time_ns) }), h("td", { className: "n", textContent: um ? `${(um / p.time_ns).toFixed(2)}×` : "" }), h("td", { style: "width:50%" }, h("div", { className: "bar" }, h("i", { style: `width:${(100 * p.time_ns) / slowest}%;background:var(--accent)` })))])))));
}

const KINDS = { torch: ["PyTorch", ".py"], cuda: ["CUDA", ".cuh"], openmp: ["OpenMP", ".h"] };

/** A card for each kind of code, to copy and to save; `name` is the file's. */
export function code(found, name = "plan") {
  return Object.keys(KINDS).filter((kind) => found[kind]).map((kind) => h("div", { className: "card" }, h("div", { className: "spread" }, h("b", { textContent: KINDS[kind][0] }), h("span", {},
    h("button", { type: "button", className: "quiet", textContent: "Copy", onclick: (e) => { navigator.clipboard.writeText(found[kind]); e.target.textContent = "Copied"; } }), h("button", { type: "button", className: "quiet", textContent: "Save", onclick: () => download(`${name}${KINDS[kind][1]}`, found[kind], "text/plain") }))), h("pre", { textContent: found[kind] })));
}
