# Sourced before the tests that need several hosts. The hosts are network namespaces: `ip` creates them, `tc` makes their
# links slow, and `nft` makes the links lossy. Prints a message for everything that this machine lacks or forbids; the
# tests then skip it.

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
        echo "skipped: tests with several hosts (this machine does not allow network namespaces)"
    fi
fi
