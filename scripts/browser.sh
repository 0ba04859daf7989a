# Source this file before the dashboard's browser tests. It looks for Chromium and for Node, which controls Chromium,
# and installs the Debian packages of missing programs. If that fails, it prints a message, and the tests skip the
# browser. HATEBEAM_CHROMIUM can contain the path of another Chromium.

absent=()
[ -n "${HATEBEAM_CHROMIUM:-}" ] || command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
    command -v google-chrome >/dev/null || absent+=(chromium)
command -v node >/dev/null || command -v nodejs >/dev/null || absent+=(nodejs)
if [ ${#absent[@]} -gt 0 ]; then
    (install_packages "${absent[@]}") || echo "skipped: tests of the dashboard in a browser (no ${absent[*]})"
fi
