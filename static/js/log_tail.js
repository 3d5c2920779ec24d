// The log: appends what is new after the last seq shown, keeps the end in view unless the reader scrolled away.
(function () {
  "use strict";
  const KEEP = 1000; // rows in the page; older ones are a click away
  let busy = false;
  let again = false;

  function parts() {
    return { scroll: document.querySelector("[data-log]"), rows: document.querySelector("[data-log-rows]"), follow: document.querySelector("[data-log-follow]") };
  }

  function toEnd() {
    const { scroll, follow } = parts();
    if (scroll && follow && follow.checked) scroll.scrollTop = scroll.scrollHeight;
  }

  async function more() {
    if (busy) { again = true; return; }
    const { rows, follow } = parts();
    if (!rows || !follow || !follow.checked) return;
    const newest = rows.lastElementChild ? rows.lastElementChild.dataset.seq : "-1";
    busy = true;
    try {
      await htmx.ajax("GET", rows.dataset.moreUrl + "&after=" + newest, { source: rows, target: rows, swap: "beforeend" });
      const empty = rows.parentElement.querySelector(".empty");
      if (empty && rows.children.length) empty.remove();
      while (rows.children.length > KEEP) rows.firstElementChild.remove();
      toEnd();
    } finally {
      busy = false;
      if (again) { again = false; more(); }
    }
  }

  document.addEventListener("bw:log", more);
  document.addEventListener("scroll", function (event) {
    if (!event.target.matches || !event.target.matches("[data-log]")) return;
    const { scroll, follow } = parts();
    const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 24;
    if (!atEnd && follow.checked && event.target.dataset.touched) follow.checked = false;
  }, true);
  ["wheel", "touchmove", "keydown"].forEach(function (name) {
    document.addEventListener(name, function (event) {
      const log = event.target.closest && event.target.closest("[data-log]");
      if (log) log.dataset.touched = "1";
    }, { passive: true });
  });
  document.addEventListener("change", function (event) {
    if (event.target.matches("[data-log-follow]") && event.target.checked) {
      const { scroll } = parts();
      delete scroll.dataset.touched;
      more();
      toEnd();
    }
  });
  document.addEventListener("htmx:afterSwap", function (event) { if (event.target.id === "log") toEnd(); });
  toEnd();
})();
