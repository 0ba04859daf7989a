# Source or run this file before the tests that need S3 servers. It looks for Garage, a real server, and for moto, a
# mock that supports conditional writes. It installs missing servers in the folder HATEBEAM_TOOLS outside the checkout,
# and sets HATEBEAM_GARAGE to the path of the program and HATEBEAM_MOTO to the path of a Python interpreter with moto. If
# a server is unavailable, it prints a message, and the tests skip the server.

s3_tools=${HATEBEAM_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/hatebeam/tools}
s3_garage_version=2.5.0
s3_moto_version=5.2

# Sets HATEBEAM_GARAGE. If necessary, compiles Garage from crates.io, without the features that need system libraries.
s3_find_garage() {
    local root=$s3_tools/garage-$s3_garage_version log=$s3_tools/garage.log
    if [ ! -x "$root/bin/garage" ]; then
        if [ "${HATEBEAM_COMPILE_GARAGE:-yes}" = no ]; then
            echo "skipped: the tests with Garage (not in $root, and HATEBEAM_COMPILE_GARAGE=no)"
            return
        fi
        if ! command -v cargo >/dev/null; then
            echo "skipped: the tests with Garage (no cargo to compile it)"
            return
        fi
        echo "Compiling Garage $s3_garage_version into $root: takes about ten minutes, only once"
        # Cargo installs the program in its last step, so an interrupted build leaves no incomplete program.
        if ! CARGO_TARGET_DIR=$root/build cargo install garage --version "$s3_garage_version" --locked \
            --no-default-features --features bundled-libs,sqlite --root "$root" >"$log" 2>&1; then
            tail -n 5 "$log"
            echo "skipped: the tests with Garage (it could not be compiled, see $log)"
            return
        fi
        rm -rf "$root/build"
    fi
    export HATEBEAM_GARAGE=$root/bin/garage
    echo "Garage: $HATEBEAM_GARAGE"
}

# Sets HATEBEAM_MOTO. If necessary, installs moto in a separate Python environment.
s3_find_moto() {
    local root=$s3_tools/moto-$s3_moto_version log=$s3_tools/moto.log
    if [ ! -e "$root/done" ]; then
        if ! command -v python3 >/dev/null; then
            echo "skipped: the tests with moto (no python3)"
            return
        fi
        echo "Installing moto $s3_moto_version into $root"
        rm -rf "$root"
        if ! { python3 -m venv "$root" &&
            "$root/bin/pip" install "moto[s3,server]==$s3_moto_version.*"; } >"$log" 2>&1; then
            tail -n 5 "$log"
            echo "skipped: the tests with moto (it could not be installed, see $log)"
            return
        fi
        touch "$root/done"
    fi
    export HATEBEAM_MOTO=$root/bin/python3
    echo "moto: $HATEBEAM_MOTO"
}

if mkdir -p "$s3_tools"; then
    [ -n "${HATEBEAM_GARAGE:-}" ] || s3_find_garage
    [ -n "${HATEBEAM_MOTO:-}" ] || s3_find_moto
else
    echo "skipped: the tests with S3 servers (cannot write to $s3_tools)"
fi
