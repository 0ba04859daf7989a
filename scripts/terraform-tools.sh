# Source or run this file before the tests of terraform/. It looks for Terraform, a mirror with the AWS provider, and
# checkov. It installs checkov, if it is missing, in the folder HATEBEAM_TOOLS outside the checkout. It sets
# HATEBEAM_TERRAFORM, HATEBEAM_TERRAFORM_PLUGINS and HATEBEAM_CHECKOV. If a tool is unavailable, it prints a message,
# and the tests skip the checks that need the tool.

terraform_tools=${HATEBEAM_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/hatebeam/tools}
terraform_checkov_version=3.3
terraform_provider=registry.terraform.io/hashicorp/aws

# Prints the folder of a mirror with the provider, which is too large to download for a test. Terraform itself searches
# the first three folders. Mirrors are also common under /opt.
terraform_find_plugins() {
    local folder
    for folder in "$HOME/.terraform.d/plugins" /usr/local/share/terraform/plugins /usr/share/terraform/plugins /opt/*; do
        if [ -d "$folder/$terraform_provider" ]; then
            echo "$folder"
            return
        fi
    done
    return 1
}

# Prints the path of checkov in PATH, or else in a separate Python environment, which it creates if necessary.
terraform_find_checkov() {
    local root=$terraform_tools/checkov-$terraform_checkov_version log=$terraform_tools/checkov.log
    if command -v checkov; then
        return
    fi
    if [ ! -e "$root/done" ]; then
        command -v python3 >/dev/null || return 1
        rm -rf "$root"
        if ! { mkdir -p "$terraform_tools" && python3 -m venv "$root" &&
            "$root/bin/pip" install "checkov==$terraform_checkov_version.*"; } >"$log" 2>&1; then
            tail -n 3 "$log" >&2
            return 1
        fi
        touch "$root/done"
    fi
    echo "$root/bin/checkov"
}

if [ -z "${HATEBEAM_TERRAFORM:-}" ]; then
    HATEBEAM_TERRAFORM=$(command -v terraform) || echo "skipped: the checks of terraform/ (no terraform)"
fi
if [ -n "$HATEBEAM_TERRAFORM" ] && [ -z "${HATEBEAM_TERRAFORM_PLUGINS:-}" ] && [ ! -f "${TF_CLI_CONFIG_FILE:-$HOME/.terraformrc}" ]; then
    HATEBEAM_TERRAFORM_PLUGINS=$(terraform_find_plugins) ||
        echo "skipped: the tests of terraform/ (no mirror with $terraform_provider)"
fi
if [ -z "${HATEBEAM_CHECKOV:-}" ]; then
    HATEBEAM_CHECKOV=$(terraform_find_checkov) || echo "skipped: the security check of terraform/ (no checkov)"
fi
export HATEBEAM_TERRAFORM HATEBEAM_TERRAFORM_PLUGINS HATEBEAM_CHECKOV
