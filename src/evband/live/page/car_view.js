// The car that is looked at: numbers, charts, and whether what is shown is still true.
import { BandChart } from "./power_chart.js";
import { FanChart } from "./fan_chart.js";
import { Ring } from "./ring.js";
import { ask } from "./feed.js";
import { ago, chance, distance, energyBand, kw, kwh, num, per100, percent, speed, temperature } from "./units.js";
import { STATES, arrival, likely, stateTone, tone } from "./words.js";
import { write } from "./cars_list.js";

const at = (id) => document.getElementById(id);
const KEPT = 2400; // rows: half an hour and more at one per second
const ENERGY_S = 5;
const PATIENCE_S = 6, STEPS = 3, SURELY_S = 30; // a moving car whose states stop coming is not shown as now

export class CarView {
  constructor() {
    this.power = new BandChart(at("power-chart"), { unit: "kW" });
    this.energy = new BandChart(at("energy-chart"), { unit: "kWh", digits: 2, small: true, zero: false });
    this.energy.whole = true;
    this.fan = new FanChart(at("fan-chart"));
    this.rings = new Map();
    this.car = this.details = null;
    this.seen = new Map(); // id -> when its last state came, and how often they come
  }

  /** Rows of a car, kept also while another one is looked at. */
  ring(id) {
    if (!this.rings.has(id)) {
      this.rings.set(id, {
        power: new Ring(KEPT, ["mean", "lower", "upper", "measured"]), energy: new Ring(720, ["mean", "lower", "upper", "measured"]),
      });
      if (this.rings.size > 20) this.rings.delete(this.rings.keys().next().value);
    }
    return this.rings.get(id);
  }

  /** A state has come. */
  take(car, now) {
    const before = this.seen.get(car.id), waited = before ? (now - before.at) / 1000 : 1;
    this.seen.set(car.id, { at: now, step: before ? before.step + 0.2 * (Math.min(waited, 20) - before.step) : 1 });
    if (car.id !== this.car?.id) return;
    const rings = this.ring(car.id), newest = rings.power.newest;
    const row = { mean: car.mean_kw, lower: car.lower_kw, upper: car.upper_kw, measured: car.power_kw };
    if (rings.power.push(car.at, row)) this.power.tick(now, rings.power.newest - newest);
    const energy = car.energy_kwh;
    if (Number.isFinite(energy?.mean)) {
      const last = rings.energy.length ? rings.energy.value("mean", rings.energy.length - 1) : 0;
      if (energy.mean < last - 0.5) rings.energy.clear(); // another drive
      if (!(car.at - rings.energy.newest < ENERGY_S)) rings.energy.push(car.at, energy);
    }
    this.car = car;
  }

  select(car) {
    this.car = car;
    this.details = null;
    const rings = this.ring(car.id);
    this.power.use(rings.power);
    this.energy.use(rings.energy);
    this.fan.show(null);
    this.backfill(car.id);
  }

  /** The minutes before this page was opened, where they are kept. */
  async backfill(id) {
    const ring = this.ring(id).power;
    try {
      const [trip] = await ask(`/api/cars/${encodeURIComponent(id)}/trips`);
      if (!trip?.open) return;
      const since = Math.max(trip.began, trip.ended - 1800);
      const rows = await ask(`/api/cars/${encodeURIComponent(id)}/trips/${encodeURIComponent(trip.id)}?since=${since}`);
      const live = Array.from({ length: ring.length }, (_, i) =>
        ["at", "mean", "lower", "upper", "measured"].map((name) => ring.value(name, i)));
      ring.clear();
      rows.time_s.forEach((when, i) => ring.push(when, {
        mean: rows.mean_kw[i], lower: rows.lower_kw[i], upper: rows.upper_kw[i], measured: rows.power_kw?.[i],
      }));
      for (const [when, mean, lower, upper, measured] of live) ring.push(when, { mean, lower, upper, measured });
    } catch { /* nothing is kept of it: the chart begins now */ }
  }

  async renew() {
    if (!this.car) return;
    const id = this.car.id;
    try {
      const details = await ask(`/api/cars/${encodeURIComponent(id)}`);
      if (id !== this.car?.id) return;
      this.details = details;
      this.fan.show(details);
    } catch { /* the connection's own words say it */ }
  }

  /** Why what is shown may not be true any more; null where it is. */
  stale(now, connected) {
    const seen = this.seen.get(this.car.id);
    if (!seen) return "No state has come yet.";
    const age = (now - seen.at) / 1000;
    const patience = this.moving() ? Math.min(Math.max(PATIENCE_S, STEPS * seen.step), SURELY_S) : SURELY_S;
    if (connected && age <= patience) return null;
    return `These values are ${ago(age).replace("ago", "old").replace("now", "a moment old")}: ${connected ? "nothing new comes" : "the connection is lost"}.`;
  }

  moving() {
    return this.car.state === "driving" || this.car.state === "paused";
  }

  draw(now, connected) {
    const car = this.car, stale = this.stale(now, connected);
    write(at("name"), car.name || car.id);
    write(at("state"), stale ? "Last known" : STATES[car.state] || car.state);
    at("state").dataset.tone = stale ? "warn" : stateTone(car);
    const seen = this.seen.get(car.id);
    write(at("age"), seen ? `updated ${ago((now - seen.at) / 1000)}` : "");
    const quiet = car.state === "silent" || car.state === "offline";
    at("car").classList.toggle("stale", Boolean(stale) || quiet);
    this.power.live = !stale && car.state === "driving";
    this.notice(car, stale);
    this.verdict(car);
    this.numbers(car, Boolean(stale));
  }

  notice(car, stale) {
    const parts = [];
    if (stale) parts.push(stale);
    if (car.degraded) parts.push(`Degraded: ${car.degraded}.`);
    if (car.state === "offline") parts.push("Nothing has come from this car for a quarter of an hour; what is shown was true then.");
    if (car.state === "silent") parts.push("Power is hidden until speed comes again.");
    if (car.outside) parts.push("This is unlike anything the model was trained on; take bands with care.");
    if (car.warmup && this.moving()) parts.push("Warming up: the first seconds of a drive have wider bands.");
    at("notice").hidden = !parts.length;
    at("notice").dataset.tone = stale || car.degraded ? "warn" : "quiet";
    write(at("notice"), parts.join(" "));
  }

  verdict(car) {
    const routed = Number.isFinite(car.arrival_probability), range = car.range_km || {}, details = this.details || {};
    const reserve = Number.isFinite(details.reserve_soc) ? percent(details.reserve_soc) : "the reserve";
    write(at("verdict-title"), routed ? "Chance of arrival" : "Range");
    at("hero-line").dataset.tone = routed ? tone(car.arrival_probability) : "none";
    write(at("hero"), routed ? chance(car.arrival_probability) : Number.isFinite(range.p50) ? distance(range.p50) : "–");
    write(at("word"), routed ? likely(car.arrival_probability) : "");
    const free = Number.isFinite(range.p50)
      ? `Until ${reserve} of charge is left, as likely more as less.`
      : (details.notes || [])[0] || "Known when the car has sent its charge, and the battery’s capacity is set.";
    write(at("sentence"), routed ? arrival(car, details) : free);
    write(at("route"), routed ? "Change the route" : "Set a route");
    const soc = details.soc_at_arrival;
    facts(at("verdict-facts"), routed ? [
      ["Range", `${distance(range.p50)}`, `${distance(range.p05)} to ${distance(range.p95)}`],
      ["Way left", distance(details.route_km_left), ""],
      ["Charge there", soc ? percent(soc.p50) : "–", soc ? `${percent(soc.p05)} to ${percent(soc.p95)}` : ""],
      ["Using the reserve", chance(car.arrival_probability_empty), ""],
    ] : Number.isFinite(range.p50) ? [
      ["Almost surely", distance(range.p05), "19 times in 20"], ["With luck", distance(range.p95), "1 time in 20"],
      ["Charge", percent(car.soc_pct), ""], ["Battery", Number.isFinite(details.capacity_kwh) ? kwh(details.capacity_kwh) : "–", ""],
    ] : []);
    this.interval(range, routed ? details.route_km_left : null);
  }

  /** The range as a bar: from the 5 % to the 95 % level, the median a dot, the way left a mark. */
  interval(range, goal) {
    const box = at("range-interval"), [, bar, dot, mark] = box.children;
    box.hidden = !Number.isFinite(range.p50);
    if (box.hidden) return;
    const end = 1.12 * Math.max(range.p95, goal || 0), share = (km) => `${((100 * km) / end).toFixed(2)}%`;
    bar.style.left = share(range.p05);
    bar.style.width = share(range.p95 - range.p05);
    dot.style.left = share(range.p50);
    mark.hidden = !Number.isFinite(goal);
    if (!mark.hidden) mark.style.left = share(goal);
  }

  numbers(car, stale) {
    const level = Number.isFinite(this.details?.level) ? percent(100 * this.details.level) : "90\u00a0%";
    const known = Number.isFinite(car.mean_kw) && !stale;
    write(at("power"), known ? kw(car.mean_kw) : "–");
    write(at("power-band"), known ? `${num(car.lower_kw, 1)} to ${kw(car.upper_kw)}` : "not known now");
    write(at("level"), `${level} band`);
    const energy = car.energy_kwh || {};
    write(at("energy"), Number.isFinite(energy.mean) ? kwh(energy.mean) : "–");
    const width = energy.upper - energy.lower;
    write(at("energy-band"), !Number.isFinite(energy.mean) ? "No drive yet"
      : width < 1e-4 ? "measured, so there is no doubt about it" : `${energyBand(energy.lower, energy.upper)}, ${level} band`);
    facts(at("tiles"), [
      ["Consumption", per100(car.kwh_100km), ""], ["Driven", distance(car.distance_km, 1), ""],
      ["Speed", known ? speed(car.speed_kmh) : "–", ""], ["Charge", percent(car.soc_pct), ""],
      ["Outside", temperature(this.details?.ambient_temp_c), ""],
      ["Model’s doubt", known ? `± ${kw(car.epistemic_kw)}` : "–", ""],
    ]);
    const drops = Object.entries(this.details?.drops || {}).map(([reason, count]) => `${count} ${reason.replaceAll("_", " ")}`);
    write(at("source"), this.details?.source ? `Source: ${this.details.source}. Readings dropped: ${drops.join(", ") || "none"}.` : "");
    const mixed = this.details?.fan && !Number.isFinite(this.details.route_km_left);
    write(at("fan-note"), mixed ? "without a route: town, country and motorway" : "");
  }

  /** What a chart shows, for those who cannot see it. */
  describe() {
    const car = this.car, range = car.range_km || {};
    at("power-chart").setAttribute("aria-label", `Power over time: now ${kw(car.mean_kw)}, band ${num(car.lower_kw, 1)} to ${kw(car.upper_kw)}`);
    at("energy-chart").setAttribute("aria-label", `Energy used in this drive: ${kwh(car.energy_kwh?.mean)}`);
    at("fan-chart").setAttribute("aria-label", `Charge over the way ahead: the reserve is reached after ${distance(range.p50)}, between ${distance(range.p05)} and ${distance(range.p95)}`);
  }
}

/** Name, value and a quieter remark each; rows are made once and written where they changed. */
function facts(list, rows) {
  while (list.children.length > rows.length) list.lastElementChild.remove();
  rows.forEach(([name, value, more], i) => {
    if (!list.children[i]) {
      const row = document.createElement("div");
      row.append(document.createElement("dt"), document.createElement("dd"), document.createElement("dd"));
      row.lastChild.className = "quiet";
      list.append(row);
    }
    const [term, what, remark] = list.children[i].children;
    write(term, name);
    write(what, value);
    write(remark, more);
  });
}
