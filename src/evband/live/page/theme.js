"use strict";
// Before anything is painted: the theme that was chosen here, if one was.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("evband.theme"); } catch { /* storage is switched off */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
