# Sourced before the tests that need several hosts: network namespaces, with `ip` to make them, `tc` for slow
# and `nft` for lossy cables. What this machine does not have or does not allow is said aloud; the tests then
# skip it.

if [ "$(id -u)" -ne 0 ]; then
    echo "skipped: tests with several hosts (network namespaces need root)"
else
    absent=()
    command -v ip >/dev/null || absent+=(iproute2)
    command -v nft >/dev/null || absent+=(nftables)
    if [ ${#absent[@]} -gt 0 ]; then
        (install_packages "${absent[@]}") || echo "skipped: some tests with several hosts (no ${absent[*]})"
    fi
    if ip netns add hatebeam-probe 2>/dev/null; then
        ip netns del hatebeam-probe
    else
        echo "skipped: tests with several hosts (this machine allows no network namespaces)"
    fi
fi
