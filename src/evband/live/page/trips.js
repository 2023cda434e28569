// Drives of a car with their energy and files; one opened shows its power with the band.
import { BandChart } from "./power_chart.js";
import { Ring } from "./ring.js";
import { ask } from "./feed.js";
import { clock, day, distance, duration, num, percent, toKm, units } from "./units.js";

const SHOWN = 30;
const HEADS = () => ["Began", "Distance", "Energy, kWh", `Per 100\u00a0${units.distance}`, "Charge, %", "Files"];

function cell(kind, text, label) {
  const found = document.createElement(kind);
  if (text !== undefined) found.textContent = text;
  if (label) found.dataset.label = label;
  return found;
}

export class Trips {
  constructor() {
    this.place = document.getElementById("trips");
    this.dialog = document.getElementById("trip-dialog");
    this.chart = new BandChart(document.getElementById("trip-chart"), { unit: "kW" });
    this.chart.whole = true;
    this.trips = [];
    this.id = null;
  }

  async load(id) {
    const changed = id !== this.id;
    this.id = id;
    if (changed) this.place.replaceChildren();
    try {
      const trips = await ask(`/api/cars/${encodeURIComponent(id)}/trips`);
      if (id !== this.id) return;
      this.trips = trips;
      this.draw();
    } catch (problem) {
      this.place.replaceChildren(cell("p", problem.message));
    }
  }

  draw() {
    const focused = document.activeElement?.dataset?.key;
    if (!this.trips.length) {
      const none = cell("p", "None is kept yet. Drives are kept where the configuration has [store] path.");
      none.className = "quiet";
      this.place.replaceChildren(none);
      return;
    }
    const table = cell("table"), head = cell("thead"), body = cell("tbody"), row = cell("tr");
    for (const name of HEADS()) {
      const one = cell("th", name);
      one.scope = "col";
      row.append(one);
    }
    head.append(row);
    for (const trip of this.trips.slice(0, SHOWN)) body.append(this.line(trip));
    table.append(head, body);
    this.place.replaceChildren(table);
    if (focused) [...table.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused)?.focus({ preventScroll: true });
  }

  line(trip) {
    const row = cell("tr"), when = cell("th");
    when.scope = "row";
    const open = cell("button", `${day(trip.began)}, ${clock(trip.began)}`);
    open.type = "button";
    open.className = "link";
    open.dataset.key = `open-${trip.id}`;
    open.addEventListener("click", () => this.open(trip));
    when.append(open, cell("span", trip.open ? " on the way" : ` ${duration(trip.ended - trip.began)}`));
    const used = Number.isFinite(trip.mean_kwh) ? trip.mean_kwh : trip.measured_kwh;
    const spread = (trip.upper_kwh - trip.lower_kwh) / 2;
    const energy = spread > 0.005 ? `${num(used, 2)} ± ${num(spread, 2)}` : num(used, 2);
    const consumption = trip.distance_km > 0.5 ? num((toKm(100) * used) / trip.distance_km, 1) : "–";
    const charge = Number.isFinite(trip.soc_end) ? `${num(trip.soc_start)} to ${num(trip.soc_end)}` : "–";
    const [, ...labels] = HEADS(), texts = [distance(trip.distance_km, 1), energy, consumption, charge];
    row.append(when, ...texts.map((text, i) => cell("td", text, labels[i])), this.files(trip));
    return row;
  }

  files(trip) {
    const found = cell("td", undefined, "Files");
    for (const kind of ["csv", "parquet"]) {
      const link = cell("a", kind === "csv" ? "CSV" : "Parquet");
      link.href = `/api/cars/${encodeURIComponent(this.id)}/trips/${encodeURIComponent(trip.id)}.${kind}`;
      link.download = "";
      link.dataset.key = `${kind}-${trip.id}`;
      link.setAttribute("aria-label", `${link.textContent} of the drive of ${day(trip.began)}, ${clock(trip.began)}`);
      found.append(link, " ");
    }
    return found;
  }

  async open(trip) {
    const text = document.getElementById("trip-text");
    document.getElementById("trip-title").textContent = `${day(trip.began)}, ${clock(trip.began)}`;
    text.textContent = "Loading";
    this.chart.use(null);
    this.dialog.showModal();
    try {
      const rows = await ask(`/api/cars/${encodeURIComponent(this.id)}/trips/${encodeURIComponent(trip.id)}`);
      const ring = new Ring(rows.time_s.length, ["mean", "lower", "upper", "measured"]);
      rows.time_s.forEach((at, i) => ring.push(at, {
        mean: rows.mean_kw[i], lower: rows.lower_kw[i], upper: rows.upper_kw[i], measured: rows.power_kw?.[i],
      }));
      this.chart.use(ring);
      const inside = coverage(rows);
      text.textContent = `${distance(trip.distance_km, 1)} in ${duration(trip.ended - trip.began)}`
        + (inside === null ? "." : `; ${percent(100 * inside)} of the measured seconds lie in their band.`);
    } catch {
      text.textContent = "Its seconds are not kept any more; its sums are.";
    }
    this.chart.draw();
  }
}

/** Share of measured seconds inside the band; null where too few were measured. */
function coverage(rows) {
  let inside = 0, count = 0;
  rows.time_s.forEach((_, i) => {
    const power = rows.power_kw?.[i];
    if (!Number.isFinite(power) || rows.warmup[i]) return;
    count += 1;
    inside += power >= rows.lower_kw[i] && power <= rows.upper_kw[i];
  });
  return count >= 30 ? inside / count : null;
}
