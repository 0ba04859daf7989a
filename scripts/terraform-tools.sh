# Sourced, or run, before the tests of terraform/: finds Terraform, a mirror with its provider for AWS, and checkov,
# which is installed outside the checkout, where HATEBEAM_TOOLS says. It sets HATEBEAM_TERRAFORM,
# HATEBEAM_TERRAFORM_PLUGINS and HATEBEAM_CHECKOV. What it cannot get it says aloud; the tests then skip it.

terraform_tools=${HATEBEAM_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/hatebeam/tools}
terraform_checkov_version=3.3
terraform_provider=registry.terraform.io/hashicorp/aws

# The provider is too large to be fetched for a test: it is used where it lies. The first three are where Terraform
# itself looks; the rest is what people set up beside it.
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

# In a Python environment of its own.
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
