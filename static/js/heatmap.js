// The map of tasks: one canvas drawn from one string, one character a task (p f e r . and - for not selected).
// Each outcome has a shape of its own, so the map reads without colour: full square, half square, cross, ring, dot.
(function () {
  "use strict";
  const WORDS = { p: "pass", f: "fail", e: "error", r: "running", ".": "not started", "-": "not selected" };
  const COLORS = ["pass", "fail", "failSoft", "err", "errSoft", "run", "runSoft", "idle", "idleSoft", "ink", "surface"];

  class Heatmap {
    constructor(box) {
      this.box = box;
      this.canvas = box.querySelector("canvas");
      this.tip = box.querySelector("[data-heat-tip]");
      this.says = box.parentElement.querySelector("[data-heat-says]");
      this.tiles = Array.from(box.dataset.outcomes);
      this.sum = { p: 0, f: 0, e: 0, r: 0 };
      for (const kind of this.tiles) if (kind in this.sum) this.sum[kind] += 1;
      this.at = -1;
      this.dirty = false;
      this.changed = new Set();
      this.readColors();
      this.layout();
      this.observer = new ResizeObserver(() => this.layout());
      this.observer.observe(box);
      box.addEventListener("mousemove", (event) => this.hover(event));
      box.addEventListener("mouseleave", () => this.showTip(-1));
      box.addEventListener("click", (event) => { const i = this.hit(event); if (i >= 0) this.open(i); });
      box.addEventListener("keydown", (event) => this.key(event));
      box.addEventListener("focus", () => { if (this.at < 0) this.move(Math.max(0, this.first())); else this.draw(); });
      box.addEventListener("blur", () => { this.showTip(-1); this.draw(); });
    }

    // Canvas can't read CSS variables with two values: probes carry the colours the page resolved.
    readColors() {
      let probe = this.box.querySelector(".heat__colors");
      if (!probe) {
        probe = document.createElement("div");
        probe.className = "heat__colors";
        for (const name of COLORS) {
          const item = document.createElement("i");
          item.dataset.c = name;
          probe.append(item);
        }
        this.box.append(probe);
      }
      this.color = {};
      probe.querySelectorAll("i").forEach((item) => { this.color[item.dataset.c] = getComputedStyle(item).color; });
    }

    layout() {
      const width = this.box.clientWidth;
      if (!width) return;
      const n = this.tiles.length;
      // The largest tile that keeps the map low enough to be taken in at a glance.
      const tallest = 260;
      let step = 24;
      while (step > 7 && Math.ceil(n / Math.floor(width / step)) * step > tallest) step -= 1;
      this.step = step;
      this.gap = step >= 14 ? 3 : step >= 10 ? 2 : 1;
      this.columns = Math.max(1, Math.floor((width + this.gap) / step));
      this.rows = Math.ceil(n / this.columns);
      this.width = width;
      this.height = this.rows * step - this.gap;
      const ratio = Math.max(1, window.devicePixelRatio || 1);
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
      this.canvas.style.height = this.height + "px";
      this.context = this.canvas.getContext("2d");
      this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.draw();
    }

    draw() {
      if (!this.context) return;
      this.context.clearRect(0, 0, this.width, this.height);
      for (let i = 0; i < this.tiles.length; i += 1) this.tile(i);
      this.cursor();
    }

    tile(i) {
      const c = this.context;
      const s = this.step - this.gap;
      const x = (i % this.columns) * this.step;
      const y = Math.floor(i / this.columns) * this.step;
      const kind = this.tiles[i];
      const round = s > 8 ? 2.5 : 1.5;
      const box = (fill) => { c.fillStyle = fill; c.beginPath(); c.roundRect(x, y, s, s, round); c.fill(); };
      if (kind === "p") {
        box(this.color.pass);
      } else if (kind === "f") {
        box(this.color.failSoft);
        c.fillStyle = this.color.fail;
        c.beginPath();
        c.moveTo(x, y + s - round * 0.3);
        c.lineTo(x + s, y + round * 0.3);
        c.lineTo(x + s, y + s - round);
        c.arcTo(x + s, y + s, x + s - round, y + s, round);
        c.lineTo(x + round, y + s);
        c.arcTo(x, y + s, x, y + s - round, round);
        c.closePath();
        c.fill();
      } else if (kind === "e") {
        box(this.color.errSoft);
        const inset = s * 0.2;
        c.strokeStyle = this.color.err;
        c.lineWidth = Math.max(1.4, s * 0.17);
        c.lineCap = "round";
        c.beginPath();
        c.moveTo(x + inset, y + inset);
        c.lineTo(x + s - inset, y + s - inset);
        c.moveTo(x + s - inset, y + inset);
        c.lineTo(x + inset, y + s - inset);
        c.stroke();
      } else if (kind === "r") {
        box(this.color.runSoft);
        c.strokeStyle = this.color.run;
        c.lineWidth = Math.max(1.3, s * 0.16);
        c.beginPath();
        c.arc(x + s / 2, y + s / 2, s * 0.3, 0, 7);
        c.stroke();
      } else if (kind === ".") {
        box(this.color.idleSoft);
        c.fillStyle = this.color.idle;
        c.beginPath();
        c.arc(x + s / 2, y + s / 2, Math.max(0.8, s * 0.1), 0, 7);
        c.fill();
      }
    }

    cursor() {
      if (this.at < 0 || document.activeElement !== this.box) return;
      const s = this.step - this.gap;
      const x = (this.at % this.columns) * this.step;
      const y = Math.floor(this.at / this.columns) * this.step;
      const c = this.context;
      c.lineWidth = 2;
      c.strokeStyle = this.color.surface;
      c.beginPath(); c.roundRect(x + 1, y + 1, s - 2, s - 2, 2); c.stroke();
      c.strokeStyle = this.color.ink;
      c.beginPath(); c.roundRect(x - 1, y - 1, s + 2, s + 2, 3); c.stroke();
    }

    hit(event) {
      const rect = this.canvas.getBoundingClientRect();
      const column = Math.floor((event.clientX - rect.left) / this.step);
      const row = Math.floor((event.clientY - rect.top) / this.step);
      if (column < 0 || column >= this.columns || row < 0) return -1;
      const i = row * this.columns + column;
      return i < this.tiles.length && this.tiles[i] !== "-" ? i : -1;
    }

    hover(event) { this.showTip(this.hit(event)); }

    showTip(i) {
      if (i < 0) { this.tip.hidden = true; return; }
      this.tip.textContent = "Task " + i + ": " + (WORDS[this.tiles[i]] || "");
      this.tip.hidden = false;
      const x = (i % this.columns) * this.step;
      const y = Math.floor(i / this.columns) * this.step;
      const room = this.box.clientWidth - this.tip.offsetWidth;
      this.tip.style.left = Math.max(0, Math.min(room, x + this.step / 2 - this.tip.offsetWidth / 2)) + "px";
      this.tip.style.top = (y - this.tip.offsetHeight - 6 < -40 ? y + this.step + 4 : y - this.tip.offsetHeight - 6) + "px";
    }

    first() { return this.tiles.findIndex((kind) => kind !== "-"); }

    move(i) {
      this.at = Math.max(0, Math.min(this.tiles.length - 1, i));
      this.draw();
      this.showTip(this.at);
      this.says.textContent = "Task " + this.at + ": " + (WORDS[this.tiles[this.at]] || "");
    }

    seek(kind) {
      const n = this.tiles.length;
      for (let step = 1; step <= n; step += 1) {
        const i = (Math.max(this.at, -1) + step + n) % n;
        if (this.tiles[i] === kind) { this.move(i); return; }
      }
      this.says.textContent = "No task with outcome " + WORDS[kind];
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const page = this.columns * 5;
      const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns, PageDown: page, PageUp: -page };
      if (event.key in moves) {
        const to = this.at + moves[event.key];
        if (to >= 0 && to < this.tiles.length) this.move(to);
      } else if (event.key === "Home") this.move(0);
      else if (event.key === "End") this.move(this.tiles.length - 1);
      else if (event.key === "n" || event.key === "f") this.seek("f");
      else if (event.key === "e") this.seek("e");
      else if (event.key === "Enter" || event.key === " ") { if (this.at >= 0) this.open(this.at); }
      else return;
      event.preventDefault();
    }

    // The task's page is fetched into the drawer; its own address works as well.
    open(i) {
      this.at = i;
      const url = this.box.dataset.taskUrl.replace(/\/0\/$/, "/" + i + "/");
      const drawer = document.getElementById("task-drawer");
      htmx.ajax("GET", url, { source: this.box, target: "#task-drawer-body", swap: "innerHTML" }).then(() => {
        if (!drawer.open) drawer.showModal();
        drawer.scrollTop = 0;
      });
    }

    // changes: {"12": "p", …}. Only the tiles that changed are drawn, once a frame.
    apply(changes) {
      for (const [index, kind] of Object.entries(changes)) {
        const i = Number(index);
        if (i >= this.tiles.length) { this.grow(i + 1); }
        const before = this.tiles[i];
        if (before === kind) continue;
        if (before in this.sum) this.sum[before] -= 1;
        if (kind in this.sum) this.sum[kind] += 1;
        this.tiles[i] = kind;
        this.changed.add(i);
      }
      if (this.dirty || !this.changed.size) return;
      this.dirty = true;
      requestAnimationFrame(() => { this.dirty = false; this.redraw(); this.count(); });
    }

    redraw() {
      if (!this.context) return;
      for (const i of this.changed) {
        this.context.clearRect((i % this.columns) * this.step, Math.floor(i / this.columns) * this.step, this.step, this.step);
        this.tile(i);
      }
      this.changed.clear();
      this.cursor();
    }

    grow(n) {
      while (this.tiles.length < n) this.tiles.push(".");
      this.layout();
    }

    count() {
      const sum = this.sum;
      const card = this.box.closest(".heat");
      card.querySelectorAll("[data-count]").forEach((item) => { item.textContent = sum[item.dataset.count].toLocaleString("en"); });
      const settled = card.querySelector(".counts__progress strong");
      if (settled) settled.textContent = (sum.p + sum.f + sum.e).toLocaleString("en");
    }

    recolor() { this.readColors(); this.draw(); }
  }

  const maps = new Map();
  // Tiles that came by stream since the map was last said to be stale. A fresh map may have been rendered before they
  // landed, so they are put on top of it.
  const since = {};
  function setUp() {
    for (const [box, map] of maps) if (!box.isConnected) { map.observer.disconnect(); maps.delete(box); }
    document.querySelectorAll("[data-heatmap]").forEach(function (box) {
      if (maps.has(box)) return;
      const map = new Heatmap(box);
      maps.set(box, map);
      if (Object.keys(since).length) map.apply(since);
    });
  }
  function recolor() { for (const map of maps.values()) map.recolor(); }

  document.addEventListener("bw:theme", recolor);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
  document.addEventListener("bw:tiles-stale", function () { for (const index of Object.keys(since)) delete since[index]; });
  document.addEventListener("bw:tiles", function (event) {
    Object.assign(since, event.detail);
    for (const map of maps.values()) map.apply(event.detail);
  });
  document.addEventListener("htmx:oobAfterSwap", setUp);
  document.addEventListener("htmx:afterSwap", setUp);
  setUp();

  // In the drawer, j and k walk through the tasks.
  document.addEventListener("keydown", function (event) {
    const drawer = document.getElementById("task-drawer");
    if (!drawer || !drawer.open || event.target.matches("input, textarea, select")) return;
    const step = { j: "1", k: "-1", ArrowRight: "1", ArrowLeft: "-1" }[event.key];
    if (!step || event.target.closest("pre")) return;
    const link = drawer.querySelector('[data-drawer-step="' + step + '"]');
    if (link) link.click();
  });
  document.addEventListener("click", function (event) {
    if (event.target.id === "task-drawer") event.target.close(); // the backdrop
  });
})();
