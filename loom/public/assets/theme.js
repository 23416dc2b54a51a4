// Applies the theme that was chosen in Settings before anything is drawn; without one the page follows the system.
try {
  const theme = localStorage.getItem("loom.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // The browser keeps nothing: the page follows the system.
}
