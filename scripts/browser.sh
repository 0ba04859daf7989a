# Sourced before the dashboard's browser tests. Finds Chromium, and Node to control it, or installs their Debian packages.
# If that fails, prints a message, and the tests skip the browser. HATEBEAM_CHROMIUM can name another Chromium.

absent=()
[ -n "${HATEBEAM_CHROMIUM:-}" ] || command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
    command -v google-chrome >/dev/null || absent+=(chromium)
command -v node >/dev/null || command -v nodejs >/dev/null || absent+=(nodejs)
if [ ${#absent[@]} -gt 0 ]; then
    (install_packages "${absent[@]}") || echo "skipped: the dashboard in a browser (no ${absent[*]})"
fi
