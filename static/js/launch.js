// The file drop: names and sizes of what was chosen, and dropping onto the page. The form works without it.
(function () {
  "use strict";

  function size(bytes) {
    for (const unit of ["B", "kB", "MB"]) {
      if (bytes < 1000) return bytes.toFixed(unit === "B" ? 0 : 1) + " " + unit;
      bytes /= 1000;
    }
    return bytes.toFixed(1) + " GB";
  }

  function list(drop) {
    const files = drop.querySelector("input[type=file]").files;
    const out = drop.querySelector("[data-drop-list]");
    out.replaceChildren();
    for (const file of files) {
      const item = document.createElement("li");
      const name = document.createElement("span");
      const bytes = document.createElement("span");
      name.textContent = file.name;
      bytes.textContent = size(file.size);
      bytes.className = "faint num";
      item.append(name, bytes);
      out.append(item);
    }
  }

  document.querySelectorAll("[data-drop]").forEach(function (drop) {
    const input = drop.querySelector("input[type=file]");
    input.addEventListener("change", function () { list(drop); });
    ["dragenter", "dragover"].forEach(function (name) {
      drop.addEventListener(name, function () { drop.dataset.over = "1"; });
    });
    ["dragleave", "drop"].forEach(function (name) {
      drop.addEventListener(name, function () { delete drop.dataset.over; });
    });
    list(drop);
  });

  // Live validation sends neither keys nor files, only whether there are any.
  const form = document.getElementById("launch-form");
  if (form) {
    const kept = form.elements.has_files.value;
    form.addEventListener("htmx:configRequest", function (event) {
      if (event.target !== form) return;
      const kind = form.elements.model_kind.value;
      const key = kind === "endpoint" ? form.elements.endpoint_key : form.elements.litellm_key;
      event.detail.parameters.set("has_key", key && key.value ? "1" : "");
      event.detail.parameters.set("has_files", kept || form.elements.files.files.length ? "1" : "");
    });
  }

  // A file dragged anywhere over the page means "upload": show the panel that takes it.
  document.addEventListener("dragenter", function (event) {
    if (!event.dataTransfer || !Array.from(event.dataTransfer.types).includes("Files")) return;
    const radio = document.querySelector("[name=source][value=upload]");
    if (radio && !radio.checked) {
      radio.checked = true;
      radio.dispatchEvent(new Event("change", { bubbles: true }));
    }
  });

  document.addEventListener("keydown", function (event) {
    if (event.key === "Enter" && (event.metaKey || event.ctrlKey) && event.target.form && event.target.form.id === "launch-form") {
      event.target.form.requestSubmit();
    }
  });
})();
