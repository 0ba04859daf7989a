# ./run and ./test source this file. It looks for the programs that both scripts need, and installs missing ones. If it
# cannot install a program, it prints the command that installs the program, and exits.

need_rust="1.89"

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}

# Installs Debian packages if the user is root. Otherwise prints the command that installs them, and exits with an
# error.
install_packages() {
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        echo "Installing Debian packages: $*"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
    else
        fail "missing: $*. Type: sudo apt-get install $*"
    fi
}

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
# RocksDB is written in C++, and libclang is needed to generate its Rust bindings.
if [ -n "${needs_rocksdb-yes}" ]; then
    command -v c++ >/dev/null || missing+=(g++)
    # The patterns do not match libclang-cpp, which is a different library in a separate Debian package.
    [ -n "${LIBCLANG_PATH:-}" ] ||
        compgen -G '/usr/lib/llvm*/lib/libclang.so*' >/dev/null ||
        compgen -G '/usr/lib/llvm*/lib/libclang-[0-9]*.so*' >/dev/null ||
        ldconfig -p 2>/dev/null | grep -E 'libclang(-[0-9.]+)?\.so' >/dev/null ||
        missing+=(libclang-dev)
fi
[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
command -v cargo >/dev/null ||
    fail "no cargo. Install Rust $need_rust or later: https://rustup.rs, or Debian's rustup package"

have_rust=$(rustc --version | cut -d' ' -f2)
oldest=$(printf '%s\n%s\n' "$need_rust" "$have_rust" | sort -V | head -n 1)
[ "$oldest" = "$need_rust" ] ||
    fail "Rust $have_rust is too old, $need_rust is needed. Type: rustup update stable"

# Cargo compares only file times, so in a target directory that clones share it takes what another clone compiled for up to
# date, although the sources differ and compiled tests contain the path of their clone. New file times make it compile again.
if [ -n "${CARGO_TARGET_DIR:-}" ] && [ "$(cat "$CARGO_TARGET_DIR/checkout" 2>/dev/null)" != "$PWD" ]; then
    mkdir -p "$CARGO_TARGET_DIR"
    if find . -path ./target -prune -o -name '*.rs' -exec touch {} +; then
        echo "$PWD" >"$CARGO_TARGET_DIR/checkout"
    else
        echo "warning: cannot change file times; if another clone uses $CARGO_TARGET_DIR, unset CARGO_TARGET_DIR" >&2
    fi
fi
