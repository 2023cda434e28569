// The fan: charge over the way ahead at 5, 50 and 95 %, with the reserve, the route's end and where each line meets the reserve.
import { Surface, followPointer, theme, ticks } from "./canvas.js";
import { distance, far, percent, units } from "./units.js";

function reach(fan, name, level) {
  const values = fan[name];
  for (let i = 1; i < values.length; i += 1) {
    if (values[i] <= level) {
      const share = (values[i - 1] - level) / Math.max(values[i - 1] - values[i], 1e-9);
      return fan.km[i - 1] + share * (fan.km[i] - fan.km[i - 1]);
    }
  }
  return null;
}

export class FanChart {
  constructor(canvas) {
    this.surface = new Surface(canvas, () => this.draw());
    this.details = null;
    followPointer(this, canvas);
  }

  show(details) {
    this.details = details;
    this.draw();
  }

  draw() {
    const s = this.surface, details = this.details;
    s.clear();
    if (s.width < 40) return;
    if (!details?.fan) {
      s.text("Shown when charge and battery are known", s.width / 2, s.height / 2, { align: "center" });
      return;
    }
    const fan = details.fan, left = 38, right = s.width - 14, top = 14, bottom = s.height - 24;
    const end = fan.km[fan.km.length - 1] || 1;
    const high = Math.min(100, Math.max(fan.p95[0] * 1.08, fan.p95[0] + 3, details.reserve_soc + 10));
    const x = (km) => left + (km / end) * (right - left);
    const y = (soc) => bottom - (Math.min(Math.max(soc, 0), high) / high) * (bottom - top);
    const place = { fan, left, right, top, bottom, end, high, x, y };
    this.grid(place);
    this.lines(place);
    this.reserve(place);
    if (Number.isFinite(details.route_km_left)) this.goal(place);
    if (this.cursor !== null && this.cursor >= left && this.cursor <= right) this.pointer(place);
  }

  grid({ left, right, top, bottom, end, high, x, y }) {
    const s = this.surface, colours = theme();
    for (const soc of ticks(0, high, (bottom - top) / 44)) {
      s.rule(left, y(soc), right, y(soc), soc === 0 ? colours.quiet : colours.line);
      s.text(`${soc} %`, left - 8, y(soc), { align: "right", base: "middle" });
    }
    const wide = far(end);
    for (const km of ticks(0, wide, (right - left) / 90)) {
      const at = x((km / wide) * end);
      if (at < left + 4 || at > right - 10) continue;
      s.text(`${km} ${units.distance}`, at, s.height - 4, { align: "center", size: 11 });
    }
    s.text("here", left, s.height - 4, { size: 11 });
  }

  /** The band is clipped at an empty battery instead of running below it. */
  lines({ fan, x, y, left, right, top, bottom }) {
    const pen = this.surface.pen, colours = theme(), count = fan.km.length;
    pen.save();
    pen.beginPath();
    pen.rect(left, top - 8, right - left, bottom - top + 9);
    pen.clip();
    this.surface.shade(count, (i) => x(fan.km[i]), (i) => y(fan.p95[i]), (i) => y(fan.p05[i]));
    pen.beginPath();
    for (let i = 0; i < count && (i === 0 || fan.p50[i - 1] > 0); i += 1) pen.lineTo(x(fan.km[i]), y(fan.p50[i]));
    pen.strokeStyle = colours.accent;
    pen.lineWidth = 2;
    pen.stroke();
    pen.restore();
  }

  /** The reserve line, and where the fan meets it. */
  reserve({ fan, left, right, x, y }) {
    const s = this.surface, colours = theme(), level = this.details.reserve_soc;
    s.rule(left, y(level), right, y(level), colours.bad, [5, 4]);
    s.text(`reserve ${percent(level)}`, left + 8, y(level) - 8, { colour: colours.bad, weight: 600, size: 11 });
    const [early, middle, late] = ["p05", "p50", "p95"].map((name) => reach(fan, name, level));
    if (middle === null) return;
    const pen = s.pen;
    pen.strokeStyle = pen.fillStyle = colours.accent;
    pen.lineWidth = 4;
    pen.lineCap = "round";
    pen.beginPath();
    pen.moveTo(x(early ?? 0), y(level));
    pen.lineTo(x(late ?? fan.km[fan.km.length - 1]), y(level));
    pen.stroke();
    pen.beginPath();
    pen.arc(x(middle), y(level), 5, 0, 2 * Math.PI);
    pen.fill();
    s.plate(distance(middle), x(middle) + 2, y(level) - 18, colours.ink);
  }

  goal({ x, y, top, bottom }) {
    const s = this.surface, colours = theme(), left = this.details.route_km_left, soc = this.details.soc_at_arrival;
    const at = x(left);
    s.rule(at, top, at, bottom, colours.ink);
    s.plate(`destination, ${distance(left)}`, at - 6, top + 8, colours.ink, "right");
    if (!soc) return;
    const pen = s.pen;
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 3;
    pen.lineCap = "butt";
    pen.beginPath();
    pen.moveTo(at + 0.5, y(soc.p95));
    pen.lineTo(at + 0.5, y(soc.p05));
    pen.stroke();
    pen.fillStyle = colours.ink;
    pen.beginPath();
    pen.arc(at + 0.5, y(soc.p50), 4.5, 0, 2 * Math.PI);
    pen.fill();
    s.plate(`${percent(soc.p50)} left`, at - 8, Math.max(y(soc.p50) - 18, top + 34), colours.ink, "right");
  }

  pointer({ fan, left, right, top, bottom, end, x }) {
    const s = this.surface, km = ((this.cursor - left) / (right - left)) * end;
    let i = 1;
    while (i < fan.km.length - 1 && fan.km[i] < km) i += 1;
    const share = (km - fan.km[i - 1]) / Math.max(fan.km[i] - fan.km[i - 1], 1e-9);
    const at = (name) => Math.max(fan[name][i - 1] + share * (fan[name][i] - fan[name][i - 1]), 0);
    s.rule(x(km), top, x(km), bottom, theme().quiet, [2, 3]);
    s.plate(`${distance(km)}: ${percent(at("p50"))} (${percent(at("p05"))} to ${percent(at("p95"))})`, x(km), bottom - 14, theme().ink, "center");
  }
}
