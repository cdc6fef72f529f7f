// Cards: what was measured on real cards beside what is simulated, from the saved ledger.
import { ask, h } from "./dom.js";
import { saveButtons, saveCsv } from "./save.js";

const COLUMNS = ["set", "point", "role", "measured", "simulated", "ratio"];

export async function shown() {
  const { cards, rows } = await ask("api/cards");
  const columns = Object.fromEntries(Object.keys(rows[0]).map((name) => [name, rows.map((row) => row[name])]));
  return [h("div", { className: "card" }, h("div", { className: "spread" }, h("b", { textContent: "Tidegate beside real cards" }), saveButtons({ csv: () => saveCsv("cards", columns) })),
    h("p", { className: "soft", textContent: "Only test rows count: nothing was chosen by them. Computed anew: tidegate validate" }),
    h("img", { className: "figure", alt: "simulated over measured times", src: "api/cards/figure.svg" })),
  ...cards.map((card) => table(card, rows.filter((row) => row.machine === card.machine)))];
}

function table(card, rows) {
  const verdict = (row) => h("span", { className: `verdict ${row.within === "true" ? "HOLDS" : "DIFFERS"}`, textContent: row.within === "true" ? "within" : "off" });
  return h("div", { className: "card" }, h("b", { textContent: card.machine }), h("p", { className: "soft", textContent: card.words }),
    h("div", { className: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, [...COLUMNS, ""].map((c) => h("th", { textContent: c })))),
      h("tbody", {}, rows.map((row) => h("tr", {}, COLUMNS.map((c) => h("td", { textContent: row[c] })), h("td", {}, verdict(row))))))));
}
