# Functions that start a temporary PostgreSQL server. To be sourced by the scripts of this folder, after install.sh and port.sh.

postgres_bin() {
    for candidate in "$(command -v initdb 2>/dev/null || true)" $(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sort -rV); do
        candidate=$(readlink -f "$candidate" 2>/dev/null || true)
        if [ -n "$candidate" ] && [ -x "$(dirname "$candidate")/postgres" ]; then dirname "$candidate"; return; fi
    done
}

install_postgres() { # sets pg_bin
    pg_bin=$(postgres_bin)
    if [ -z "$pg_bin" ]; then
        install "the PostgreSQL server" postgresql
        pg_bin=$(postgres_bin)
        [ -n "$pg_bin" ] || die "PostgreSQL was installed but its programs were not found"
    fi
}

# PostgreSQL refuses to run as root.
as_postgres() {
    if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

start_on() { # argument: a port
    as_postgres "$pg_bin/pg_ctl" -D "$pg_data" -w -t 60 -l "$pg_data/log" \
        -o "-h 127.0.0.1 -p $1 -k $pg_data -c fsync=off -c max_connections=200 -c max_prepared_transactions=64" start >/dev/null
}

start_postgres() { # uses the folder $work; sets CORE_TEST_POSTGRES_URL
    say "starting a temporary PostgreSQL server"
    local port
    pg_data=$work/postgres
    mkdir "$pg_data"
    if [ "$(id -u)" = 0 ]; then
        id postgres >/dev/null 2>&1 || useradd --system --no-create-home --shell /bin/false postgres
        chown postgres "$pg_data"
    fi
    as_postgres "$pg_bin/initdb" -D "$pg_data" -U core -A trust -E UTF8 --locale=C >"$work/initdb.log" 2>&1 || { cat "$work/initdb.log"; die "initdb failed"; }
    for _ in $(seq 20); do
        port=$(any_port)
        rm -f "$pg_data/log"
        if start_on "$port" 2>"$work/pg_ctl.log"; then
            export CORE_TEST_POSTGRES_URL="postgres://core@127.0.0.1:$port/postgres"
            return
        fi
        # Only the server can detect that its port is in use; other errors are final.
        grep -q "Address already in use" "$pg_data/log" || break
    done
    cat "$work/pg_ctl.log" "$pg_data/log" || true
    die "PostgreSQL did not start"
}

stop_postgres() {
    if [ -f "${pg_data:-}/postmaster.pid" ]; then as_postgres "$pg_bin/pg_ctl" -D "$pg_data" -m immediate stop >/dev/null 2>&1 || true; fi
}
