//! What a process uses, from `/proc`, and the cores it runs on. Zero where there is no `/proc`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// The kernel counts processor time for `/proc` in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// The processor time a process has used, in user and kernel mode, all threads.
pub(crate) fn time_of(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The second field is the program's name in brackets, which may contain spaces.
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return Duration::ZERO;
    };
    let (user, kernel) = (11, 12);
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok());
    TICK * (ticks(user).unwrap_or(0) + ticks(kernel).unwrap_or(0))
}

/// The number of cores, once processes are bound to them.
static BOUND: OnceLock<usize> = OnceLock::new();

/// The cores a process may use. The measured server and its clients do not take each other's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    Server,
    Client,
    All,
}

impl Cores {
    /// Keeps this process, a client, to its core; from now on children are kept to theirs. Nothing is bound on a machine
    /// with one core, or without `taskset`.
    pub(crate) fn bind_this_process() {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let process = std::process::id().to_string();
        let mut bind = Command::new("taskset");
        bind.args(["-a", "-p", "-c", &Self::Client.list(count), &process]);
        let bound = bind.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if count > 1 && bound.is_ok_and(|status| status.success()) {
            BOUND.get_or_init(|| count);
        }
    }

    /// As `taskset` reads it.
    fn list(self, count: usize) -> String {
        match self {
            Self::Server => "0".to_owned(),
            Self::Client => format!("{}", count - 1),
            Self::All => format!("0-{}", count - 1),
        }
    }

    /// A command that runs the program on these cores.
    pub(crate) fn command(self, program: &Path) -> Command {
        let Some(count) = BOUND.get() else {
            return Command::new(program);
        };
        let mut command = Command::new("taskset");
        command.args(["-c", &self.list(*count)]).arg(program);
        command
    }
}
