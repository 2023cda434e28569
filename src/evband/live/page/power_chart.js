// A mean with its band over time, moving: power of the last minutes, energy of a drive, a whole drive at rest.
import { Surface, followPointer, still, theme, ticks } from "./canvas.js";
import { clock, num } from "./units.js";

const GAP_S = 8; // rows further apart than this (or four usual steps) are not joined

export class BandChart {
  /** `rows`: a Ring with at, mean, lower, upper, measured; `small`: without axes of time. */
  constructor(canvas, { unit, digits = 0, small = false, zero = true }) {
    Object.assign(this, { unit, digits, small, zero });
    this.surface = new Surface(canvas, () => this.draw());
    this.canvas = canvas;
    this.rows = null;
    this.seconds = 120;
    this.whole = false;
    this.low = this.high = NaN;
    this.rate = 1;
    this.step = 1;
    this.arrived = 0;
    this.live = false;
    followPointer(this, canvas);
  }

  use(rows) {
    this.rows = rows;
    this.low = this.high = NaN;
    this.rate = this.step = 1;
  }

  /** A row has come: learn the pace, so that the chart moves evenly between two rows. */
  tick(now, newer) {
    const waited = (now - this.arrived) / 1000;
    if (this.arrived && waited > 0.02 && waited < 60 && newer > 0) {
      this.rate += 0.2 * (Math.min(newer / waited, 100) - this.rate);
      this.step += 0.2 * (newer - this.step);
    }
    this.arrived = now;
  }

  edge(now) {
    const newest = this.rows.newest;
    if (!this.live || still.matches || this.whole) return newest;
    return newest + Math.min((this.rate * (now - this.arrived)) / 1000, 1.5 * this.step);
  }

  draw(now = performance.now()) {
    const s = this.surface, rows = this.rows;
    s.clear();
    if (!rows || s.width < 40) return;
    const right = s.width - 8, left = this.small ? 2 : 34, top = this.small ? 10 : 24, bottom = s.height - (this.small ? 4 : 22);
    if (rows.length < 2) {
      s.text("Waiting for the first seconds", (left + right) / 2, (top + bottom) / 2, { align: "center" });
      return;
    }
    const end = this.edge(now), begin = this.whole ? rows.value("at", 0) : end - this.seconds;
    const first = Math.max(rows.from(begin) - 1, 0);
    this.scale(first, this.whole);
    const x = (at) => left + ((at - begin) / (end - begin)) * (right - left);
    const y = (value) => bottom - ((value - this.low) / (this.high - this.low)) * (bottom - top);
    this.grid(s, { left, right, top, bottom, begin, end, x, y });
    const pen = s.pen;
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, right - left + 8, s.height);
    pen.clip();
    this.series(pen, first, x, y);
    pen.restore();
    if (this.cursor !== null && this.cursor >= left) this.pointer(s, { left, right, top, bottom, begin, end, x, y });
    if (this.canvas.dataset.at !== String(rows.newest)) this.canvas.dataset.at = rows.newest;
  }

  /** Limits that hold everything shown; they ease instead of jumping. */
  scale(first, atOnce) {
    const rows = this.rows;
    let low = this.zero ? 0 : Infinity, high = this.zero ? 5 : -Infinity;
    for (let i = first; i < rows.length; i += 1) {
      for (const name of ["lower", "upper", "measured"]) {
        const value = rows.value(name, i);
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    if (!(high > low)) [low, high] = [Number.isFinite(low) ? low - 0.05 : 0, Number.isFinite(low) ? low + 0.05 : 1];
    const room = 0.06 * (high - low);
    [low, high] = [low < 0 || !this.zero ? low - room : low, high + room];
    const ease = atOnce || still.matches || Number.isNaN(this.low) ? 1 : 0.12;
    this.low = Number.isNaN(this.low) ? low : this.low + ease * (low - this.low);
    this.high = Number.isNaN(this.high) ? high : this.high + ease * (high - this.high);
  }

  grid(s, { left, right, top, bottom, begin, end, x, y }) {
    const colours = theme();
    if (this.small) {
      s.rule(left, bottom, right, bottom, colours.line);
      return;
    }
    for (const value of ticks(this.low, this.high, (bottom - top) / 48)) {
      s.rule(left, y(value), right, y(value), value === 0 ? colours.quiet : colours.line);
      s.text(num(value, this.digits), left - 8, y(value), { align: "right", base: "middle" });
    }
    s.text(this.unit, left - 8, 1, { align: "right", base: "top", size: 11 });
    const span = end - begin, step = [10, 30, 60, 120, 300, 600, 1800, 3600, 7200].find((v) => span / v <= Math.max((right - left) / 110, 2)) || 14400;
    for (let at = Math.ceil(begin / step) * step; at <= end; at += step) {
      if (x(at) < left + 16 || x(at) > right - 16) continue;
      const words = step < 60 ? new Date(1000 * at).toTimeString().slice(0, 8) : clock(at);
      s.rule(x(at), bottom, x(at), bottom + 4, colours.line);
      s.text(words, x(at), s.height - 3, { align: "center", size: 11 });
    }
  }

  series(pen, first, x, y) {
    const rows = this.rows, colours = theme(), gap = this.small ? Infinity : Math.max(GAP_S, 4 * this.step);
    for (let i = first; i < rows.length;) {
      while (i < rows.length && Number.isNaN(rows.value("mean", i))) i += 1;
      const from = i;
      while (i < rows.length && !Number.isNaN(rows.value("mean", i))
        && (i === from || rows.value("at", i) - rows.value("at", i - 1) <= gap)) i += 1;
      if (i > from) this.stretch(pen, from, i, x, y, colours);
    }
    this.dots(pen, first, x, y, colours);
    const last = rows.length - 1, mean = rows.value("mean", last);
    if (Number.isNaN(mean) || this.whole) return;
    pen.fillStyle = colours.card;
    pen.beginPath();
    pen.arc(x(rows.value("at", last)), y(mean), 5, 0, 2 * Math.PI);
    pen.fill();
    pen.fillStyle = colours.accent;
    pen.beginPath();
    pen.arc(x(rows.value("at", last)), y(mean), 3.5, 0, 2 * Math.PI);
    pen.fill();
  }

  stretch(pen, from, to, x, y, colours) {
    const rows = this.rows, value = (name, i) => rows.value(name, from + i);
    this.surface.shade(to - from, (i) => x(value("at", i)), (i) => y(value("upper", i)), (i) => y(value("lower", i)));
    pen.beginPath();
    for (let i = from; i < to; i += 1) pen.lineTo(x(rows.value("at", i)), y(rows.value("mean", i)));
    pen.strokeStyle = colours.accent;
    pen.lineWidth = 2;
    pen.lineJoin = pen.lineCap = "round";
    pen.stroke();
  }

  dots(pen, first, x, y, colours) {
    const rows = this.rows, many = rows.length - first > 700;
    pen.fillStyle = colours.ink;
    pen.globalAlpha = many ? 0.35 : 0.7;
    const size = many ? 1 : 1.6;
    pen.beginPath();
    for (let i = first; i < rows.length; i += 1) {
      const value = rows.value("measured", i);
      if (Number.isNaN(value)) continue;
      const [px, py] = [x(rows.value("at", i)), y(value)];
      pen.moveTo(px + size, py);
      pen.arc(px, py, size, 0, 2 * Math.PI);
    }
    pen.fill();
    pen.globalAlpha = 1;
  }

  pointer(s, { left, right, top, bottom, begin, end, x }) {
    const rows = this.rows, colours = theme();
    const at = begin + ((this.cursor - left) / (right - left)) * (end - begin);
    let i = Math.min(rows.from(at), rows.length - 1);
    if (i > 0 && at - rows.value("at", i - 1) < rows.value("at", i) - at) i -= 1;
    const [mean, lower, upper, measured] = ["mean", "lower", "upper", "measured"].map((name) => rows.value(name, i));
    if (Number.isNaN(mean)) return;
    const digits = this.digits || 1, where = x(rows.value("at", i));
    s.rule(where, top, where, bottom, colours.quiet, [2, 3]);
    const more = Number.isNaN(measured) ? "" : `, measured ${num(measured, digits)}`;
    s.plate(`${num(mean, digits)} ${this.unit} (${num(lower, digits)} to ${num(upper, digits)})${more}`, where, top + 12, colours.ink, "center");
  }
}
