// An evaluation folder: the table, the mean curves, and the images, sorted so that failures are found first.
import * as api from "./api.js";
import { Curves } from "./charts.js";
import { $, Segments, element, options, time } from "./dom.js";

export class Results {
  constructor(open) {
    this.open = open;
    this.found = null;
    this.mode = "deletion";
    this.reference = "";
    this.shown = 0;
  }

  async show() {
    if (this.found) return;
    this.found = await api.results();
    const { rows, target, data, images, references } = this.found;
    $("results-about").textContent = `${target} on ${data}, ${images} images; mean over ${references.join(", ")}.`;
    this.metrics = rows.length ? Object.keys(rows[0].metrics) : [];
    this.sortBy = this.metrics.includes("ins-del") ? "ins-del" : this.metrics[0];
    this.showTable();
    this.chart = new Curves($("results-chart"), "pixels removed");
    this.reference = references[0];
    this.modes = new Segments($("results-modes"), [["deletion", "Most important first"], ["insertion", "Least important first"]], (mode) => { this.mode = mode; this.showCurves(); });
    this.references = new Segments($("results-references"), references.map((name) => [name, name]), (name) => { this.reference = name; this.showCurves(); });
    this.showCurves();
    const methods = [...new Set(rows.map((row) => row.method))];
    const learned = rows.find((row) => row.learned);
    options($("results-method"), methods.map((name) => [name, name]), learned ? learned.method : methods[0]);
    options($("results-metric"), this.metrics.map((name) => [name, name]), this.sortBy);
    for (const id of ["results-method", "results-metric", "results-order"]) $(id).addEventListener("change", () => this.showImages());
    $("results-more").addEventListener("click", () => this.moreImages());
    await this.showImages();
  }

  showTable() {
    const { rows } = this.found;
    const head = element("tr", {}, element("th", { scope: "col" }, "method"), element("th", { scope: "col" }, "class"),
      ...this.metrics.map((name) => element("th", { scope: "col", "aria-sort": name === this.sortBy ? "descending" : null },
        element("button", { class: "plain", onclick: () => { this.sortBy = name; this.showTable(); } }, name))), element("th", { scope: "col" }, "time"));
    const value = (row) => row.metrics[this.sortBy]?.mean ?? -Infinity;
    const sorted = [...rows].sort((a, b) => value(b) - value(a));
    const body = sorted.map((row) => element("tr", {}, element("th", { scope: "row" }, row.method), element("td", {}, row.class),
      ...this.metrics.map((name) => {
        const { mean, low, high } = row.metrics[name] || {};
        return element("td", { title: mean == null ? "" : `95 % interval ${low?.toFixed(4)} to ${high?.toFixed(4)}` }, mean == null ? "–" : mean.toFixed(4));
      }), element("td", {}, row.seconds_per_image == null ? "–" : time(row.seconds_per_image))));
    $("results-table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
  }

  showCurves() {
    this.modes.set(this.mode);
    this.references.set(this.reference);
    const side = this.mode === "deletion" ? "top" : "bottom", explained = this.found.rows[0]?.class;
    const lines = this.found.rows.filter((row) => row.class === explained && row.curves[this.reference]).map((row) => {
      const ys = row.curves[this.reference][side];
      const steps = this.found.settings?.protocol?.steps || ys.length;
      return { label: row.method, points: ys.map((y, i) => ({ x: (100 * i) / steps, y })) };
    });
    this.chart.show(lines, null);
  }

  async showImages() {
    this.shown = 0;
    $("results-images").replaceChildren();
    await this.moreImages();
  }

  async moreImages() {
    const method = $("results-method").value, metric = $("results-metric").value;
    const { total, images } = await api.resultsImages({ method, metric, order: $("results-order").value, first: this.shown, limit: 24 });
    this.shown += images.length;
    $("results-more").hidden = this.shown >= total;
    $("results-images").append(...images.map((one) => {
      const mine = one.figures.find((row) => row.method === method);
      const others = one.figures.filter((row) => row.class === mine?.class && row.figures[metric] != null)
        .map((row) => element("tr", { class: row.method === method ? "mine" : "" }, element("th", { scope: "row" }, row.method), element("td", {}, row.figures[metric].toFixed(3))));
      const image = one.sample >= 0 ? element("img", { src: `/api/samples/${one.sample}.png`, width: 96, height: 96, alt: "", loading: "lazy" }) : element("span", { class: "no-image" }, "?");
      return element("li", {}, element("button", { class: "thumb", disabled: one.sample < 0, "aria-label": `Open ${one.image}`, onclick: () => this.open(one.sample, method) }, image),
        element("div", {}, element("p", { class: "image-name" }, one.image), element("table", {}, element("tbody", {}, ...others))));
    }));
  }
}
