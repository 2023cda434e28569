"use strict";
// Everything from a feed is written as text, never as HTML.
const rows = new Map();

function shown(value, digits) {
  return value === null || value === undefined ? "–" : value.toFixed(digits);
}

function row(car) {
  if (!rows.has(car.id)) {
    const line = document.createElement("tr");
    for (let i = 0; i < 7; i += 1) line.append(document.createElement("td"));
    document.getElementById("cars").append(line);
    rows.set(car.id, line);
  }
  return rows.get(car.id);
}

function draw(car) {
  const energy = car.energy_kwh, range = car.range_km;
  const arrives = car.arrival_probability === null ? "–" : `${Math.round(100 * car.arrival_probability)} %`;
  const texts = [
    car.name || car.id,
    car.state,
    `${shown(car.mean_kw, 1)} (${shown(car.lower_kw, 1)} to ${shown(car.upper_kw, 1)})`,
    `${shown(energy.mean, 2)} (${shown(energy.lower, 2)} to ${shown(energy.upper, 2)})`,
    `${shown(range.p50, 0)} (${shown(range.p05, 0)} to ${shown(range.p95, 0)})`,
    arrives,
    car.degraded || "",
  ];
  [...row(car).children].forEach((cell, i) => { cell.textContent = texts[i]; });
}

function connect() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}/api/live`);
  const status = document.getElementById("connection");
  socket.onopen = () => { status.textContent = "Live."; };
  socket.onmessage = (event) => { JSON.parse(event.data).cars.forEach(draw); };
  socket.onclose = () => { status.textContent = "Connection lost; trying again."; setTimeout(connect, 2000); };
}

connect();
