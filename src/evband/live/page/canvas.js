// What all charts share: a canvas as sharp as the screen, the theme's colours, round ticks.
const NAMES = ["ink", "quiet", "line", "accent", "warn", "bad", "card"];
let colours = null;

/** The theme's colours as a canvas needs them; read again after `forget`. */
export function theme() {
  if (colours === null) {
    const style = getComputedStyle(document.documentElement);
    colours = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    colours.font = getComputedStyle(document.body).fontFamily;
  }
  return colours;
}

export function forget() { colours = null; }

/** Let a chart know where the pointer is over it: its `cursor`, or null. */
export function followPointer(chart, canvas) {
  const move = (x) => { chart.cursor = x; chart.draw(); };
  chart.cursor = null;
  canvas.addEventListener("pointermove", (event) => move(event.offsetX));
  canvas.addEventListener("pointerleave", () => move(null));
}

export class Surface {
  constructor(canvas, onSize) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.width = this.height = 0;
    new ResizeObserver(() => { this.fit(); onSize(); }).observe(canvas);
    this.fit();
  }

  fit() {
    const ratio = Math.min(devicePixelRatio || 1, 3);
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    const [w, h] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
    }
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  clear() {
    this.pen.clearRect(0, 0, this.width, this.height);
  }

  text(words, x, y, { colour, align = "left", base = "alphabetic", weight = 400, size = 12 } = {}) {
    const pen = this.pen;
    pen.font = `${weight} ${size}px ${theme().font}`;
    pen.textAlign = align;
    pen.textBaseline = base;
    pen.fillStyle = colour || theme().quiet;
    pen.fillText(words, x, y);
  }

  measure(words, weight = 400, size = 12) {
    this.pen.font = `${weight} ${size}px ${theme().font}`;
    return this.pen.measureText(words).width;
  }

  /** The surface between two lines of `count` points, given by functions of their number, in the accent's shade. */
  shade(count, x, upper, lower) {
    const pen = this.pen;
    pen.beginPath();
    for (let i = 0; i < count; i += 1) pen.lineTo(x(i), upper(i));
    for (let i = count - 1; i >= 0; i -= 1) pen.lineTo(x(i), lower(i));
    pen.closePath();
    pen.fillStyle = theme().accent;
    pen.globalAlpha = 0.2;
    pen.fill();
    pen.globalAlpha = 1;
  }

  /** A straight line on whole pixels, so that grids stay quiet. */
  rule(x0, y0, x1, y1, colour, dash = []) {
    const pen = this.pen;
    pen.setLineDash(dash);
    pen.strokeStyle = colour;
    pen.lineWidth = 1;
    pen.beginPath();
    const [dx, dy] = x0 === x1 ? [0.5, 0] : [0, 0.5];
    pen.moveTo(Math.round(x0) + dx, Math.round(y0) + dy);
    pen.lineTo(Math.round(x1) + dx, Math.round(y1) + dy);
    pen.stroke();
    pen.setLineDash([]);
  }

  /** Words on a small plate, kept inside the canvas. */
  plate(words, x, y, colour, align = "left", weight = 600) {
    const pen = this.pen, width = this.measure(words, weight) + 14;
    let left = align === "right" ? x - width : align === "center" ? x - width / 2 : x;
    left = Math.min(Math.max(left, 1), this.width - width - 1);
    pen.fillStyle = theme().card;
    pen.globalAlpha = 0.9;
    pen.beginPath();
    pen.roundRect(left, y - 11, width, 22, 6);
    pen.fill();
    pen.globalAlpha = 1;
    this.text(words, left + 7, y + 0.5, { colour, base: "middle", weight });
  }
}

/** About `count` round numbers from low to high. */
export function ticks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + 1e-9 * step; value += step) found.push(value);
  return found;
}

export const still = matchMedia("(prefers-reduced-motion: reduce)");
