// A canvas that shows an image of few pixels large, with zoom, and says which pixel the pointer is on.

const kContours = [[0.1, 1], [0.25, 0.75], [0.5, 0.5]];  // share of the pixels, opacity of the line

export class Viewer {
  constructor(canvas, { onPixel, onView } = {}) {
    this.canvas = canvas;
    this.onPixel = onPixel;
    this.onView = onView;
    this.zoom = 1;
    this.center = [0.5, 0.5];
    this.image = null;
    this.lines = [];
    this.cursor = null;
    this.small = document.createElement("canvas");
    this.paints = null;  // called with a pixel while the brush is on
    new ResizeObserver(() => this.draw()).observe(canvas);
    this.listen();
  }

  show(image, lines = []) {
    this.image = image;
    this.lines = lines;
    this.small.width = image.width;
    this.small.height = image.height;
    this.small.getContext("2d").putImageData(image, 0, 0);
    this.draw();
  }

  clear() {
    this.image = null;
    this.draw();
  }

  // Left upper corner and side of what is seen, in shares of the image.
  window() {
    const side = 1 / this.zoom;
    const clamp = (x) => Math.min(1 - side, Math.max(0, x - side / 2));
    return [clamp(this.center[0]), clamp(this.center[1]), side];
  }

  draw() {
    const { canvas } = this;
    const side = Math.max(1, Math.round(canvas.clientWidth * devicePixelRatio));
    if (canvas.width !== side || canvas.height !== side) canvas.width = canvas.height = side;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, side, side);
    if (!this.image) return;
    const { width, height } = this.image, [x, y, part] = this.window();
    context.imageSmoothingEnabled = false;
    context.drawImage(this.small, x * width, y * height, part * width, part * height, 0, 0, side, side);
    const sx = side / (part * width), sy = side / (part * height);
    const trace = (lines) => {
      context.beginPath();
      for (const [x0, y0, x1, y1] of lines) {
        context.moveTo((x0 - x * width) * sx, (y0 - y * height) * sy);
        context.lineTo((x1 - x * width) * sx, (y1 - y * height) * sy);
      }
    };
    this.lines.forEach((lines, n) => {
      for (const [color, thickness] of [["rgba(0,0,0,0.75)", 4], ["#ffd23f", 2]]) {
        context.strokeStyle = color;
        context.globalAlpha = kContours[n][1];
        context.lineWidth = thickness * devicePixelRatio;
        trace(lines);
        context.stroke();
      }
    });
    context.globalAlpha = 1;
    if (this.cursor) {
      const { x: cx, y: cy, radius } = this.cursor;
      for (const [color, thickness] of [["#000", 3], ["#fff", 1]]) {
        context.strokeStyle = color;
        context.lineWidth = thickness * devicePixelRatio;
        context.beginPath();
        context.arc((cx + 0.5 - x * width) * sx, (cy + 0.5 - y * height) * sy, radius * sx, 0, 7);
        context.stroke();
      }
    }
  }

  pixelAt(event) {
    if (!this.image) return null;
    const box = this.canvas.getBoundingClientRect(), [x, y, part] = this.window();
    const at = (offset, start, size, count) => Math.floor((start + (part * offset) / size) * count);
    const px = at(event.clientX - box.left, x, box.width, this.image.width);
    const py = at(event.clientY - box.top, y, box.height, this.image.height);
    return px >= 0 && py >= 0 && px < this.image.width && py < this.image.height ? [px, py] : null;
  }

  setZoom(zoom, center = this.center) {
    this.zoom = Math.min(32, Math.max(1, zoom));
    const [x, y, side] = ((this.center = center), this.window());
    this.center = [x + side / 2, y + side / 2];
    this.draw();
    if (this.onView) this.onView(this);
  }

  move(dx, dy) {
    this.setZoom(this.zoom, [this.center[0] + dx / this.zoom, this.center[1] + dy / this.zoom]);
  }

  listen() {
    const { canvas } = this;
    let drag = null;
    canvas.addEventListener("wheel", (event) => {
      if (!this.image || !(event.ctrlKey || document.activeElement === canvas)) return;  // the page still scrolls
      event.preventDefault();
      this.setZoom(this.zoom * (event.deltaY < 0 ? 1.25 : 0.8));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.image) return;
      canvas.setPointerCapture(event.pointerId);
      drag = [event.clientX, event.clientY];
      if (this.paints) this.paints(this.pixelAt(event));
    });
    canvas.addEventListener("pointermove", (event) => {
      const pixel = this.pixelAt(event);
      if (drag && this.paints) this.paints(pixel);
      else if (drag && this.zoom > 1) {
        this.move((drag[0] - event.clientX) / canvas.clientWidth, (drag[1] - event.clientY) / canvas.clientHeight);
        drag = [event.clientX, event.clientY];
      }
      if (this.onPixel) this.onPixel(pixel);
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { drag = null; });
    canvas.addEventListener("pointerleave", () => this.onPixel && this.onPixel(null));
    canvas.addEventListener("dblclick", () => !this.paints && this.setZoom(this.zoom > 1 ? 1 : 4));
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
      if (!step || this.paints || this.zoom === 1) return;
      event.preventDefault();
      this.move(...step);
    });
  }
}

export { kContours };
