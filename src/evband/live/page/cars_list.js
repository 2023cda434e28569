// All cars, those that need somebody first.
import { need, stateTone } from "./words.js";
import { distance, percent } from "./units.js";

const MOST = 150; // rows drawn at once; the rest is found by name
const SEARCH_FROM = 9;
const EVERY_MS = 2000; // the order does not change under a finger more often than this

export class CarsList {
  constructor(cars) {
    this.cars = cars;
    this.nav = document.getElementById("nav");
    this.list = document.getElementById("cars");
    this.find = document.getElementById("find");
    this.more = document.getElementById("more");
    this.rows = new Map();
    this.sorted = -Infinity;
    this.order = [];
    this.find.addEventListener("input", () => this.draw(true));
  }

  draw(now = false) {
    const count = this.cars.size;
    this.nav.hidden = count < 2;
    document.getElementById("frame").classList.toggle("many", count > 1);
    if (count < 2) return;
    document.getElementById("count").textContent = `${count}, by need`;
    this.find.hidden = count < SEARCH_FROM;
    if (now || performance.now() - this.sorted > EVERY_MS) this.sort();
    for (const id of this.order) this.fill(this.rows.get(id), this.cars.get(id));
  }

  sort() {
    this.sorted = performance.now();
    const wanted = this.find.value.trim().toLowerCase();
    const found = [...this.cars.values()]
      .filter((car) => !wanted || `${car.name} ${car.id}`.toLowerCase().includes(wanted))
      .map((car) => [need(car), car])
      .sort(([a, x], [b, y]) => a[0] - b[0] || a[1] - b[1] || x.id.localeCompare(y.id));
    this.more.hidden = found.length <= MOST;
    this.more.textContent = `${found.length - MOST} more; find them by name.`;
    const order = found.slice(0, MOST).map(([, car]) => car.id);
    if (order.join("\n") === this.order.join("\n")) return;
    this.order = order;
    for (const [id, row] of this.rows) {
      if (!order.includes(id)) {
        row.line.remove();
        this.rows.delete(id);
      }
    }
    order.forEach((id, i) => {
      if (!this.rows.has(id)) this.rows.set(id, this.make(id));
      const { line } = this.rows.get(id);
      if (this.list.children[i] !== line) this.keep(line, i);
    });
  }

  /** Move a row without taking the focus from it. */
  keep(line, i) {
    const focused = line.contains(document.activeElement) ? document.activeElement : null;
    this.list.insertBefore(line, this.list.children[i] || null);
    if (focused) focused.focus({ preventScroll: true });
  }

  make(id) {
    const line = document.createElement("li"), link = document.createElement("a");
    link.href = `#car=${encodeURIComponent(id)}`;
    const parts = ["name", "range", "reason", "soc"].map((name) => {
      const part = document.createElement("span");
      part.className = `car-${name}`;
      link.append(part);
      return [name, part];
    });
    line.append(link);
    return { line, link, ...Object.fromEntries(parts) };
  }

  fill(row, car) {
    if (!row || !car) return;
    const [rank, , reason] = need(car);
    write(row.name, car.name || car.id);
    write(row.range, Number.isFinite(car.range_km?.p50) ? distance(car.range_km.p50) : "–");
    write(row.reason, reason);
    write(row.soc, Number.isFinite(car.soc_pct) ? percent(car.soc_pct) : "");
    row.link.dataset.tone = rank <= 1 ? "bad" : rank <= 4 ? "warn" : stateTone(car);
  }

  mark(id) {
    for (const [one, row] of this.rows) {
      if (one === id) row.link.setAttribute("aria-current", "page"); else row.link.removeAttribute("aria-current");
    }
  }
}

/** Text that is written only where it changed. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
