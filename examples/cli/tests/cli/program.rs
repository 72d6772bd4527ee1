//! The program in a folder of its own, with an empty configuration.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::fake::{FakeReply, FakeServer, ReceivedRequest};

/// A folder in which the program runs, and its configuration.
pub(crate) struct Program {
    folder: tempfile::TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Checks the exit code and returns the result.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }

    /// Returns standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Program {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    /// Returns the path of a file in the present folder of the program.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// Writes a file in the present folder of the program.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Returns the folder of the program's configuration.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("config/core-cli")
    }

    /// Returns the command with these arguments. The environment of the test is not inherited.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_core-cli"));
        command
            .args(arguments)
            .current_dir(self.path("."))
            .env_clear()
            .env("HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs the program with an API key of the platform `p-1` at a server.
    pub(crate) fn run_at(&self, server: &FakeServer, arguments: &[&str]) -> Run {
        self.at(server, arguments).output().unwrap().into()
    }

    /// Runs the program as [`Program::run_at`], with an input.
    pub(crate) fn run_with_input(
        &self,
        server: &FakeServer,
        arguments: &[&str],
        input: &str,
    ) -> Run {
        let mut child = self
            .at(server, arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let written = child.stdin.take().unwrap().write_all(input.as_bytes());
        // A program that refuses its command line ends without reading the input.
        if let Err(error) = written {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        }
        child.wait_with_output().unwrap().into()
    }

    /// Starts the program.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    fn at(&self, server: &FakeServer, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command
            .env("CORE_TOKEN", "core_key")
            .env("CORE_API_URL", &server.url)
            .env("CORE_PLATFORM", PLATFORM);
        command
    }

    /// Stores tokens that expire at a time in Unix seconds.
    pub(crate) fn sign_in(&self, server: &FakeServer, expires_at: u64) {
        let tokens = json!({
            "api_url": server.url, "iam_url": server.url,
            "access_token": "cat_1", "refresh_token": "crt_1", "expires_at": expires_at,
        });
        let folder = self.config().join("tokens");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("default.json"), tokens.to_string()).unwrap();
    }

    /// Returns the stored tokens; `None` if there are none.
    pub(crate) fn tokens(&self) -> Option<Value> {
        let text = fs::read_to_string(self.config().join("tokens/default.json")).ok()?;
        Some(serde_json::from_str(&text).unwrap())
    }
}

/// The platform of the tests.
pub(crate) const PLATFORM: &str = "019a5b1e-7c20-7d3e-9b4a-5f6c7d8e9f01";

/// A time that no test reaches.
pub(crate) const FAR: u64 = 9_999_999_999;

/// Returns the method and the path of a request, with `P` for the platform and without the query string.
pub(crate) fn route(request: &ReceivedRequest) -> String {
    let path = request.target.split('?').next().unwrap();
    format!("{} {}", request.method, path.replace(PLATFORM, "P"))
}

/// Returns the routes of all requests to a server.
pub(crate) fn routes(server: &FakeServer) -> Vec<String> {
    server.requests().iter().map(route).collect()
}

/// The response of `whoami`.
pub(crate) fn whoami() -> FakeReply {
    FakeReply::json(
        200,
        &json!({
            "email": "ada@example.org", "platformId": PLATFORM, "role": "owner", "expiresAt": "2026-01-15T09:30:00.000Z",
        }),
    )
}

/// A list of platforms with these slugs. The first has the id of the tests' platform.
pub(crate) fn platforms(slugs: &[&str]) -> FakeReply {
    let platform = |(at, slug): (usize, &&str)| {
        json!({
            "id": if at == 0 { PLATFORM.to_owned() } else { format!("p-{at}") }, "slug": slug, "name": slug,
            "status": "active", "tier": "starter", "suspensionReason": null, "createdAt": "2026-01-15T09:30:00.000Z",
        })
    };
    let data: Vec<_> = slugs.iter().enumerate().map(platform).collect();
    let total = data.len();
    FakeReply::json(
        200,
        &json!({ "data": data, "pagination": { "hasMore": false, "nextCursor": null, "total": total } }),
    )
}

/// Returns the lock of a program's tokens, held by this process.
pub(crate) fn lock_tokens(config: &Path) -> fs::File {
    let path = config.join("tokens/default.lock");
    let file = fs::File::create(path).unwrap();
    file.lock().unwrap();
    file
}
