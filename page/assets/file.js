// Shows instructions if the page is opened as a file. Browsers load neither modules nor WebAssembly from files.
if (location.protocol === "file:") {
  document.getElementById("loading").textContent =
    "Browsers do not run this page from a file. Serve its folder, for example with “python3 -m http.server”, and open http://localhost:8000/.";
}
