//! A Redis server in a process of its own, for tests.

use std::io::{self, BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The ports that are tried. They are below the range that systems use for outgoing connections, so that a port stays
/// free while its server is stopped.
const FIRST_PORT: u32 = 20_000;
const PORTS: u32 = 12_000;

/// The number of ports that are tried.
const MAX_TRIES: u32 = 50;

/// The line of the log that tells that the server accepts connections.
const READY: &str = "Ready to accept connections";

/// A server on a free port of the loopback address. It stores nothing on disk. It ends when this value is dropped, and
/// when this process ends, however that happens.
#[derive(Debug)]
pub struct RedisServer {
    port: u32,
    options: Vec<String>,
    /// A shell that runs the server until its standard input is closed. `None` while the server is stopped.
    shell: Mutex<Option<Child>>,
}

impl RedisServer {
    /// Starts a server with additional options of the command line. `{port}` in them is replaced by the port.
    ///
    /// # Errors
    /// If `redis-server` is not installed, or no port is free.
    pub async fn start(options: &[&str]) -> io::Result<Self> {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        blocking(move || start_on_free_port(options)).await
    }

    /// Returns the port of the loopback address.
    #[must_use]
    pub fn port(&self) -> u32 {
        self.port
    }

    /// Returns the URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills the server, and waits until it has ended. All of its data is lost.
    ///
    /// # Errors
    /// The error of the operating system.
    pub async fn stop(&self) -> io::Result<()> {
        let shell = self.shell().take();
        blocking(move || shell.map_or(Ok(()), end)).await
    }

    /// Starts the server again on the same port, after [`RedisServer::stop`].
    ///
    /// # Errors
    /// If the server does not start.
    pub async fn start_again(&self) -> io::Result<()> {
        let (port, options) = (self.port, self.options.clone());
        let shell = blocking(move || start(port, &options)).await?;
        let shell = shell.ok_or(io::ErrorKind::AddrInUse)?;
        *self.shell() = Some(shell);
        Ok(())
    }

    fn shell(&self) -> MutexGuard<'_, Option<Child>> {
        self.shell.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(shell) = self.shell().take() {
            // No caller is left to receive the error.
            let _ = end(shell);
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.map_err(io::Error::other)?
}

fn start_on_free_port(options: Vec<String>) -> io::Result<RedisServer> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..MAX_TRIES {
        // Processes that start at the same time have neighbouring ids.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = std::process::id().wrapping_mul(97).wrapping_add(number);
        let port = FIRST_PORT + offset % PORTS;
        if let Some(shell) = start(port, &options)? {
            return Ok(RedisServer {
                port,
                options,
                shell: Mutex::new(Some(shell)),
            });
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// Starts a server on a port. Returns when it accepts connections; `None` if the port is in use.
fn start(port: u32, options: &[String]) -> io::Result<Option<Child>> {
    let address = format!("127.0.0.1:{port}");
    if TcpListener::bind(&address).is_err() {
        return Ok(None);
    }
    let port = port.to_string();
    let mut command = Command::new("sh");
    // The shell waits until its standard input is closed, at the latest at the end of this process.
    command.args([
        "-c",
        "trap '' INT TERM HUP; redis-server \"$@\" & read _; kill -9 $!; wait $!",
        "sh",
    ]);
    command.args([
        "--bind",
        "127.0.0.1",
        "--port",
        &port,
        "--save",
        "",
        "--appendonly",
        "no",
    ]);
    command.args(options.iter().map(|option| option.replace("{port}", &port)));
    let mut shell = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = shell.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut lines = BufReader::new(output).lines();
    loop {
        match lines.next() {
            Some(Ok(line)) if line.contains(READY) => break,
            Some(Ok(line)) if line.contains("bind: ") => {
                end(shell)?;
                return Ok(None);
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error),
            None => return Err(io::Error::other("redis-server has ended; is it installed?")),
        }
    }
    // The server blocks if its output is not read.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(Some(shell))
}

/// Ends the server of a shell, and waits for it.
fn end(mut shell: Child) -> io::Result<()> {
    drop(shell.stdin.take());
    shell.wait().map(drop)
}
