// The page. One image, one class, one method at a time: `now` holds what is shown of them, `state` what was chosen.
import * as api from "./api.js";
import { Curves } from "./charts.js";
import { $, Segments, element, firstName, options, passes, percent, say, signed, time } from "./dom.js";
import { colors, contour, keepRuns, mapPixels, paintOfText, prepared, scrubbedPixels, shareToPixels, textOfPaint } from "./maps.js";
import { Results } from "./results.js";
import { readAddress, state, writeAddress } from "./state.js";
import { Viewer, kContours } from "./viewer.js";

const now = {
  models: [], methods: [], classes: [], pixels: null, reference: null,
  map: null, contrast: null,  // {json, map}
  steps: new Map(),           // T -> json of its map
  curve: null, painted: null, cards: [],
};

const model = () => now.models.find((one) => one.name === state.model) || now.models[0];
const inputUrl = () => `/api/images/${state.image}.png?model=${encodeURIComponent(state.model)}`;
const referenceUrl = () => `/api/images/${state.image}/${state.reference}.png?model=${encodeURIComponent(state.model)}`;
const insDel = (json) => json.insertion - json.deletion;

// What was asked last counts: answers to earlier questions are dropped.
let turn = 0;
const guarded = (work) => async (...args) => {
  const mine = ++turn;
  const stale = () => mine !== turn;
  document.body.classList.add("busy");
  try {
    say("");
    await work(stale, ...args);
  } catch (error) {
    if (!stale() && error.status !== 499) say(error.message);
    if (!(error instanceof api.ApiError)) console.error(error);
  } finally {
    if (!stale()) document.body.classList.remove("busy");
  }
};

// ---- drawing ----

const mapViewer = new Viewer($("map"), { onPixel: (pixel) => readOut(pixel, now.map), onView: followZoom });
const contrastViewer = new Viewer($("contrast"), { onPixel: (pixel) => readOut(pixel, now.contrast), onView: followZoom });
const scrubViewer = new Viewer($("scrubbed"), { onPixel: moveBrush });
const curves = new Curves($("curve"), "pixels deleted or inserted");

function followZoom(moved) {
  $("zoom-value").textContent = `${moved.zoom.toFixed(moved.zoom < 10 && moved.zoom % 1 ? 1 : 0)}×`;
  for (const other of [mapViewer, contrastViewer])
    if (other !== moved && (other.zoom !== moved.zoom || other.center !== moved.center)) {
      other.zoom = moved.zoom;
      other.center = moved.center;
      other.draw();
    }
  state.at = moved.zoom > 1 ? [moved.zoom, ...moved.center].map((x) => x.toFixed(3)).join("_") : "";
  writeAddress();
}

function zoomAsSaid() {
  const [zoom, x, y] = state.at.split("_").map(Number);
  if (zoom > 1 && x >= 0 && y >= 0) mapViewer.setZoom(zoom, [x, y]);
  else if (mapViewer.zoom > 1) mapViewer.setZoom(1);
}

function readOut(pixel, shown) {
  if (!pixel || !shown || !now.pixels) {
    $("readout").textContent = "\u00a0";
    return;
  }
  const [x, y] = pixel, i = y * shown.map.width + x, rgb = now.pixels.data.slice(4 * i, 4 * i + 3);
  $("readout").textContent = `x ${x}  y ${y}   map ${shown.map.values[i].toPrecision(4)}   ` +
    `rank ${shown.map.ranks[i] + 1} of ${shown.map.values.length}   rgb ${[...rgb].join(" ")}`;
}

function drawMap(viewer, canvas, shown, what) {
  if (!now.pixels) return viewer.clear();
  const lines = shown && state.view === "contour" ? kContours.map(([share]) => contour(shown.map, share)) : [];
  viewer.show(mapPixels(now.pixels, shown && shown.map, state.view, state.opacity / 100), lines);
  canvas.setAttribute("aria-label", shown
    ? `${state.view} of the map of ${shown.json.method} for ${what}, Ins-Del ${signed(insDel(shown.json))}` : "The image");
}

function drawMaps() {
  drawMap(mapViewer, $("map"), now.map, now.map ? firstName(now.map.json.class.name, now.map.json.class.index) : "");
  if (now.contrast) drawMap(contrastViewer, $("contrast"), now.contrast, now.contrast.json.class.name);
  for (const card of now.cards) card.drawMap();
}

function scrubOf(map) {
  return { pixels: now.pixels, reference: now.reference, ranks: map && map.ranks, mode: state.mode,
           k: map ? shareToPixels(state.share, map.values.length, state.mode) : 0, painted: now.painted };
}

function drawScrub() {
  if (!now.pixels || !now.reference) return scrubViewer.clear();
  scrubViewer.show(scrubbedPixels(scrubOf(now.map && now.map.map)));
  $("scrubbed").setAttribute("aria-label",
    `The image with ${state.share} % of the pixels ${state.mode === "delete" ? "deleted" : "inserted"}, reference ${state.reference}`);
  for (const card of now.cards) card.drawScrub();
}

function drawCurve() {
  if (!now.curve) return curves.show([], null);
  const pixels = now.map.map.values.length;
  const points = (ys) => ys.map((y, i) => ({ x: (100 * now.curve.k[i]) / pixels, y }));
  const deletes = state.mode === "delete";
  const said = now.probability;
  $("curve").setAttribute("aria-label", "Probability over the share of pixels. " + (deletes ? "Deletion: " : "Insertion: ") +
    points(deletes ? now.curve.deletion : now.curve.insertion).filter((_, i) => i % 4 === 0).map(({ x, y }) => `${x.toFixed(0)} %: ${percent(y)}`).join(", "));
  curves.show([{ label: "deletion", points: points(now.curve.deletion), faint: !deletes },
               { label: "insertion", points: points(now.curve.insertion), faint: deletes }],
              said == null ? null : { x: state.share, y: said, line: deletes ? 0 : 1 });
}

function showChoices() {
  views.set(state.view);
  modes.set(state.mode);
  references.set(state.reference);
  $("opacity").value = state.opacity;
  $("opacity").disabled = state.view !== "overlay";
  for (const id of ["share", "share-all"]) {
    $(id).value = state.share;
    $(`${id}-value`).textContent = `${state.share} %`;
  }
  $("T").value = state.T;
  $("T-value").textContent = state.T;
  writeAddress();
}

// ---- asking what the classifier says: one question under way, the newest waits ----

class Asker {
  constructor(question, answered) {
    this.question = question;
    this.answered = answered;
    this.running = false;
    this.again = false;
  }
  async ask() {
    if (this.running) {
      this.again = true;
      return;
    }
    this.running = true;
    do {
      this.again = false;
      const question = this.question();
      if (!question) break;
      try {
        const answer = await api.score(question);
        if (!this.again) this.answered(answer);
      } catch (error) {
        if (!this.again) say(error.message);
      }
    } while (this.again);
    this.running = false;
  }
}

function questionFor(json, map) {
  if (!json || !map) return null;
  const painted = now.painted && now.painted.some(Boolean);
  const k = shareToPixels(state.share, map.values.length, state.mode);
  if (painted) return { map: json.map.id, reference: state.reference, keep: keepRuns({ ranks: map.ranks, k, mode: state.mode, painted: now.painted }) };
  return { map: json.map.id, k, mode: state.mode, reference: state.reference };
}

// What an answer is to: only the newest question's is shown.
const asked = () => `${state.share} ${state.mode} ${state.reference}`;

const asker = new Asker(() => now.map && questionFor(now.map.json, now.map.map), ({ probability, predicted }) => {
  const chosen = now.map.json.class;
  now.probability = probability;
  $("probability").textContent = percent(probability);
  $("probability").dataset.value = probability;
  $("probability").dataset.asked = asked();
  $("probability-of").textContent = firstName(chosen.name, chosen.index);
  $("now").textContent = predicted.index === chosen.index ? "still the first answer"
    : `the answer is now ${firstName(predicted.name, predicted.index)}, ${percent(predicted.probability)}`;
  drawCurve();
});

function askAll() {
  asker.ask();
  for (const card of now.cards) card.ask();
}

// ---- the story: image, classes, map ----

async function bring(image) {
  state.image = image.image;
  state.name = image.name;
  state.sample = image.sample == null ? "" : String(image.sample);
  state.class = state.contrast = state.compare = state.paint = "";
}

async function showImage(stale) {
  const picked = state.sample;
  for (const button of $("samples").children) button.setAttribute("aria-pressed", String(button.dataset.sample === picked));
  const [pixels, said] = await Promise.all([
    api.readPixels(inputUrl()), api.classify({ image: state.image, model: state.model, topk: 10 })]);
  if (stale()) return;
  now.pixels = pixels;
  now.map = now.contrast = now.curve = now.probability = null;
  now.painted = paintOfText(state.paint, pixels.width * pixels.height);
  $("brush-clear").disabled = !now.painted;
  setCards([]);
  now.classes = said.classes;
  if (state.class === "") state.class = String(said.classes[0].index);
  await showReference(stale);
  if (stale()) return;
  showClasses();
  drawMaps();
  await showMap(stale);
  if (stale() || state.compare === "") return;
  await compare(stale);
}

async function showReference(stale) {
  const pixels = await api.readPixels(referenceUrl());
  if (!stale()) now.reference = pixels;
}

function showClasses() {
  const shown = now.classes.slice(0, 5);
  for (const wanted of [state.class, state.contrast])
    if (wanted !== "" && !shown.some((one) => String(one.index) === wanted)) {
      const found = now.classes.find((one) => String(one.index) === wanted);
      shown.push(found || { index: Number(wanted), name: (model().class_names || [])[wanted] || "", probability: null });
    }
  $("classes").replaceChildren(...shown.map((one) => {
    const index = String(one.index), name = firstName(one.name, one.index);
    const said = one.probability == null ? "" : percent(one.probability);
    const bar = element("span", { class: "bar" });
    bar.style.width = `${100 * (one.probability || 0)}%`;
    return element("li", {},
      element("button", { class: "class", "data-class": index, "aria-pressed": String(index === state.class), title: one.name,
                          onclick: () => chooseClass(index) }, bar, element("span", { class: "name" }, name), element("span", { class: "p" }, said)),
      element("button", { class: "beside", "aria-pressed": String(index === state.contrast), disabled: index === state.class,
                          "aria-label": `Put ${name} beside it`, onclick: () => chooseContrast(index) }, "+"));
  }));
}

const specOf = () => state.method || model().method;
const refines = () => specOf().split(":")[0] === "aha";

async function explained(wanted, T) {
  const work = { image: state.image, model: state.model, class: wanted, method: specOf(), refine: refines() ? T : 0 };
  const known = now.methods.find((one) => one.name === specOf().split(":")[0]);
  const json = known && known.quick ? await api.job("/api/explain", work, showProgress) : await followed("/api/explain", work);
  return { json, map: prepared(await api.readMap(json.map.npy)) };
}

async function showMap(stale) {
  now.steps = new Map();
  showChoices();
  showSteps();
  const T = refines() ? state.T : 0;
  let found = null;
  for (let step = 0; step <= T; ++step) {  // each on the way has a score too
    found = await explained(state.class, step);
    if (stale()) return;
    now.steps.set(step, found);
    showSteps();
  }
  await useMap(stale, found);
}

async function useMap(stale, found) {
  now.map = found;
  showProgress(null);
  const contrast = state.contrast === "" ? null : await explained(state.contrast, refines() ? state.T : 0);
  if (stale()) return;
  now.contrast = contrast;
  $("contrast-figure").hidden = !contrast;
  showFacts();
  drawMaps();
  drawScrub();
  now.curve = null;
  now.probability = null;
  const curve = await api.curve({ map: found.json.map.id, reference: state.reference, steps: 20 });
  if (stale()) return;
  now.curve = curve;
  drawCurve();
  askAll();
}

function caption(shown) {
  const { class: chosen } = shown.json;
  return `${firstName(chosen.name, chosen.index)}  ${percent(chosen.probability)}`;
}

function showFacts() {
  const json = now.map.json;
  $("map-caption").textContent = caption(now.map);
  if (now.contrast) $("contrast-caption").textContent = caption(now.contrast);
  const facts = [["Ins-Del", signed(insDel(json))], ["insertion", json.insertion.toFixed(3)], ["deletion", json.deletion.toFixed(3)],
                 ["random map", json.random ? signed(insDel(json.random)) : "–"], ["time", time(json.seconds)], ["passes", passes(json.passes)]];
  $("facts").replaceChildren(...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  const stem = (state.name.split("/").pop() || "image").replace(/\.[^.]*$/, "");
  for (const [id, url, end] of [["get-npy", json.map.npy, "map.npy"], ["get-heat", json.map.heat, "heat.png"],
                                ["get-overlay", `${json.map.overlay}?opacity=${state.opacity / 100}`, "overlay.png"],
                                ["get-json", `/api/maps/${json.map.id}.json`, "json"]]) {
    $(id).href = url;
    $(id).download = `${stem}.${end}`;
  }
}

function showSteps() {
  $("steps-card").classList.toggle("off", !refines());
  $("T").disabled = !refines();
  const rows = [];
  for (let T = 0; T <= 5; ++T) {
    const step = now.steps.get(T), json = step && step.json;
    const cells = json ? [signed(insDel(json)), json.insertion.toFixed(3), json.deletion.toFixed(3), time(json.seconds), passes(json.passes)]
      : ["–", "–", "–", "–", "–"];
    rows.push(element("tr", { "aria-current": T === state.T && refines() ? "true" : null, "data-step": T },
                      element("th", { scope: "row" }, String(T)), ...cells.map((cell) => element("td", {}, cell))));
  }
  $("steps").tBodies[0].replaceChildren(...rows);
  const kept = now.steps.get(state.T)?.json;
  $("steps-note").textContent = kept && kept.refine > 0 && kept.loss == null ? `No gain in ${kept.refine} ${kept.refine === 1 ? "step" : "steps"}: the map before is kept.`
    : "A refined map is kept where hard masks show it to be better.";
}

// ---- long work ----

let stopper = null;
function showProgress(job) {
  $("progress").hidden = !job;
  if (!job) return;
  const { progress, state: phase } = job;
  if (progress && progress.total > 0) $("progress-bar").value = progress.done / progress.total;
  else $("progress-bar").removeAttribute("value");
  $("progress-text").textContent = progress ? `${progress.what} ${progress.note || ""}` : phase;
}

async function followed(path, work) {
  if (stopper) stopper.abort();
  stopper = new AbortController();
  showProgress({ state: "waiting" });
  try {
    return await api.job(path, work, showProgress, stopper.signal);
  } finally {
    stopper = null;
    showProgress(null);
  }
}

// ---- methods side by side ----

class Card {
  constructor(json, map) {
    this.json = json;
    this.map = map;
    this.mapCanvas = element("canvas", { class: "square", role: "img" });
    this.scrubCanvas = element("canvas", { class: "square", role: "img" });
    this.says = element("output", { class: "says" }, "–");
    const better = insDel(json);
    this.box = element("article", { class: "method-card", "data-method": json.method },
      element("h3", {}, element("button", { class: "plain", title: "Show this map above", onclick: () => chooseMethod(json.method) }, json.method)),
      element("div", { class: "pair" }, this.mapCanvas, this.scrubCanvas),
      element("p", {}, element("b", {}, `Ins-Del ${signed(better)}`), " ", this.says),
      element("p", { class: "cost" }, `${passes(json.passes)} · ${time(json.seconds)}`));
    this.mapCanvas.setAttribute("aria-label", `Map of ${json.method}, Ins-Del ${signed(better)}`);
    this.scrubCanvas.setAttribute("aria-label", `The image scrubbed by ${json.method}`);
    this.views = [new Viewer(this.mapCanvas, { onPixel: (pixel) => readOut(pixel, this) }), new Viewer(this.scrubCanvas)];
    this.asker = new Asker(() => questionFor(json, map), ({ probability }) => {
      this.says.textContent = percent(probability);
      this.says.dataset.value = probability;
      this.says.dataset.asked = asked();
    });
  }
  drawMap() {
    const lines = state.view === "contour" ? kContours.map(([share]) => contour(this.map, share)) : [];
    this.views[0].show(mapPixels(now.pixels, this.map, state.view, state.opacity / 100), lines);
  }
  drawScrub() { this.views[1].show(scrubbedPixels(scrubOf(this.map))); }
  ask() { this.asker.ask(); }
}

function setCards(cards) {
  now.cards = cards;
  const best = Math.max(...cards.map((card) => insDel(card.json)));
  for (const card of cards) card.box.classList.toggle("best", cards.length > 1 && insDel(card.json) === best);
  $("cards").replaceChildren(...cards.map((card) => card.box));
  $("share-all-row").hidden = cards.length === 0;
}

async function compare(stale) {
  if (state.image === "") return;
  state.compare = "1";
  const methods = chosenMethods();
  if (methods.length === 0) return say("Choose methods to compare.");
  writeAddress();
  const found = await followed("/api/compare", { image: state.image, model: state.model, class: state.class, methods });
  const maps = await Promise.all(found.methods.map((one) => api.readMap(one.map.npy)));
  if (stale()) return;
  setCards(found.methods.map((one, i) => new Card(one, prepared(maps[i]))));
  drawMaps();
  drawScrub();
  askAll();
}

const chosenMethods = () => (state.methods === "" ? defaultMethods() : state.methods.split(",").filter(Boolean));
function defaultMethods() {
  const quick = now.methods.filter((one) => one.quick).map((one) => one.name);
  return quick.slice(0, 6);
}

function showChips() {
  const chosen = chosenMethods();
  const names = [...new Set([...now.methods.map((one) => one.name), ...chosen])];
  $("chips").replaceChildren(...names.map((name) => {
    const record = now.methods.find((one) => one.name === name);
    return element("label", { class: "chip", title: record ? record.summary : "" },
      element("input", { type: "checkbox", value: name, checked: chosen.includes(name), onchange: () => {
        state.methods = [...$("chips").querySelectorAll("input:checked")].map((box) => box.value).join(",") || ",";
        writeAddress();
      } }), name);
  }));
}

// ---- the form of a method follows from its record ----

function showMethod() {
  const spec = specOf(), [name, ...set] = spec.split(":");
  options($("method"), now.methods.map((one) => [one.name, one.quick ? one.name : `${one.name} (slow)`]), name);
  const record = now.methods.find((one) => one.name === name);
  const values = Object.fromEntries(set.map((one) => one.split("=")));
  const inputs = (record ? record.options : []).filter((one) => one.name !== "T" && one.name !== "budget").map((one) => {
    const value = values[one.name] ?? (Array.isArray(one.default) ? one.default.join(",") : String(one.default));
    const box = one.choices && !Array.isArray(one.default)
      ? element("select", { name: one.name }, ...one.choices.map((c) => element("option", { value: c, selected: c === value }, c)))
      : typeof one.default === "boolean"
        ? element("select", { name: one.name }, ...["true", "false"].map((c) => element("option", { value: c, selected: c === value }, c)))
        : element("input", { name: one.name, value, size: 6, inputmode: typeof one.default === "number" ? "decimal" : null });
    box.dataset.start = Array.isArray(one.default) ? one.default.join(",") : String(one.default);
    return element("label", { title: one.help }, `${one.name} `, box);
  });
  const apply = element("button", { onclick: () => chooseMethod(specFromForm()) }, "Apply");
  $("method-options").replaceChildren(inputs.length ? element("details", {}, element("summary", {}, "Options"), ...inputs, apply) : "");
}

function specFromForm() {
  const set = [...$("method-options").querySelectorAll("input, select")].filter((box) => box.value !== box.dataset.start)
    .map((box) => `:${box.name}=${box.value}`);
  return $("method").value + set.join("");
}

// ---- what a person does ----

const openFile = guarded(async (stale, file) => {
  if (!file) return;
  const limit = now.limits.upload_bytes;
  if (file.size > limit) throw new api.ApiError(`${file.name} has ${(file.size / 2 ** 20).toFixed(1)} MB; at most ${limit / 2 ** 20} MB are taken.`, 413);
  const image = await api.sendImage(file);
  if (stale()) return;
  await bring(image);
  await showImage(stale);
});
const openSample = guarded(async (stale, sample) => {
  const image = await api.pickSample(Number(sample));
  if (stale()) return;
  await bring(image);
  await showImage(stale);
});
const again = guarded(async (stale) => { if (state.image) await showMap(stale); });
const compareAgain = guarded(compare);
const chooseModel = guarded(async (stale, name) => {
  state.model = name;
  state.method = state.methods = state.class = state.contrast = "";
  await showModel();
  if (!stale() && state.image) await showImage(stale);
});
const chooseReference = guarded(async (stale, reference) => {
  state.reference = reference;
  showChoices();
  if (!state.image) return;
  await showReference(stale);
  if (!stale() && now.map) await useMap(stale, now.map);
});
const chooseT = guarded(async (stale) => {
  if (!now.map) return;
  for (let step = 0; step <= state.T; ++step) {
    if (!now.steps.has(step)) {
      const found = await explained(state.class, step);
      if (stale()) return;
      now.steps.set(step, found);
      showSteps();
    }
  }
  showSteps();
  await useMap(stale, now.steps.get(state.T));
});

function chooseClass(index) {
  state.class = index;
  if (state.contrast === index) state.contrast = "";
  setCards([]);
  state.compare = "";
  showClasses();
  again();
}
function chooseContrast(index) {
  state.contrast = state.contrast === index ? "" : index;
  showClasses();
  again();
}
function chooseMethod(spec) {
  const T = /^aha:T=(\d)$/.exec(spec);  // the slider's part
  state.method = T ? "aha" : spec;
  if (T) state.T = Number(T[1]);
  showMethod();
  again();
}
function chooseView(view) {
  state.view = view;
  showChoices();
  drawMaps();
}
function chooseMode(mode) {
  state.mode = mode;
  scrubTo(state.share);
}
function scrubTo(share) {
  state.share = Math.min(100, Math.max(0, share));
  showChoices();
  drawScrub();
  askAll();
}

// ---- the brush ----

let brushOn = false;
function moveBrush(pixel) {
  if (brushOn && pixel) {
    scrubViewer.cursor = { x: pixel[0], y: pixel[1], radius: brushRadius() };
    scrubViewer.draw();
  }
}
const brushRadius = () => (now.pixels ? (Number($("brush-size").value) / 100) * now.pixels.width : 1);
function paint(pixel) {
  if (!pixel || !now.pixels) return;
  const { width, height } = now.pixels, radius = Math.max(0.5, brushRadius());
  if (!now.painted) now.painted = new Uint8Array(width * height);
  for (let y = Math.floor(pixel[1] - radius); y <= pixel[1] + radius; ++y)
    for (let x = Math.floor(pixel[0] - radius); x <= pixel[0] + radius; ++x)
      if (x >= 0 && y >= 0 && x < width && y < height && (x - pixel[0]) ** 2 + (y - pixel[1]) ** 2 <= radius ** 2) now.painted[y * width + x] = 1;
  $("brush-clear").disabled = false;
  scrubViewer.cursor = { x: pixel[0], y: pixel[1], radius };
  state.paint = textOfPaint(now.painted);
  writeAddress();
  drawScrub();
  askAll();
}
function clearBrush() {
  now.painted = null;
  state.paint = "";
  $("brush-clear").disabled = true;
  writeAddress();
  drawScrub();
  askAll();
}
function setBrush(on) {
  brushOn = on;
  $("brush").setAttribute("aria-pressed", String(on));
  $("scrubbed").classList.toggle("painting", on);
  scrubViewer.paints = on ? paint : null;
  scrubViewer.cursor = on && now.pixels ? { x: now.pixels.width >> 1, y: now.pixels.height >> 1, radius: brushRadius() } : null;
  scrubViewer.draw();
}

// ---- start ----

const views = new Segments($("views"), [["overlay", "Overlay"], ["heat", "Heat"], ["rank", "Rank"], ["contour", "Contour"], ["image", "Image"]], chooseView);
const modes = new Segments($("modes"), [["delete", "Delete"], ["insert", "Insert"]], chooseMode);
const references = new Segments($("references"), [["black", "Black"], ["mean", "Mean"], ["blur", "Blur"]], (name) => chooseReference(name));
const results = new Results(openResult, () => ({ model: state.model, methods: now.methods }));

function openResult(sample, method) {
  showTab("explain");
  if (now.methods.some((one) => one.name === method.split(":")[0])) {
    const T = /^aha:T=(\d)$/.exec(method);
    state.method = T ? "aha" : method;
    state.T = T ? Number(T[1]) : 0;
    showMethod();
  }
  openSample(sample);
}

function showTab(tab) {
  state.tab = tab;
  for (const name of ["explain", "results"]) {
    $(name).hidden = name !== tab;
    $(`tab-${name}`).setAttribute("aria-pressed", String(name === tab));
  }
  writeAddress();
  if (tab === "results") results.show().catch((error) => say(error.message));
}

async function showModel() {
  options($("model"), now.models.map((one) => [one.name, one.name]), model().name);
  state.model = model().name;
  now.methods = (await api.methods(state.model)).methods;
  $("explain").style.setProperty("--size", model().size);
  showMethod();
  showChips();
  showChoices();
  showSteps();
}

let samplesShown = 0;
async function showSamples() {
  const { samples, size } = await api.samples(samplesShown, samplesShown === 0 ? 12 : 24);
  samplesShown += samples.length;
  $("samples").append(...samples.map((one) => element("button", { "data-sample": one.sample, "aria-pressed": String(String(one.sample) === state.sample),
    "aria-label": `Sample ${one.sample}${one.label ? `, ${one.label}` : ""}`, onclick: () => openSample(one.sample) },
    element("img", { src: one.url, width: 44, height: 44, alt: "" }))));
  $("more-samples").classList.toggle("unseen", samplesShown >= size);
  return samples;
}

function listen() {
  $("file").addEventListener("change", (event) => { openFile(event.target.files[0]); event.target.value = ""; });
  for (const kind of ["dragover", "dragenter"])
    document.addEventListener(kind, (event) => { event.preventDefault(); $("drop").classList.add("over"); });
  document.addEventListener("dragleave", (event) => !event.relatedTarget && $("drop").classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    $("drop").classList.remove("over");
    openFile(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find((one) => one.type.startsWith("image/"));
    if (file) openFile(file);
  });
  $("more-samples").addEventListener("click", () => showSamples().catch((error) => say(error.message)));
  $("model").addEventListener("change", (event) => chooseModel(event.target.value));
  $("method").addEventListener("change", (event) => chooseMethod(event.target.value));
  $("opacity").addEventListener("input", (event) => { state.opacity = Number(event.target.value); showChoices(); drawMaps(); if (now.map) showFacts(); });
  for (const id of ["share", "share-all"]) $(id).addEventListener("input", (event) => scrubTo(Number(event.target.value)));
  $("T").addEventListener("input", (event) => { state.T = Number(event.target.value); showChoices(); chooseT(); });
  $("zoom-in").addEventListener("click", () => mapViewer.setZoom(mapViewer.zoom * 2));
  $("zoom-out").addEventListener("click", () => mapViewer.setZoom(mapViewer.zoom / 2));
  $("compare-go").addEventListener("click", () => compareAgain());
  $("cancel").addEventListener("click", () => stopper && stopper.abort());
  $("brush").addEventListener("click", () => setBrush(!brushOn));
  $("brush-size").addEventListener("input", () => setBrush(brushOn));
  $("brush-clear").addEventListener("click", clearBrush);
  $("message-close").addEventListener("click", () => say(""));
  $("tab-explain").addEventListener("click", () => showTab("explain"));
  $("tab-results").addEventListener("click", () => showTab("results"));
  $("help-open").addEventListener("click", () => $("help").showModal());
  $("scrubbed").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!brushOn || !now.pixels || (!step && event.key !== " ")) return;
    event.preventDefault();
    const at = scrubViewer.cursor || { x: now.pixels.width >> 1, y: now.pixels.height >> 1 };
    const jump = Math.max(1, Math.round(now.pixels.width / 64));
    const clamp = (value, most) => Math.min(most - 1, Math.max(0, value));
    if (step) moveBrush([clamp(at.x + jump * step[0], now.pixels.width), clamp(at.y + jump * step[1], now.pixels.height)]);
    else paint([at.x, at.y]);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range") return;
    const act = { o: () => chooseView("overlay"), h: () => chooseView("heat"), r: () => chooseView("rank"), c: () => chooseView("contour"),
                  i: () => chooseView("image"), d: () => chooseMode("delete"), n: () => chooseMode("insert"), ",": () => scrubTo(state.share - 1),
                  ".": () => scrubTo(state.share + 1), b: () => setBrush(!brushOn), "+": () => mapViewer.setZoom(mapViewer.zoom * 2),
                  "-": () => mapViewer.setZoom(mapViewer.zoom / 2), "?": () => $("help").showModal() }[event.key];
    if (act && !$("help").open) {
      event.preventDefault();
      act();
    }
  });
  window.addEventListener("hashchange", () => begin());
}

const begin = guarded(async (stale) => {
  readAddress();
  await showModel();
  if (stale()) return;
  showTab(now.hasResults ? state.tab : "explain");
  if (state.sample !== "" || (state.image && !(await api.knowsImage(state.image, state.model)))) {
    if (state.sample === "") {
      state.image = "";
      throw new api.ApiError("The image of this address is not in the server's memory any more: choose it again.", 404);
    }
    const chosen = { class: state.class, contrast: state.contrast, compare: state.compare, paint: state.paint };
    await bring(await api.pickSample(Number(state.sample)));
    Object.assign(state, chosen);
  }
  if (!state.image && now.sampleCount > 0 && !now.hasResults) await bring(await api.pickSample(0));
  if (!stale() && state.image) await showImage(stale);
  if (!stale()) zoomAsSaid();
});

async function start() {
  const legend = $("legend").getContext("2d");
  colors.forEach(([r, g, b], i) => { legend.fillStyle = `rgb(${r} ${g} ${b})`; legend.fillRect(i, 0, 1, 1); });
  $("brush-size").value = 6;
  listen();
  readAddress();
  try {
    const found = await api.models();
    now.models = found.models;
    now.limits = found.limits;
    now.hasResults = found.results;
    now.sampleCount = found.samples;
    $("tab-results").hidden = !found.results;
    if (found.results && !location.hash) history.replaceState(null, "", "#tab=results");
    $("samples").hidden = $("more-samples").hidden = found.samples === 0;
    if (found.samples > 0) showSamples().catch((error) => say(error.message));
    await begin();
  } catch (error) {
    say(error.message);
  }
}

start();
