// The zoomable charts. Rows are unpacked once a chart nears the screen; each view draws its rows, thinned so that peaks stay.
"use strict";
(() => {
  const SERIES = ["power", "mean", "lower", "upper", "share", "speed"];
  const UNKNOWN = -32768, BUCKETS = 500, GAP_S = 60, FIRST_ROWS = 600;
  const coarse = matchMedia("(pointer: coarse)").matches;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const unzip = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  };

  let library;
  const plotly = () => (library ??= (async () => {
    const code = new TextDecoder().decode(await unzip(document.getElementById("plotly").textContent));
    const script = document.createElement("script");
    script.textContent = code;
    document.head.append(script);
    return window.Plotly;
  })());

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // All trips of a chart as typed arrays: seconds since the trip's start, and kW, km/h or shares with NaN for unknown.
  const unpack = async (head) => {
    const buffer = await unzip(head.data);
    const units = { share: 1e-4, speed: 0.01 };
    let at = 0;
    return head.trips.map(({ rows, start }) => {
      const steps = new Int32Array(buffer.slice(at, (at += 4 * rows)));
      const trip = { start, rows, time: new Float64Array(rows) };
      let count = 0;
      steps.forEach((step, i) => { trip.time[i] = (count += step) * head.step_s; });
      for (const name of SERIES) {
        const whole = new Int16Array(buffer.slice(at, (at += 2 * rows)));
        const unit = units[name] ?? head.step_kw;
        trip[name] = Float64Array.from(whole, (v) => (v === UNKNOWN ? NaN : v * unit));
      }
      return trip;
    });
  };

  // Rows from..to; where there are many, of each bucket the lowest and highest power, the lowest lower and highest upper end.
  const thin = (trip, from, to) => {
    if (to - from <= 4 * BUCKETS) return Array.from({ length: to - from }, (_, i) => from + i);
    const rows = [], size = (to - from) / BUCKETS;
    for (let b = 0; b < BUCKETS; b++) {
      const first = Math.floor(from + b * size), last = Math.floor(from + (b + 1) * size);
      const best = [first, first, first, first];
      for (let i = first; i < last; i++) {
        if (trip.power[i] < trip.power[best[0]] || Number.isNaN(trip.power[best[0]])) best[0] = i;
        if (trip.power[i] > trip.power[best[1]] || Number.isNaN(trip.power[best[1]])) best[1] = i;
        if (trip.lower[i] < trip.lower[best[2]]) best[2] = i;
        if (trip.upper[i] > trip.upper[best[3]]) best[3] = i;
      }
      rows.push(...new Set(best.sort((a, b) => a - b)));
    }
    return rows;
  };

  const clock = (s) => {
    const t = Math.max(0, Math.round(s)), pad = (n) => String(n).padStart(2, "0");
    return `${Math.floor(t / 3600)}:${pad(Math.floor(t / 60) % 60)}:${pad(t % 60)}`;
  };
  const firstAt = (time, t) => {
    let low = 0, high = time.length;
    while (low < high) { const mid = (low + high) >> 1; if (time[mid] < t) low = mid + 1; else high = mid; }
    return low;
  };

  const traces = (trip, head, view) => {
    const from = Math.max(0, firstAt(trip.time, view[0]) - 1);
    const to = Math.min(trip.rows, firstAt(trip.time, view[1]) + 2);
    const rows = thin(trip, from, to), all = rows.length === to - from;
    const longest = head.thinned || !all ? Math.max(GAP_S, (3 * (view[1] - view[0])) / BUCKETS) : 1.5 * head.step_s;
    const x = [], pick = [];
    rows.forEach((i, k) => {
      if (k && trip.time[i] - trip.time[rows[k - 1]] > longest) { x.push(trip.time[i] - 0.01); pick.push(-1); }
      x.push(trip.time[i]); pick.push(i);
    });
    const of = (f) => pick.map((i) => { const v = i < 0 ? NaN : f(i); return Number.isNaN(v) ? null : v; });
    const { power, mean, lower, upper, share, speed } = trip;
    const low = of((i) => mean[i] - share[i] * (mean[i] - lower[i])), up = of((i) => mean[i] + share[i] * (upper[i] - mean[i]));
    const line = (y, extra) => ({ x, y, type: "scatter", mode: "lines", line: { width: 0 }, hoverinfo: "skip", connectgaps: false, ...extra });
    const kw = (v) => v.toFixed(2).replace("-", "−");
    const told = pick.map((i) => (i < 0 ? "" : `${clock(trip.time[i])}<br>${head.word} ${Number.isNaN(power[i]) ? "unknown" : kw(power[i]) + " kW"}` +
      `<br>mean ${kw(mean[i])} kW<br>band ${kw(lower[i])} to ${kw(upper[i])} kW`));
    const missed = rows.filter((i) => power[i] < lower[i] || power[i] > upper[i]);
    const fast = speed.some((v) => !Number.isNaN(v));
    const shades = [
      [of((i) => lower[i]), of((i) => upper[i]), "--band-model"],
      [low, up, "--band-data"],
    ].flatMap(([a, b, name]) => [line(a), line(b, { fill: "tonexty", fillcolor: colour(name) })]);
    return [
      ...shades,
      line(of((i) => mean[i]), { line: { width: 1.8, color: colour("--blue") }, hoverinfo: "text", text: told }),
      line(of((i) => power[i]), { line: { width: 1.1, color: colour("--dot") } }),
      { x: missed.map((i) => trip.time[i]), y: missed.map((i) => power[i]), type: "scatter", mode: "markers", hoverinfo: "skip", marker: { size: all ? 6 : 3.5, color: colour("--miss") } },
      ...(fast ? [line(of((i) => speed[i]), { yaxis: "y2", line: { width: 1.2, color: colour("--soft") }, hoverinfo: "text", text: pick.map((i) => (i < 0 ? "" : `${speed[i].toFixed(0)} km/h`)) })] : []),
    ];
  };

  const range = (trip, view) => {
    let low = Infinity, high = -Infinity;
    for (let i = firstAt(trip.time, view[0]); i < trip.rows && trip.time[i] <= view[1]; i++) {
      low = Math.min(low, trip.lower[i], Number.isNaN(trip.power[i]) ? Infinity : trip.power[i]);
      high = Math.max(high, trip.upper[i], Number.isNaN(trip.power[i]) ? -Infinity : trip.power[i]);
    }
    const pad = 0.05 * (high - low) || 1;
    return low < high ? [low - pad, high + pad] : [-1, 1];
  };

  const ticks = (view) => {
    const span = view[1] - view[0], wide = innerWidth > 760 ? 9 : 4;
    const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200].find((s) => span / s <= wide) ?? 14400;
    const vals = [];
    for (let t = Math.ceil(view[0] / step) * step; t <= view[1]; t += step) vals.push(t);
    return { tickvals: vals, ticktext: vals.map(clock) };
  };

  const layout = (trip, view) => {
    const axis = { gridcolor: colour("--rule"), zeroline: false, linecolor: colour("--soft"), tickcolor: colour("--soft"), automargin: false };
    const narrow = innerWidth <= 760;
    return {
      height: narrow ? 330 : 430, margin: { l: 50, r: 26, t: 8, b: 34 }, showlegend: false, hovermode: "x", dragmode: coarse ? false : "zoom",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: colour("--soft") },
      hoverlabel: { align: "left", bgcolor: colour("--raised"), bordercolor: colour("--soft"), font: { color: colour("--ink"), size: 12.5 } },
      xaxis: { ...axis, range: view, ...ticks(view), anchor: "y2", fixedrange: coarse, showspikes: false },
      yaxis: { ...axis, domain: [0.3, 1], range: range(trip, view), fixedrange: true, title: { text: "battery power, kW", standoff: 6, font: { size: 12.5 } }, zeroline: true, zerolinecolor: colour("--soft"), zerolinewidth: 1 },
      yaxis2: { ...axis, domain: [0, 0.2], fixedrange: true, rangemode: "tozero", nticks: 3, title: { text: "km/h", standoff: 6, font: { size: 12.5 } } },
    };
  };

  class Timeline {
    constructor(box) {
      this.box = box;
      this.plot = box.querySelector(".plot");
      this.controls = box.querySelector(".controls");
      this.select = box.querySelector("select");
    }
    start() { return (this.ready ??= this.build()); }
    async build() {
      this.head = JSON.parse(this.box.querySelector("script").textContent);
      [this.Plotly, this.trips] = await Promise.all([plotly(), unpack(this.head)]);
      this.plot.replaceChildren();
      this.controls.hidden = false;
      this.show(0);
      this.select.onchange = () => this.show(Number(this.select.value));
      this.controls.onclick = (event) => {
        const { span, move } = event.target.dataset;
        if (span !== undefined) this.zoom(this.around(Number(span)));
        if (move !== undefined) this.zoom(this.view.map((t) => t + 0.8 * Number(move) * (this.view[1] - this.view[0])));
      };
      this.plot.on("plotly_relayout", (change) => {
        const view = change["xaxis.range"] ?? (change["xaxis.range[0]"] !== undefined ? [change["xaxis.range[0]"], change["xaxis.range[1]"]] : null);
        if (change["xaxis.autorange"]) this.zoom(this.whole());
        else if (view && (view[0] !== this.view[0] || view[1] !== this.view[1])) this.zoom(view);
      });
    }
    get trip() { return this.trips[this.number]; }
    whole() { return [0, Math.max(this.trip.time[this.trip.rows - 1], 1)]; }
    around(span) {
      if (!span) return this.whole();
      const middle = Math.max((this.view[0] + this.view[1]) / 2, span / 2);
      return [middle - span / 2, middle + span / 2];
    }
    show(number) {
      this.number = number;
      this.select.value = String(number);
      const [first, last] = this.whole(), span = Math.max(60, FIRST_ROWS * this.head.step_s);
      this.zoom(last - first > 2 * span ? [first, first + span] : [first, last]);
    }
    zoom(view) {
      const [first, last] = this.whole(), span = Math.min(Math.max(view[1] - view[0], 5), last - first);
      const from = Math.min(Math.max(view[0], first), last - span);
      this.view = [from, from + span];
      this.draw();
      for (const button of this.controls.querySelectorAll("[data-span]")) {
        const wanted = Number(button.dataset.span) || last;
        button.setAttribute("aria-pressed", String(Math.abs(span - Math.min(wanted, last)) < 0.5 && (wanted < last || button.dataset.span === "0")));
      }
    }
    draw() {
      const config = { responsive: true, displayModeBar: false, doubleClick: "autosize" };
      this.Plotly.react(this.plot, traces(this.trip, this.head, this.view), layout(this.trip, this.view), config);
    }
    async jump(number, time) {
      await this.start();
      this.show(number);
      const at = time - this.trip.start;
      this.zoom([at - 60, at + 60]);
      this.box.scrollIntoView({ block: "center" });
    }
  }

  if (typeof DecompressionStream === "undefined") return; // an old browser keeps the still pictures
  const timelines = Array.from(document.querySelectorAll(".timeline"), (box) => new Timeline(box));
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) timelines.find((t) => t.box === entry.target).start();
  }, { rootMargin: "400px" });
  timelines.forEach((t) => near.observe(t.box));
  dark.addEventListener("change", () => timelines.forEach((t) => t.view && t.draw()));
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => timelines.forEach((t) => t.view && t.draw()), 200); });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
  document.addEventListener("click", (event) => {
    const { chapter, trip, time } = event.target.closest?.(".jump")?.dataset ?? {};
    if (chapter !== undefined) timelines[Number(chapter)].jump(Number(trip), Number(time));
  });
})();
