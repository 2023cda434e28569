// Questions before something is changed: deleting a car's data, a route.
import { ask } from "./feed.js";
import { toKm } from "./units.js";

const at = (id) => document.getElementById(id);

export function deleteDialog(current, onDone) {
  const dialog = at("delete-dialog"), error = at("delete-error"), yes = at("delete-yes");
  at("delete").addEventListener("click", () => {
    const car = current();
    error.textContent = "";
    at("delete-text").textContent = `Everything that is known of ${car.name || car.id} is deleted: its drives, seconds, route and what was learned. `
      + "This cannot be undone. If it goes on sending, it begins anew.";
    dialog.showModal();
  });
  yes.addEventListener("click", async () => {
    const car = current();
    yes.disabled = true;
    try {
      await ask(`/api/cars/${encodeURIComponent(car.id)}`, { method: "DELETE" });
      dialog.close();
      onDone(car.id);
    } catch (problem) {
      error.textContent = problem.message;
    } finally {
      yes.disabled = false;
    }
  });
}

export function routeDialog(current, onDone) {
  const dialog = at("route-dialog"), error = at("route-error"), yes = at("route-yes");
  at("route").addEventListener("click", () => {
    error.textContent = "";
    dialog.showModal();
  });
  const send = async (options) => {
    yes.disabled = true;
    error.textContent = "";
    try {
      await ask(`/api/cars/${encodeURIComponent(current().id)}/route`, options);
      dialog.close();
      onDone();
    } catch (problem) {
      error.textContent = problem.message;
    } finally {
      yes.disabled = false;
    }
  };
  yes.addEventListener("click", async () => {
    const file = at("route-file").files[0], km = toKm(Number(at("route-distance").value)), kmh = toKm(Number(at("route-speed").value));
    if (file) {
      send({ method: "PUT", body: await file.text() });
    } else if (km > 0 && kmh > 0) {
      send({ method: "PUT", body: JSON.stringify({ distance_km: [0, km], speed_kmh: [kmh, kmh] }) });
    } else {
      error.textContent = "Give a file, or a distance and a speed.";
    }
  });
  at("route-none").addEventListener("click", () => send({ method: "DELETE" }));
  at("route-form").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.type === "number") { // Enter in a field means use it, not cancel
      event.preventDefault();
      yes.click();
    }
  });
}
