// The list of runs.
import { ask, h } from "./dom.js";
import { count, duration, size } from "./format.js";
import { saveButtons, saveCsv } from "./save.js";

export const policiesOf = (run) => run.tiering || `${run.eviction} + ${run.prefetch} + ${run.placement}`;

/** A table of all runs with a filter; `pick` makes a button of each row in place of a link. */
export async function runTable({ pick, among = () => true, label = "Take" } = {}) {
  const runs = (await ask("api/runs")).filter(among);
  const body = h("tbody");
  const filter = h("input", { type: "search", placeholder: "Filter: workload, policy, machine", ariaLabel: "Filter runs", size: 36, oninput: () => fill() });
  const fill = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = runs.filter((r) => words.every((w) => `${r.workload} ${policiesOf(r)} ${r.machine}`.toLowerCase().includes(w)));
    body.replaceChildren(...found.slice(0, 300).map((r) => h("tr", {}, h("td", {}, pick ? h("button", { type: "button", textContent: label, onclick: () => pick(r) }) : h("a", { href: `#run/${r.key}`, textContent: r.workload })), pick && h("td", { textContent: r.workload }),
      h("td", { textContent: policiesOf(r) }), h("td", { textContent: r.machine }), h("td", { className: "n", textContent: `${size(r.footprint_bytes)} in ${size(r.near_bytes)}` }), h("td", { className: "n", textContent: duration(r.time_ns) }), h("td", { className: "n", textContent: count(r.faults) }), h("td", { className: "n", textContent: count(r.evictions) }))));
  };
  fill();
  const names = [...(pick ? [""] : []), "workload", "policies", "machine", "memory", "time", "faults", "evictions"];
  const columns = ["workload", "eviction", "prefetch", "placement", "tiering", "machine", "near_bytes", "footprint_bytes", "time_ns", "faults", "evictions", "bytes_in", "bytes_out", "key"];
  return h("div", { className: "card" }, h("div", { className: "spread" }, filter, runs.length > 0 && saveButtons({ csv: () => saveCsv("runs", Object.fromEntries(columns.map((c) => [c, runs.map((r) => r[c])]))) })),
    runs.length ? h("table", {}, h("thead", {}, h("tr", {}, names.map((n) => h("th", { className: ["memory", "time", "faults", "evictions"].includes(n) ? "n" : "", textContent: n })))), body)
      : h("p", { className: "soft", textContent: "There are none yet. Start a race, or tidegate run in a terminal." }));
}
