// Units and numbers as text. Values of the API are km, km/h, kWh, kW and °C; only what is shown is converted.
const MILE = 1.609344;
const locale = navigator.language || "en";
const imperial = /^en-(US|GB)$/.test(locale) || /-(US|LR)$/.test(locale);

function stored(name, fallback, allowed) {
  try {
    const found = localStorage.getItem(`evband.${name}`);
    return allowed.includes(found) ? found : fallback;
  } catch { return fallback; }
}

export function remember(name, value) {
  try { localStorage.setItem(`evband.${name}`, value); } catch { /* not remembered */ }
}

export const units = {
  distance: stored("distance", imperial ? "mi" : "km", ["km", "mi"]),
  temperature: stored("temperature", /-(US|LR)$/.test(locale) ? "F" : "C", ["C", "F"]),
};

export function set(name, value) {
  units[name] = value;
  remember(name, value);
}

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

/** A number with a real minus sign and no minus before a zero; a dash where there is none. */
export function num(value, digits = 0) {
  if (!known(value)) return "–";
  const text = value.toFixed(digits);
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

export const far = (km) => (known(km) ? (units.distance === "mi" ? km / MILE : km) : null);
export const toKm = (value) => (units.distance === "mi" ? value * MILE : value);
export const speedUnit = () => (units.distance === "mi" ? "mph" : "km/h");

/** A distance: tenths only where they mean something. */
export function distance(km, digits) {
  const value = far(km);
  return measure(value, digits ?? (known(value) && Math.abs(value) < 10 ? 1 : 0), units.distance);
}

/** A number with its unit; a dash alone where there is none. */
const measure = (value, digits, unit) => (known(value) ? `${num(value, digits)}\u00a0${unit}` : "–");

export const speed = (kmh) => measure(far(kmh), 0, speedUnit());
export const temperature = (c) => measure(known(c) && units.temperature === "F" ? 32 + 1.8 * c : c, 0, `°${units.temperature}`);
export const kw = (value) => measure(value, 1, "kW");
export const kwh = (value) => measure(value, known(value) && Math.abs(value) < 10 ? 2 : 1, "kWh");
export const percent = (value, digits = 0) => measure(value, digits, "%");
export const per100 = (value) => measure(known(value) && units.distance === "mi" ? value * MILE : value, 1, `kWh/100\u00a0${units.distance}`);

/** A band of energy: its edges, or half its width where these would read the same. */
export function energyBand(lower, upper) {
  const half = 500 * (upper - lower);
  return half < 50 ? `± ${measure(half, half < 10 ? 1 : 0, "Wh")}` : `${num(lower, 2)} to ${kwh(upper)}`;
}

/** A chance never shown as certain. */
export function chance(p) {
  if (!known(p)) return "–";
  if (p > 0.99) return "over\u00a099\u00a0%";
  if (p < 0.01) return "under\u00a01\u00a0%";
  return percent(100 * p);
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
export const clock = (seconds) => CLOCK.format(new Date(1000 * seconds));
export const day = (seconds) => DAY.format(new Date(1000 * seconds));

export function ago(seconds) {
  if (seconds < 1.5) return "now";
  if (seconds < 90) return `${Math.round(seconds)}\u00a0s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)}\u00a0min ago`;
  return `${Math.round(seconds / 3600)}\u00a0h ago`;
}

export function duration(seconds) {
  const minutes = Math.max(Math.round(seconds / 60), 0);
  return minutes < 60 ? `${minutes}\u00a0min` : `${Math.floor(minutes / 60)}\u00a0h\u00a0${minutes % 60}\u00a0min`;
}
