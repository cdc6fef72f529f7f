// Advice: will it fit, what is memory worth, what to do, and the code; the same as tidegate advise.
import { ask, follow, guarded, h, progressOf, say } from "./dom.js";
import { code } from "./plan.js";
import { field, listOf } from "./race.js";
import { download, saveButtons, saveCsv } from "./save.js";

const ABOUT = "Every candidate is simulated on a trace of the program: the driver, placements of objects, plans by tensor and published systems. The same as tidegate advise.";
const EXAMPLES = ["gpt-124m(steps=2)", "resnet50", "llama-7b(context=512, decode=4)"];

export async function show(main, { query, write, here }) {
  const names = await ask("api/names"), progress = progressOf(), drawn = h("div", { id: "advice" });
  const traces = names.opened.traces ?? [], machine = query.machine ?? "rtx3090-pcie4";
  const form = h("form", { className: "card", onsubmit: (e) => { e.preventDefault(); guarded(start); } }, h("div", { className: "row" },
    field("Recording, trace, ready model or workload", "program", query.program ?? traces[0] ?? EXAMPLES[0], { required: true, size: 34, list: "subjects" }),
    h("label", {}, "Machine", h("select", { name: "machine" }, Object.keys(names.machines).map((m) => h("option", { value: m, textContent: m, selected: m === machine })))),
    field("Near memory", "near", query.near ?? "", { size: 10, placeholder: "the machine's" }), h("button", { className: "main", textContent: "Advise" })), listOf("subjects", [...traces, ...EXAMPLES, ...names.workloads]));
  const start = async () => {
    say();
    drawn.replaceChildren();
    const of = Object.fromEntries(new FormData(form));
    write([], of);
    const job = await follow(await ask("api/advice", { body: of }), progress.show, here);
    if (job.state === "done" && here()) drawn.replaceChildren(...advised(job.result));
  };
  main.append(h("h1", { textContent: "Advice" }), h("p", { className: "soft", textContent: ABOUT }), form, progress.whole, drawn);
  if (query.program) guarded(start);
  return () => {};
}

function advised(found) {
  const words = h("div", { className: "card words", role: "status" }, found.words.map((text) => h("p", { textContent: text })));
  const [first, ...others] = found.pictures.map(picture);
  const notes = found.notes.length ? [h("div", { className: "card" }, found.notes.map((n) => h("p", { className: "soft", textContent: n })))] : [];
  const [candidates, ...rest] = found.tables.map(table);
  return [words, first, candidates, h("div", { className: "halves" }, others), ...rest, ...code(found.code, "advice"), ...notes].filter(Boolean);
}

function picture(svg, n) {
  const name = `advice-${n + 1}`, image = h("img", { className: "figure", alt: `Picture ${n + 1} of the advice`, src: `data:image/svg+xml,${encodeURIComponent(svg)}` });
  return h("div", { className: "card" }, h("div", { className: "spread" }, h("span"), saveButtons({ svg: () => download(`${name}.svg`, svg, "image/svg+xml") })), image);
}

function table({ title, columns, rows, left }) {
  const figures = columns.map((name, i) => name && i >= left && rows.every((r) => /^([\d–].{0,24})?$/.test(r[i])));
  const kind = (i) => (figures[i] ? "n" : "");
  const cell = (value, i) => (typeof value === "number" ? h("td", { style: "width:25%" }, h("div", { className: "bar" }, h("i", { style: `width:${100 * value}%;background:var(--accent)` }))) : h("td", { className: kind(i), textContent: value }));
  const csv = () => saveCsv(title, Object.fromEntries(columns.map((c, i) => [c || `column ${i + 1}`, rows.map((r) => r[i])])));
  return h("div", { className: "card" }, h("div", { className: "spread" }, h("b", { textContent: title }), saveButtons({ csv })),
    h("table", { className: rows.some((r) => typeof r.at(-1) === "number" || r.at(-1).length > 40) ? "" : "narrow" }, h("thead", {}, h("tr", {}, columns.map((c, i) => h("th", { className: kind(i), textContent: c })))), h("tbody", {}, rows.map((r) => h("tr", { className: r[0] === "*" ? "chosen" : "" }, r.map(cell))))));
}
