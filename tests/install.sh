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
