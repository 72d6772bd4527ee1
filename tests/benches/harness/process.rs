//! A child process: this program in another role, or a server. It is told to end by closing its standard input.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::cpu::Cores;

/// A running child; killed when dropped.
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

    /// What the child says on its next line that begins with this word, as JSON.
    pub(crate) fn says(&mut self, word: &str) -> Value {
        loop {
            let line = self.output.next();
            let line = line.unwrap_or_else(|| panic!("the child ended before it said {word}"));
            if let Some(json) = line.unwrap().strip_prefix(word) {
                return serde_json::from_str(json).unwrap();
            }
        }
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "a child ended with {status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says a word to the parent.
pub(crate) fn say(word: &str, what: &Value) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{word} {what}").unwrap();
    output.flush().unwrap();
}

/// Returns when the parent wants this process to end.
pub(crate) async fn asked_to_end() {
    let read = || std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    let _ = tokio::task::spawn_blocking(read).await;
}

/// The address in `http://127.0.0.1:8080`.
pub(crate) fn address(url: &Value) -> SocketAddr {
    let url = url.as_str().unwrap();
    url.strip_prefix("http://").unwrap().parse().unwrap()
}
