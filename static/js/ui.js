// Small behaviours that every page has: theme, copy, menus, relative times, file drops. Nothing here is needed to use a page.
(function () {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function toggleTheme() {
    const next = isDark() ? "light" : "dark";
    root.dataset.theme = next;
    // The server reads the cookie, so the next page has no flash of the other theme.
    document.cookie = "bw_theme=" + next + ";path=/;max-age=31536000;samesite=lax";
    document.dispatchEvent(new CustomEvent("bw:theme"));
  }

  async function copy(button) {
    const source = button.closest("[data-copy]").querySelector("pre");
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(source);
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      if (!document.execCommand("copy")) return;
      selection.removeAllRanges();
    }
    const use = button.querySelector("use");
    button.dataset.done = "1";
    use.setAttribute("href", "#i-check");
    setTimeout(function () {
      delete button.dataset.done;
      use.setAttribute("href", "#i-copy");
    }, 1400);
  }

  function reveal(scope) {
    scope.querySelectorAll("[data-copy-button][hidden], [data-theme-toggle][hidden], [data-print][hidden]").forEach(function (item) {
      item.hidden = false;
    });
  }

  function ago(then) {
    const seconds = (Date.now() - then) / 1000;
    if (seconds < 45) return "just now";
    if (seconds < 3600) return Math.max(1, Math.round(seconds / 60)) + " min ago";
    if (seconds < 86400) return Math.round(seconds / 3600) + " h ago";
    return null;
  }

  function span(ms) {
    const seconds = Math.max(0, ms) / 1000;
    if (seconds < 60) return seconds.toFixed(0) + " s";
    return Math.floor(seconds / 60) + " min " + String(Math.floor(seconds % 60)).padStart(2, "0") + " s";
  }

  function tick() {
    document.querySelectorAll("time[data-ago]").forEach(function (item) {
      const words = ago(Date.parse(item.dateTime));
      if (words && item.textContent !== words) item.textContent = words;
    });
    document.querySelectorAll("[data-since]").forEach(function (item) {
      item.textContent = span(Date.now() - Date.parse(item.dataset.since));
    });
  }

  document.addEventListener("click", function (event) {
    const target = event.target.closest("[data-theme-toggle], [data-copy-button], [data-print], [data-drawer-close]");
    document.querySelectorAll("details.menu[open]").forEach(function (menu) {
      if (!menu.contains(event.target)) menu.open = false;
    });
    if (!target) return;
    if (target.matches("[data-theme-toggle]")) toggleTheme();
    else if (target.matches("[data-copy-button]")) copy(target);
    else if (target.matches("[data-print]")) print();
    else if (target.matches("[data-drawer-close]")) target.closest("dialog").close();
  });
  document.addEventListener("keydown", function (event) {
    if (event.key !== "Escape") return;
    document.querySelectorAll("details.menu[open]").forEach(function (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  });
  document.addEventListener("change", function (event) {
    if (event.target.matches("[data-autosubmit]")) event.target.form.requestSubmit();
  });
  document.addEventListener("htmx:afterSwap", function () {
    reveal(document);
    tick();
  });
  document.addEventListener("htmx:oobAfterSwap", function () {
    reveal(document);
    tick();
  });
  reveal(document);
  tick();
  setInterval(tick, 1000);
  const error = document.getElementById("launch-error");
  if (error) error.focus();
})();
