// What the numbers of a car mean, in words.
import { chance, clock, distance, duration, kw, percent, temperature } from "./units.js";

export const STATES = {
  waiting: "Waiting for data", driving: "Driving", paused: "Standing", parked: "Parked", charging: "Charging",
  silent: "No data", offline: "Offline",
};
const HOW = { waiting: "quiet", driving: "good", paused: "good", parked: "quiet", charging: "good", silent: "warn", offline: "quiet" };
export const LOW_KM = 30;

/** How a chance is to be taken: good from 95 % on, bad under 80 %. */
export function tone(p) {
  if (p === null || p === undefined) return "none";
  return p >= 0.95 ? "good" : p >= 0.8 ? "fair" : "bad";
}

/** A chance in words, as climate reports use them. */
export function likely(p) {
  const words = [[0.99, "almost certain"], [0.95, "very likely"], [0.8, "likely"], [0.66, "rather likely"], [0.33, "as likely as not"], [0.1, "unlikely"]];
  return words.find(([from]) => p >= from)?.[1] ?? "very unlikely";
}

export const stateTone = (car) => (car.degraded && car.state !== "offline" ? "warn" : HOW[car.state] || "quiet");

/** The margin of the median: how much range may be lost before the reserve is touched at the route's end. */
export function margin(car, details) {
  const median = car.range_km?.p50, left = details?.route_km_left;
  return Number.isFinite(median) && Number.isFinite(left) ? median - left : null;
}

export function arrival(car, details) {
  const spare = margin(car, details);
  if (spare === null) return "";
  if (details.route_km_left <= 0) return "You are at the end of the route.";
  if (spare >= 0) return `You would have to lose ${distance(spare)} of range not to make it.`;
  return `You are ${distance(-spare)} short: charge on the way, or drive slower.`;
}

/** Who needs somebody first: [rank, value within the rank, reason]; lower is more urgent. */
export function need(car) {
  const p = car.arrival_probability, low = car.range_km?.p05;
  const moving = car.state === "driving" || car.state === "paused" || car.state === "silent";
  if (Number.isFinite(p) && p < 0.8 && moving) return [0, p, `Arrives: ${chance(p)}`];
  if (Number.isFinite(low) && low < LOW_KM && car.state !== "charging") return [1, low, `Down to ${distance(low)}`];
  if (car.state === "silent") return [2, 0, car.degraded || "No data"];
  if (Number.isFinite(p) && p < 0.95 && moving) return [3, p, `Arrives: ${chance(p)}`];
  if (car.degraded && moving) return [4, 0, car.degraded];
  const rank = { driving: 5, paused: 5, charging: 6, parked: 7, waiting: 8, offline: 9 }[car.state] ?? 8;
  const reason = Number.isFinite(p) && moving ? `Arrives: ${chance(p)}` : STATES[car.state] || car.state;
  return [rank, Number.isFinite(p) ? p : Number.isFinite(low) ? 1 + low : 1e9, reason];
}

/** One sentence for those who listen. */
export function spoken(car, details) {
  const parts = [`${car.name || car.id}: ${STATES[car.state] || car.state}`];
  if (Number.isFinite(car.mean_kw)) parts.push(`power ${kw(car.mean_kw)}`);
  if (Number.isFinite(car.range_km?.p50)) parts.push(`range ${distance(car.range_km.p50)}, at least ${distance(car.range_km.p05)}`);
  if (Number.isFinite(car.arrival_probability)) parts.push(`chance of arrival ${chance(car.arrival_probability)}`);
  if (Number.isFinite(car.soc_pct)) parts.push(`charge ${percent(car.soc_pct)}`);
  if (car.degraded) parts.push(`degraded: ${car.degraded}`);
  return `${parts.join(", ")}.`;
}

/** A range some minutes after another, each field as [before, after]: what it lost beyond what was driven, and why. */
export function rangeChange({ at, range_km: range, driven_km: driven, drive_pct: drive, weather_pct: weather, ambient_temp_c: felt }) {
  const gone = driven[1] - driven[0], lost = range[0] - range[1], extra = lost - gone;
  const begin = `${distance(gone)} driven since ${clock(at[0])}; range ${lost >= 0 ? "fell" : "rose"} by ${distance(Math.abs(lost))}`;
  if (Math.abs(extra) < 0.02 * range[1] + 0.5) return `${begin}, as expected.`;
  const why = [];
  const use = (pct) => (Math.abs(pct) < 1 ? "as much as expected" : `${percent(Math.abs(pct))} ${pct > 0 ? "more" : "less"} than expected`);
  if (known(drive) && Math.abs(drive[1] - drive[0]) >= 1) why.push(`this drive takes ${use(drive[1])}, it was ${use(drive[0])}`);
  if (known(weather) && known(felt) && Math.abs(weather[1] - weather[0]) >= 1) why.push(`it is ${temperature(felt[1])} outside, it was ${temperature(felt[0])}`);
  const because = why.length ? why.join("; ") : "the way ahead and the car’s own reading of its charge";
  return `${begin}, ${distance(Math.abs(extra))} ${extra > 0 ? "more" : "less"} than driven: ${because}.`;
}

const known = (pair) => Number.isFinite(pair?.[0]) && Number.isFinite(pair?.[1]);

/** What the model has learned of this car: from how much driving, and what that did. */
export function learned(found) {
  if (!found) return [];
  const notes = (found.notes || []).map((note) => ({ text: sentence(note) }));
  if (!(found.minutes > 0)) return [{ text: "Known by its data sheet alone; it learns from the first measured minute on." }, ...notes];
  const wider = found.band_wider_pct, drives = found.trips > 1 ? ` on ${found.trips} drives` : "";
  const did = Number.isFinite(wider) && Math.abs(wider) >= 1
    ? `: bands are ${percent(Math.abs(wider))} ${wider < 0 ? "narrower" : "wider"} than by the data sheet alone` : "";
  return [{ key: "Learned", text: `from ${duration(60 * found.minutes)} of driving${drives}${did}.` }, ...notes];
}

const sentence = (note) => `${note.charAt(0).toUpperCase()}${note.slice(1)}.`;
const signed = (pct) => `${pct > 0 ? "+" : "−"}${percent(Math.abs(pct))}`;

/** Why range is what it is: {key, tone, text}, the key a percentage of consumption where it is one. */
export function reasons(why, details, format) {
  const found = [];
  const drive = why?.drive_pct, weather = why?.weather_pct;
  if (Number.isFinite(drive)) {
    found.push(Math.abs(drive) < 1
      ? { key: "±\u00a00\u00a0%", text: "This drive takes what the model expects." }
      : { key: signed(drive), tone: drive > 0 ? "warn" : "good", text: "consumption on this drive against what the model expects; the way ahead is counted so." });
  }
  if (Number.isFinite(weather) && Number.isFinite(details?.ambient_temp_c)) {
    const here = `${format(details.ambient_temp_c)} outside`;
    found.push(Math.abs(weather) < 1
      ? { key: "±\u00a00\u00a0%", text: `${here} costs nothing against ${format(20)}.` }
      : { key: signed(weather), tone: weather > 0 ? "warn" : "good", text: `consumption: it is ${here}, not ${format(20)}.` });
  }
  return [...found, ...learned(details?.learned), ...(details?.notes || []).map((note) => ({ text: sentence(note) }))];
}
