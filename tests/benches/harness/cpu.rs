//! The resource use of a process, read from `/proc`, and the cores that it runs on. Values are zero without `/proc`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// The unit of processor times in `/proc`: a hundredth of a second.
const TICK: Duration = Duration::from_millis(10);

/// Returns the processor time that a process has used, in user and kernel mode, of all threads.
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

/// The number of cores; set once processes are bound to them.
static BOUND: OnceLock<usize> = OnceLock::new();

/// The cores that a process may use. The measured server and its clients use different cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    Server,
    Client,
    All,
}

impl Cores {
    /// Binds this process, a client, to its core. Child processes started from now on are bound to their cores. Nothing
    /// is bound on a machine with one core, or without `taskset`.
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

    /// Returns the list of cores in the syntax of `taskset`.
    fn list(self, count: usize) -> String {
        match self {
            Self::Server => "0".to_owned(),
            Self::Client => format!("{}", count - 1),
            Self::All => format!("0-{}", count - 1),
        }
    }

    /// Returns a command that runs the program on these cores.
    pub(crate) fn command(self, program: &Path) -> Command {
        let Some(count) = BOUND.get() else {
            return Command::new(program);
        };
        let mut command = Command::new("taskset");
        command.args(["-c", &self.list(*count)]).arg(program);
        command
    }
}
