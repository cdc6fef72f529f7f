// Papers: each claim with what the paper says, what was measured here, and the verdict.
import { ask, follow, guarded, h, progressOf } from "./dom.js";
import * as cards from "./cards.js";
import { percent } from "./format.js";
import { download, saveButtons, saveCsv } from "./save.js";

export async function show(main, { args, here }) {
  const papers = await ask("api/papers"), name = papers.some((p) => p.name === args[0]) ? args[0] : papers[0].name;
  const isOfCards = args[0] === "cards", open = isOfCards ? "cards" : name;
  const links = h("div", { className: "row" }, [...papers.map((p) => p.name), "cards"].map((p) => h("a", { href: `#papers/${p}`, textContent: p, ariaCurrent: String(p === open), style: p === open ? "font-weight:600" : "" })));
  if (isOfCards) {
    main.append(h("h1", { textContent: "Cards" }), links, ...await cards.shown());
    return () => {};
  }
  const place = h("div"), progress = progressOf();
  const draw = async () => {
    const report = await ask(`api/papers/${name}`);
    if (here()) place.replaceChildren(...shown(name, report));
  };
  const make = h("button", { type: "button", textContent: "Make a quick report", onclick: () => guarded(async () => {
    make.disabled = true;
    const job = await follow(await ask(`api/papers/${name}/report`, { body: {} }), progress.show, here);
    make.disabled = false;
    if (job.state === "done") await draw();
  }) });
  main.append(h("h1", { textContent: "Papers" }), links, h("div", { className: "row" }, make, h("span", { className: "soft", textContent: "small sizes, some minutes; the whole: tidegate reproduce --json > report.json, then tidegate studio report.json" })), progress.whole, place);
  await draw();
  return () => {};
}

function shown(name, report) {
  const findings = report.ledger ?? [];
  const tally = Object.entries(findings.reduce((n, f) => ({ ...n, [f.verdict]: (n[f.verdict] ?? 0) + 1 }), {})).map(([v, n]) => `${n} ${v}`).join(", ");
  const readings = (f) => (f.share === null || f.share === undefined ? "–" : `${percent(f.share)} of ${f.readings}`);
  const rows = Object.entries(report.claims).flatMap(([id, claim]) => [
    h("tr", {}, h("td", { colSpan: 6 }, h("b", { textContent: `${id} ` }), claim.text, h("i", { className: "soft", textContent: ` (${claim.where})` }))),
    ...findings.filter((f) => f.claim === id).map((f) => h("tr", {}, h("td", { textContent: f.label }), h("td", { textContent: f.paper }), h("td", { textContent: f.ours }), h("td", {}, h("span", { className: `verdict ${f.verdict.split(" ")[0]}`, textContent: f.verdict })), h("td", { textContent: readings(f) }), h("td", { className: "soft", textContent: f.why }))),
  ]);
  const names = ["label", "where", "paper", "ours", "verdict", "share", "readings", "why"];
  return [h("div", { className: "card" }, h("div", { className: "spread" }, h("b", { textContent: report.title }), findings.length > 0 && saveButtons({ csv: () => saveCsv(`${name}-ledger`, Object.fromEntries(names.map((n) => [n, findings.map((f) => f[n])]))) })),
    h("p", { className: "soft", textContent: findings.length ? `${report.setup ?? ""} ${tally}` : "Nothing measured yet: these are the claims." }), (report.notes ?? []).map((n) => h("p", { className: "soft", textContent: n })),
    h("table", {}, h("thead", {}, h("tr", {}, ["claim", "paper", "ours", "verdict", "open readings", "why"].map((t) => h("th", { textContent: t })))), h("tbody", {}, rows))),
  ...(report.exhibits ?? []).map((e) => exhibit(name, e, report.drawn.includes(e.name)))];
}

function exhibit(paper, e, drawn) {
  const columns = Object.keys(e.rows[0] ?? {}), show = (v) => (typeof v === "number" ? +v.toPrecision(4) : (Array.isArray(v) ? v.join(" ") : v) ?? "");
  const address = `api/papers/${paper}/figure.svg?exhibit=${encodeURIComponent(e.name)}`;
  const svg = drawn && (() => guarded(async () => download(`${e.name}.svg`, await (await ask(address, { raw: true })).text(), "image/svg+xml")));
  return h("div", { className: "card" }, h("div", { className: "spread" }, h("b", { textContent: `${e.name}: ${e.title}` }), columns.length > 0 && saveButtons({ svg, csv: () => saveCsv(e.name, Object.fromEntries(columns.map((c) => [c, e.rows.map((r) => show(r[c]))]))) })),
    h("p", { className: "soft", textContent: `“${e.words}”` }), drawn && h("img", { className: "figure", alt: e.title, src: address }),
    h("div", { className: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, columns.map((c) => h("th", { textContent: c })))), h("tbody", {}, e.rows.map((r) => h("tr", {}, columns.map((c) => h("td", { textContent: show(r[c]) }))))))));
}
