// The page: states in, the car that is looked at and the list of all out.
import { CarView } from "./car_view.js";
import { CarsList, write } from "./cars_list.js";
import { Changes } from "./changes.js";
import { Feed, ask } from "./feed.js";
import { Trips } from "./trips.js";
import { deleteDialog, routeDialog } from "./dialogs.js";
import { forget, still } from "./canvas.js";
import { remember, set, speedUnit, units } from "./units.js";
import { spoken } from "./words.js";

const DETAILS_MS = 10_000, SOON_MS = 2_000, TRIPS_MS = 30_000, SPEAK_MS = 60_000, FRAME_MS = 40;
const at = (id) => document.getElementById(id);
const cars = new Map();
const list = new CarsList(cars), view = new CarView(), changes = new Changes(), trips = new Trips();
let connection = "connecting", spokenOf = "", spokenAt = -Infinity, painted = 0, renewed = 0, dirty = true;

const feed = new Feed((found, atOnce) => {
  const now = performance.now();
  for (const car of found) {
    if (car.id === view.car?.id && car.range_km?.p50 !== view.car.range_km?.p50) renewSoon(now); // the fan shows what the numbers say
    cars.set(car.id, car);
    changes.see(car);
    view.take(car, now);
  }
  if (atOnce || !view.car) choose();
  dirty = true;
}, (state, text) => {
  connection = state;
  at("connection").dataset.state = state;
  write(at("connection"), text);
  dirty = true;
});

/** The car that the address names; else the one that was looked at; else the first by need. */
function choose() {
  const wanted = new URLSearchParams(location.hash.slice(1)).get("car");
  at("empty").hidden = cars.size > 0;
  if (!cars.size) {
    write(at("empty-title"), "No car has sent anything yet");
    write(at("empty-text"), "This page fills by itself with the first reading. What is wrong, if anything, stands above.");
    return;
  }
  list.draw(true);
  const id = cars.has(wanted) ? wanted : view.car?.id ?? list.order[0] ?? cars.keys().next().value;
  if (id === view.car?.id) return;
  at("car").hidden = false;
  view.select(cars.get(id));
  view.take(cars.get(id), view.seen.get(id)?.at ?? performance.now()); // looking at a state does not make it newer
  feed.select(id);
  document.title = `${cars.get(id).name || id} · evband`;
  list.mark(id);
  refresh();
}

function renewSoon(now) {
  if (now - renewed < SOON_MS) return;
  renewed = now;
  view.renew().then(() => { dirty = true; });
}

/** What is wrong with the service itself: the broker is away, the disk is full, a dongle is gone. */
async function system() {
  let problems = [];
  try { problems = (await ask("/healthz")).problems; } catch { /* the connection's own words say it */ }
  at("system").hidden = !problems.length;
  write(at("system"), problems.join(" "));
}

function refresh() {
  view.renew().then(() => { dirty = true; });
  if (view.car) trips.load(view.car.id);
}

/** Words for a screen reader: when something happened, else once a minute. */
function speak(now) {
  const car = view.car, key = [car.id, car.state, car.degraded?.replace(/\d+/g, ""), connection].join("|");
  if (key === spokenOf && now - spokenAt < SPEAK_MS) return;
  if (now - spokenAt < 5000 && spokenAt > 0) return;
  [spokenOf, spokenAt] = [key, now];
  at("announce").textContent = connection === "lost" ? "The connection is lost; values are old." : spoken(car, view.details);
  view.describe();
}

function paint(now = performance.now()) {
  list.draw();
  if (!view.car) return;
  list.mark(view.car.id);
  view.draw(now, connection === "live" || connection === "connecting");
  view.energy.draw(now);
  changes.draw(view.car.id, view.details);
  speak(now);
}

function frame(now) {
  requestAnimationFrame(frame);
  if (now - painted < FRAME_MS) return;
  painted = now;
  if (dirty) {
    dirty = false;
    paint(now);
    view.power.draw(now);
  } else if (view.car && !still.matches && view.power.live) {
    view.power.draw(now);
  }
}

function themes() {
  const root = document.documentElement, button = at("theme"), order = ["auto", "light", "dark"];
  const show = () => {
    const now = root.dataset.theme || "auto";
    write(button, now.charAt(0).toUpperCase() + now.slice(1));
    button.setAttribute("aria-label", `${button.textContent}, theme`);
    forget();
    view.fan.draw();
    dirty = true;
  };
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(root.dataset.theme || "auto") + 1) % 3];
    if (next === "auto") delete root.dataset.theme; else root.dataset.theme = next;
    remember("theme", next);
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}

function unitButtons() {
  const show = () => {
    write(at("distance"), units.distance);
    at("distance").setAttribute("aria-label", `${units.distance}, unit of distance`);
    write(at("temperature"), `°${units.temperature}`);
    at("temperature").setAttribute("aria-label", `°${units.temperature}, unit of temperature`);
    document.querySelectorAll(".unit-distance").forEach((one) => write(one, units.distance));
    document.querySelectorAll(".unit-speed").forEach((one) => write(one, speedUnit()));
    view.fan.draw();
    trips.draw();
    dirty = true;
  };
  at("distance").addEventListener("click", () => { set("distance", units.distance === "km" ? "mi" : "km"); show(); });
  at("temperature").addEventListener("click", () => { set("temperature", units.temperature === "C" ? "F" : "C"); show(); });
  show();
}

for (const button of document.querySelectorAll("[data-seconds]")) {
  button.addEventListener("click", () => {
    view.power.seconds = Number(button.dataset.seconds);
    document.querySelectorAll("[data-seconds]").forEach((one) => one.setAttribute("aria-pressed", String(one === button)));
    dirty = true;
  });
}
deleteDialog(() => view.car, (id) => {
  changes.forget(id);
  view.rings.delete(id);
  view.select(cars.get(id));
  refresh();
});
routeDialog(() => view.car, refresh);
themes();
unitButtons();
addEventListener("hashchange", choose);
setInterval(() => { dirty = true; }, 1000); // ages grow also when nothing comes
setInterval(() => { if (!document.hidden) view.renew().then(() => { dirty = true; }); }, DETAILS_MS);
setInterval(() => { if (!document.hidden) system(); }, DETAILS_MS);
setInterval(() => { if (!document.hidden && view.car) trips.load(view.car.id); }, TRIPS_MS);
requestAnimationFrame(frame);
system();
feed.start();
