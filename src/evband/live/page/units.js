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
  return `${num(value, digits ?? (known(value) && Math.abs(value) < 10 ? 1 : 0))}\u00a0${units.distance}`;
}

export const speed = (kmh) => `${num(far(kmh))}\u00a0${speedUnit()}`;
export const temperature = (c) =>
  `${num(known(c) ? (units.temperature === "F" ? 32 + 1.8 * c : c) : null)}\u00a0°${units.temperature}`;
export const kw = (value) => `${num(value, 1)}\u00a0kW`;
export const kwh = (value) => `${num(value, known(value) && Math.abs(value) < 10 ? 2 : 1)}\u00a0kWh`;
export const percent = (value, digits = 0) => `${num(value, digits)}\u00a0%`;
export const per100 = (value) =>
  `${num(known(value) ? (units.distance === "mi" ? value * MILE : value) : null, 1)}\u00a0kWh/100\u00a0${units.distance}`;

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
