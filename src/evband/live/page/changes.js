// What changed of late and why: the API's reasons and changes of range, and what this page saw happen.
import { chance, clock, temperature } from "./units.js";
import { STATES, rangeChange, reasons } from "./words.js";
import { write } from "./cars_list.js";

const MOST = 12;
const CHANCE = 0.04;

export class Changes {
  constructor() {
    this.cars = new Map();
    this.why = document.getElementById("why");
    this.list = document.getElementById("events");
  }

  of(id) {
    if (!this.cars.has(id)) this.cars.set(id, { events: [], state: null, degraded: null, chance: null });
    return this.cars.get(id);
  }

  /** Look at a new state of a car and keep what is worth a line. */
  see(car) {
    const known = this.of(car.id), at = car.at ?? Date.now() / 1000;
    if (known.state !== null && car.state !== known.state) this.add(known, at, `${STATES[car.state] || car.state}, before: ${(STATES[known.state] || known.state).toLowerCase()}.`);
    if (known.state !== null && car.degraded !== known.degraded && !counts(car.degraded, known.degraded)) {
      this.add(known, at, car.degraded ? `Bands are worse: ${car.degraded}.` : "The feed is whole again.");
    }
    this.seeChance(known, car, at);
    known.state = car.state;
    known.degraded = car.degraded;
  }

  seeChance(known, car, at) {
    const p = car.arrival_probability;
    if (!Number.isFinite(p)) {
      known.chance = null;
    } else if (known.chance === null) {
      known.chance = p;
    } else if (Math.abs(p - known.chance) >= CHANCE) {
      this.add(known, at, `Chance of arrival ${p > known.chance ? "up" : "down"} from ${chance(known.chance)} to ${chance(p)}.`);
      known.chance = p;
    }
  }

  add(known, at, text) {
    known.events.unshift({ at, text });
    known.events.length = Math.min(known.events.length, MOST);
  }

  forget(id) {
    this.cars.delete(id);
  }

  draw(id, details) {
    fill(this.why, reasons(details?.why, details, temperature), (line, reason) => {
      if (line.children.length < 2) line.append(document.createElement("b"), document.createElement("span"));
      line.children[0].dataset.tone = reason.tone || "none";
      write(line.children[0], reason.key || "");
      write(line.children[1], reason.text);
    });
    const ranges = (details?.changes || []).map((change) => ({ at: change.at[1], text: rangeChange(change) }));
    const events = [...this.of(id).events, ...ranges].sort((a, b) => b.at - a.at).slice(0, 6);
    fill(this.list, events.length ? events : [{ at: null, text: "Nothing since this page was opened." }], (line, event) => {
      if (line.children.length < 2) line.append(document.createElement("time"), document.createElement("span"));
      write(line.children[0], event.at === null ? "" : clock(event.at));
      write(line.children[1], event.text);
    });
  }
}

/** Whether two reasons differ only in their numbers, as a silence that grows. */
function counts(a, b) {
  return Boolean(a) && Boolean(b) && a.replace(/\d+/g, "") === b.replace(/\d+/g, "");
}

function fill(list, items, write) {
  while (list.children.length > items.length) list.lastElementChild.remove();
  items.forEach((item, i) => {
    if (!list.children[i]) list.append(document.createElement("li"));
    write(list.children[i], item);
  });
}
