// Curves, drawn by Chart.js.
import { Chart, LineController, LineElement, LinearScale, PointElement, Tooltip, Legend } from "./vendor/chart.mjs";

Chart.register(LineController, LineElement, LinearScale, PointElement, Tooltip, Legend);

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const lineColors = () => ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6", "--line-7", "--line-8"].map(css);

const all = new Set();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => all.forEach((chart) => chart.restyle()));

export class Curves {
  constructor(canvas, xTitle) {
    this.xTitle = xTitle;
    this.lines = [];
    this.point = null;
    this.chart = new Chart(canvas, {
      type: "line",
      data: { datasets: [] },
      options: {
        animation: false,
        responsive: true,
        maintainAspectRatio: false,
        parsing: false,
        normalized: true,
        interaction: { mode: "nearest", axis: "x", intersect: false },
        scales: { x: { type: "linear", min: 0, max: 100 }, y: { type: "linear", min: 0, max: 1 } },
        plugins: { tooltip: { callbacks: { title: (items) => `${items[0].parsed.x.toFixed(0)} %` } } },
      },
    });
    all.add(this);
    this.restyle();
  }

  // lines: [{label, points: [{x, y}], faint, dashed}]; point: {x, y, line} or null
  show(lines, point) {
    this.lines = lines;
    this.point = point;
    const palette = lineColors();
    const datasets = lines.map((line, n) => ({
      label: line.label,
      data: line.points,
      borderColor: palette[n % palette.length] + (line.faint ? "66" : ""),
      backgroundColor: palette[n % palette.length],
      borderDash: line.dashed ? [5, 4] : [],
      borderWidth: line.faint ? 1.5 : 2.5,
      pointRadius: 0,
      pointHitRadius: 8,
    }));
    if (point)
      datasets.push({ label: "now", data: [{ x: point.x, y: point.y }], showLine: false, pointRadius: 6, pointHoverRadius: 6,
                      borderColor: css("--ink"), backgroundColor: palette[point.line % palette.length], borderWidth: 2 });
    this.chart.data.datasets = datasets;
    this.chart.update("none");
  }

  restyle() {
    const ink = css("--soft"), grid = css("--line");
    const { scales, plugins } = this.chart.options;
    for (const [axis, text] of [["x", this.xTitle], ["y", "probability"]]) {
      scales[axis].ticks = { color: ink, maxTicksLimit: 6, callback: (v) => (axis === "x" ? `${v} %` : v.toFixed(1)) };
      scales[axis].grid = { color: grid };
      scales[axis].title = { display: true, text, color: ink };
    }
    plugins.legend = { position: "top", labels: { color: ink, boxWidth: 14, boxHeight: 2, filter: (item) => item.text !== "now" } };
    this.show(this.lines, this.point);
  }
}
