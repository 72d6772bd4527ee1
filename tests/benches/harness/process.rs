//! A child process: this program in another role, or a server. Closing its standard input asks it to end.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::cpu::Cores;

/// A running child process. It is killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts this program in another role.
    pub(crate) fn in_role(role: &str, config: &Value, cores: Cores) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = cores.command(&program);
        command.args(["--role", role, "--config", &config.to_string()]);
        Self::start(command)
    }

    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, output }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the child's next line that begins with this word. Returns the JSON after the word.
    pub(crate) fn wait_for(&mut self, word: &str) -> Value {
        loop {
            let line = self.output.next();
            let line = line.unwrap_or_else(|| panic!("the child ended before it printed {word}"));
            if let Some(json) = line.unwrap().strip_prefix(word) {
                return serde_json::from_str(json).unwrap();
            }
        }
    }

    /// Asks the child to end, and waits until it has ended.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "a child ended with {status}");
    }
}

/// Returns the resident memory of a process in KiB. Zero without `/proc`.
pub(crate) fn resident_kib(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = kib.and_then(|kib| kib.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.trim().parse::<f64>().ok())
        .unwrap_or_default()
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Prints a word and a JSON value for the parent.
pub(crate) fn print_message(word: &str, what: &Value) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{word} {what}").unwrap();
    output.flush().unwrap();
}

/// Waits until the parent asks this process to end.
pub(crate) async fn wait_for_end() {
    let read = || std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    let _ = tokio::task::spawn_blocking(read).await;
}

/// Parses a URL such as `http://127.0.0.1:8080` into an address.
pub(crate) fn address(url: &Value) -> SocketAddr {
    let url = url.as_str().unwrap();
    url.strip_prefix("http://").unwrap().parse().unwrap()
}
