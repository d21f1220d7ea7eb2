// The server's routes (docs/http_api.md), as functions. A refusal becomes an Error with the server's own words.

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function ask(path, options = {}) {
  for (let attempt = 0; ; ++attempt) {
    let response;
    try {
      response = await fetch(path, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError("The server does not answer. Is aha serve still running?", 0);
    }
    if (response.status === 503 && attempt < 5) {  // busy: it says when to come again
      await pause(1000 * Number(response.headers.get("Retry-After") || 1));
      continue;
    }
    if (response.ok) return response;
    let message = `${response.status} ${response.statusText}`;
    try {
      message = (await response.json()).error || message;
    } catch { /* no JSON: the status says enough */ }
    throw new ApiError(message, response.status);
  }
}

const json = async (path, options) => (await ask(path, options)).json();
const post = (path, body, signal) =>
  json(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
const query = (options) => new URLSearchParams(options).toString();

export const models = () => json("/api/models");
export const methods = (model) => json(`/api/methods?${query({ model })}`);
export const samples = (first, limit) => json(`/api/samples?${query({ first, limit })}`);
export const pickSample = (sample) => post("/api/images", { sample });
export const classify = (options) => post("/api/classify", options);
export const explain = (options) => post("/api/explain", options);
export const score = (options, signal) => post("/api/score", options, signal);
export const curve = (options) => post("/api/curve", options);
export const results = () => json("/api/results");
export const resultsImages = (options) => json(`/api/results/images?${query(options)}`);
export const knowsImage = async (id, model) => {
  try {
    await ask(`/api/images/${id}.png?${query({ model })}`);
    return true;
  } catch {
    return false;
  }
};

export function sendImage(file) {
  return json(`/api/images?${query({ name: file.name || "image" })}`, {
    method: "POST",
    headers: { "Content-Type": file.type.startsWith("image/") ? file.type : "application/octet-stream" },
    body: file,
  });
}

// A job that is followed: told(progress) as it goes on; the result at last. `stop` is an AbortSignal.
export async function job(path, options, told, stop) {
  const begun = await post(path, { ...options, wait: false });
  if (!begun.job) return begun;  // it was there already
  const cancel = () => fetch(`/api/jobs/${begun.job}`, { method: "DELETE" });
  if (stop) stop.addEventListener("abort", cancel, { once: true });
  return new Promise((resolve, reject) => {
    const events = new EventSource(`/api/jobs/${begun.job}/events`);
    events.addEventListener("progress", (event) => told && told(JSON.parse(event.data)));
    events.addEventListener("end", (event) => {
      events.close();
      const end = JSON.parse(event.data);
      if (end.state === "done") resolve(end.result);
      else reject(new ApiError(end.error || end.state, end.state === "canceled" ? 499 : 500));
    });
    events.onerror = () => {
      if (events.readyState === EventSource.CLOSED) reject(new ApiError("The server closed the connection.", 0));
    };
  });
}

// {height, width, values: Float32Array} of a .npy file of version 1, float32, C order: what the server writes.
export async function readMap(url) {
  const bytes = await (await ask(url)).arrayBuffer();
  const length = new DataView(bytes).getUint16(8, true);
  const header = new TextDecoder("latin1").decode(new Uint8Array(bytes, 10, length));
  const shape = /'shape': \((\d+), (\d+)\)/.exec(header);
  if (!shape || !header.includes("'<f4'")) throw new ApiError("The map is not a float32 array (H, W).", 0);
  return { height: +shape[1], width: +shape[2], values: new Float32Array(bytes.slice(10 + length)) };
}

// RGBA bytes of an image of the server.
export async function readPixels(url) {
  const bitmap = await createImageBitmap(await (await ask(url)).blob(), { colorSpaceConversion: "none" });
  const canvas = document.createElement("canvas");
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  return context.getImageData(0, 0, bitmap.width, bitmap.height);
}
