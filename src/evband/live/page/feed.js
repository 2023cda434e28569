// States from the server: the last ones at once by GET, then as they change by WebSocket; and whether they are still true.
const FIRST_WAIT_MS = 500, LONGEST_WAIT_MS = 10_000;
const QUIET_MS = 45_000; // every car is sent at least every 20 s: longer silence means that the connection is dead
const MANY = 200; // a larger fleet is asked for now and then; only the car that is looked at is live
const FLEET_MS = 15_000;

export class Feed {
  /** `onCars(list, atOnce)` gets states, `onConnection(state, text)` one of connecting, live, lost, refused. */
  constructor(onCars, onConnection) {
    this.onCars = onCars;
    this.onConnection = onConnection;
    this.selected = null;
    this.many = false;
    this.wait = FIRST_WAIT_MS;
    this.heard = 0;
    this.socket = null;
    this.timer = 0;
  }

  async start() {
    await this.snapshot();
    this.connect();
    setInterval(() => this.watch(), 1000);
    setInterval(() => { if (this.many && !document.hidden) this.snapshot(); }, FLEET_MS);
    document.addEventListener("visibilitychange", () => { if (!document.hidden && !this.socket) this.connect(); });
    addEventListener("online", () => { if (!this.socket) this.connect(); });
  }

  async snapshot() {
    try {
      const answer = await fetch("/api/cars", { cache: "no-store" });
      if (!answer.ok) {
        this.onConnection("refused", (await answer.json()).error);
        return;
      }
      const cars = await answer.json();
      this.many = cars.length > MANY;
      this.onCars(cars, true);
    } catch {
      this.onConnection("lost", "The server does not answer; trying again.");
    }
  }

  select(id) {
    if (id === this.selected) return;
    this.selected = id;
    if (this.many && this.socket) this.socket.close(); // and it comes back with the other car
  }

  connect() {
    clearTimeout(this.timer);
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const only = this.many && this.selected ? `?car=${encodeURIComponent(this.selected)}` : "";
    const socket = new WebSocket(`${scheme}://${location.host}/api/live${only}`);
    this.socket = socket;
    this.heard = performance.now();
    socket.onmessage = (event) => {
      if (socket !== this.socket) return;
      this.heard = performance.now();
      this.wait = FIRST_WAIT_MS;
      this.onConnection("live", "Live");
      this.onCars(JSON.parse(event.data).cars, false);
    };
    socket.onclose = () => { if (socket === this.socket) this.lost(); };
  }

  lost() {
    this.socket = null;
    this.onConnection("lost", "Connection lost; trying again");
    this.timer = setTimeout(() => this.connect(), this.wait * (0.75 + 0.5 * Math.random()));
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT_MS);
  }

  /** A connection that died without a word (a laptop that slept, a network that changed). */
  watch() {
    if (this.socket && performance.now() - this.heard > QUIET_MS) {
      const dead = this.socket;
      this.lost();
      dead.close();
    }
  }
}

/** JSON of the API, or an Error with its own words. */
export async function ask(path, options) {
  const answer = await fetch(path, { cache: "no-store", ...options });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error || `The server answered ${answer.status}.`);
  return found;
}
