# Source this file before the tests with several hosts. The hosts are network namespaces: `ip` creates them, `tc` slows
# their links down, and `nft` drops packets. If this machine lacks or forbids one of these tools, the script prints a
# message, and the tests that need it are skipped.

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
