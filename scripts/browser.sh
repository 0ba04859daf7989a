# Sourced before the tests of the dashboard in a browser: Chromium, and Node to speak to it, in Debian's packages. Where
# they are not and cannot be had, that is said aloud; the tests then skip it. HATEBEAM_CHROMIUM names another Chromium.

absent=()
[ -n "${HATEBEAM_CHROMIUM:-}" ] || command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
    command -v google-chrome >/dev/null || absent+=(chromium)
command -v node >/dev/null || command -v nodejs >/dev/null || absent+=(nodejs)
if [ ${#absent[@]} -gt 0 ]; then
    (install_packages "${absent[@]}") || echo "skipped: the dashboard in a browser (no ${absent[*]})"
fi
