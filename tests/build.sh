# For scripts that use built programs: builds them as the tests do, so that nothing is compiled twice.

bin=${CARGO_TARGET_DIR:-target}/debug

build_workspace() { # builds every program into $bin
    cargo build --quiet --workspace --all-features --all-targets --locked
}

build_server() { # builds core-server alone; with the example, which needs the dependencies of tests, their features are the same
    cargo build --quiet --workspace --all-features --bin core-server --example fault-node --locked
}
