// An evaluation folder: the table, the mean curves, and the images, sorted so that failures are found first.
import * as api from "./api.js";
import { Curves } from "./charts.js";
import { $, Segments, element, options, time } from "./dom.js";
import { state, writeAddress } from "./state.js";

export class Results {
  // open(sample, method) shows an image; now() says which classifier is chosen and what methods it has.
  constructor(open, now) {
    this.open = open;
    this.now = now;
    this.seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) {
        this.seen.unobserve(entry.target);
        this.waiting.push(entry.target);
        this.drawWaiting();
      }
    });
    this.waiting = [];  // list items whose maps are to be drawn
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
    const [method, metric, order] = state.sort.split("~");
    options($("results-method"), methods.map((name) => [name, name]), methods.includes(method) ? method : learned ? learned.method : methods[0]);
    options($("results-metric"), this.metrics.map((name) => [name, name]), this.metrics.includes(metric) ? metric : this.sortBy);
    if (order === "best") $("results-order").value = order;
    for (const id of ["results-method", "results-metric", "results-order"])
      $(id).addEventListener("change", () => {
        state.sort = ["results-method", "results-metric", "results-order"].map((one) => $(one).value).join("~");
        writeAddress();
        this.showImages();
      });
    $("results-more").addEventListener("click", () => this.moreImages());
    await this.showImages();
  }

  showTable() {
    const { rows } = this.found;
    const classes = new Set(rows.map((row) => row.class)).size > 1;
    const head = element("tr", {}, element("th", { scope: "col" }, "method"), classes ? element("th", { scope: "col" }, "class") : null,
      ...this.metrics.map((name) => element("th", { scope: "col", "aria-sort": name === this.sortBy ? "descending" : null },
        element("button", { class: "plain", onclick: () => { this.sortBy = name; this.showTable(); } }, name))), element("th", { scope: "col" }, "time"));
    const value = (row) => row.metrics[this.sortBy]?.mean ?? -Infinity;
    const sorted = [...rows].sort((a, b) => value(b) - value(a));
    const body = sorted.map((row) => element("tr", {}, element("th", { scope: "row" }, row.method), classes ? element("td", {}, row.class) : null,
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
      const rows = one.figures.filter((row) => row.class === mine?.class && row.figures[metric] != null);
      const image = one.sample >= 0 ? element("img", { src: `/api/samples/${one.sample}.png`, width: 96, height: 96, alt: "", loading: "lazy" }) : element("span", { class: "no-image" }, "?");
      const item = element("li", {},
        element("p", { class: "image-name" }, one.image),
        element("div", { class: "strip" },
          element("button", { class: "thumb", disabled: one.sample < 0, "aria-label": `Open ${one.image}`, onclick: () => this.open(one.sample, method) }, image),
          ...rows.map((row) => element("figure", { class: row.method === method ? "mine" : "" },
            element("button", { class: "thumb", disabled: one.sample < 0, "data-method": row.method, "data-kept": row.map ? "" : null,
                                "aria-label": `Open ${one.image} with ${row.method}`, onclick: () => this.open(one.sample, row.method) },
              row.map ? element("img", { src: row.map, width: 96, height: 96, alt: `Map of ${row.method}`, loading: "lazy" }) : null),
            element("figcaption", {}, element("span", { class: "label" }, row.method), element("b", {}, row.figures[metric].toFixed(3)))))));
      item.sample = one.sample;
      if (one.sample >= 0 && rows.some((row) => !row.map)) this.seen.observe(item);
      return item;
    }));
  }

  // The maps of the images that are seen, one after the other, where the evaluation kept none: those of quick methods; the others are made when they are opened.
  async drawWaiting() {
    if (this.drawing) return;
    this.drawing = true;
    while (this.waiting.length > 0) {
      const item = this.waiting.shift(), { model, methods } = this.now();
      if (!item.isConnected) continue;
      const quick = (spec) => methods.some((one) => one.quick && one.name === spec.split(":")[0]);
      try {
        const { image } = await api.pickSample(item.sample);
        for (const button of item.querySelectorAll("[data-method]:not([data-kept])")) {
          const { method } = button.dataset;
          if (!item.isConnected) break;
          if (!quick(method)) {
            button.replaceChildren(element("span", { class: "no-image" }, "open"));
            continue;
          }
          const made = await api.explain({ image, model, method, score: false });
          button.replaceChildren(element("img", { src: made.map.overlay, width: 96, height: 96, alt: `Map of ${method}` }));
        }
      } catch { /* a method of another classifier: its figure stands without a map */ }
    }
    this.drawing = false;
  }
}
