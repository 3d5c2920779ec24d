// A live run: the stream says which parts are stale, one request fetches them together, htmx puts each in its place.
// Requests never overlap and never come faster than one every PACE ms, however fast events land.
(function () {
  "use strict";
  const PACE = 400;
  const box = document.querySelector("[data-live]");
  if (!box) return;
  const url = box.dataset.live;
  const stale = new Set();
  let busy = false;
  let last = 0;
  let timer = 0;
  let open = false;

  function later() {
    if (timer || busy) return;
    timer = setTimeout(flush, Math.max(0, last + PACE - Date.now()));
  }

  function typing() {
    const field = document.activeElement;
    return field && field.closest && field.closest("#run-status textarea") && field.value;
  }

  function showsTasks() {
    const rows = document.querySelector("[data-log-rows]");
    return rows && ["tasks", "all"].includes(rows.dataset.group);
  }

  async function flush() {
    timer = 0;
    const names = Array.from(stale);
    stale.clear();
    if (!names.length) return;
    busy = true;
    last = Date.now();
    try {
      const parts = names.filter(function (name) { return !name.startsWith("log") && !(name === "status" && typing()); });
      if (parts.length) await htmx.ajax("GET", url + "?parts=" + parts.join("+"), { source: box, target: box, swap: "none" });
      if (names.includes("log") || (names.includes("log:tasks") && showsTasks())) document.dispatchEvent(new CustomEvent("bw:log"));
    } finally {
      busy = false;
      if (stale.size) later();
    }
  }

  function mark(names) {
    names.forEach(function (name) { if (name) stale.add(name); });
    if (stale.has("phases")) stale.add("identity").add("scorer");
    if (stale.has("heatmap")) document.dispatchEvent(new CustomEvent("bw:tiles-stale"));
    later();
  }

  const everything = ["status", "phases", "score", "cost", "heatmap", "log"];
  document.addEventListener("htmx:sseBeforeMessage", function (event) {
    const message = event.detail;
    event.preventDefault(); // the data is a message to this script, not HTML
    if (message.type === "tiles") {
      const data = JSON.parse(message.data);
      document.dispatchEvent(new CustomEvent("bw:tiles", { detail: data.i || data }));
    } else if (message.type === "stale") {
      mark(message.data.split(/\s+/));
    } else if (message.type === "end") {
      mark(everything);
    }
  });
  // After a gap anything may have changed.
  document.addEventListener("htmx:sseOpen", function () {
    if (open) mark(everything);
    open = true;
  });
  document.addEventListener("visibilitychange", function () {
    if (!document.hidden && open) mark(["status", "score", "cost", "log"]);
  });
})();
