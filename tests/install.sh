# Functions that install missing programs on a Debian-like machine. To be sourced by the scripts of this folder.

say() { printf '\n== %s\n' "$*"; }
die() { printf '%s: %s\n' "$0" "$*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo -n "$@"; else die "cannot install: run as root, or install by hand: $*"; fi
}

# Reports whether packages of the system may be installed. CI and --install say yes; in a terminal a person is asked.
may_install() {
    if [ -n "${CI:-}" ] || [ "${INSTALL:-}" = yes ]; then return 0; fi
    [ -t 0 ] || return 1
    local reply
    read -r -p "Install $* with apt-get? [y/N] " reply
    [[ $reply == [yY]* ]]
}

apt_updated=
install() { # arguments: a description of the missing program, then the names of its Debian packages
    local why=$1
    shift
    command -v apt-get >/dev/null || die "$why is missing and there is no apt-get; install: $*"
    may_install "$@" || die "$why is missing. Install it (apt-get install $*), or run tests/run --install"
    say "installing $* ($why)"
    if [ -z "$apt_updated" ]; then as_root apt-get update -qq; apt_updated=1; fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Installs packages of npm in a subfolder of the target folder, where they are kept between runs. Sets $modules to it. The
# scripts name exact versions, so that no lock file is needed.
npm_packages() { # arguments: what the packages are for, the subfolder, then options of npm and the packages as NAME@VERSION
    local why=$1 folder=${CARGO_TARGET_DIR:-target}/$2
    shift 2
    command -v npm >/dev/null || install "npm, which installs $why" nodejs npm
    mkdir -p "$folder"
    modules=$(cd "$folder" && pwd)
    if [ "$(cat "$modules/installed" 2>/dev/null || true)" = "$*" ]; then return; fi
    say "installing $why"
    rm -f "$modules/installed"
    echo '{ "private": true }' >"$modules/package.json"
    (cd "$modules" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm install --no-save --no-package-lock --no-audit --no-fund --silent "$@") ||
        die "npm could not install $why"
    echo "$*" >"$modules/installed"
}

# Installs packages of Python in a subfolder of the target folder, where they are kept between runs. Sets $python_modules to it.
python_packages() { # arguments: what the packages are for, the subfolder, then the packages as NAME==VERSION
    local why=$1 folder=${CARGO_TARGET_DIR:-target}/$2
    shift 2
    python3 -m pip --version >/dev/null 2>&1 || install "pip, which installs $why" python3-pip
    mkdir -p "$folder"
    python_modules=$(cd "$folder" && pwd)
    if [ "$(cat "$python_modules/installed" 2>/dev/null || true)" = "$*" ]; then return; fi
    say "installing $why"
    rm -f "$python_modules/installed"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --upgrade --target "$python_modules" "$@" ||
        die "pip could not install $why"
    echo "$*" >"$python_modules/installed"
}
