// Ticked runs stay ticked while the list renews itself, and the button says how many there are.
(function () {
  "use strict";
  const form = document.getElementById("compare");
  if (!form) return;
  const button = form.querySelector("button");
  const most = Number(form.dataset.most);
  const picked = new Set();

  function boxes() {
    return document.querySelectorAll('input[name="run"][form="compare"]');
  }

  function show() {
    boxes().forEach(function (box) {
      box.checked = picked.has(box.value);
      box.disabled = !box.checked && picked.size >= most;
    });
    button.disabled = picked.size < 2;
    button.querySelector("[data-picked]").textContent = picked.size ? " " + picked.size : "";
  }

  boxes().forEach(function (box) {
    if (box.checked) picked.add(box.value);
  });
  document.addEventListener("change", function (event) {
    if (!event.target.matches('input[name="run"][form="compare"]')) return;
    if (event.target.checked) picked.add(event.target.value);
    else picked.delete(event.target.value);
    show();
  });
  document.addEventListener("htmx:afterSwap", show);
  form.addEventListener("submit", function (event) {
    // Those on another page of the list are picked too.
    const there = new Set(Array.from(boxes(), (box) => box.value));
    form.querySelectorAll("input[type=hidden]").forEach((field) => field.remove());
    picked.forEach(function (value) {
      if (there.has(value)) return;
      const field = document.createElement("input");
      field.type = "hidden";
      field.name = "run";
      field.value = value;
      form.append(field);
    });
    if (picked.size < 2) event.preventDefault();
  });
  show();
})();
