//! The fake as a program: `core-stripe-fake [port]`. Its secret key is `sk_test_fake`, and the secret of its webhooks is
//! `whsec_fake`. Its clock shows the time of this machine.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use core_stripe_fake::{FakeStripe, Settings};

/// The default port.
const PORT: u16 = 14021;

#[tokio::main]
async fn main() -> io::Result<()> {
    let port = match std::env::args().nth(1) {
        Some(text) => text.parse().map_err(io::Error::other)?,
        None => PORT,
    };
    let settings = Settings {
        port,
        now: now()?,
        runs: true,
        ..Settings::default()
    };
    let fake = FakeStripe::start_with(settings).await?;
    writeln!(io::stdout(), "{}", fake.base_url())?;
    tokio::signal::ctrl_c().await
}

#[expect(
    clippy::disallowed_methods,
    reason = "official clients compare the signatures of webhooks with the clock of this machine"
)]
fn now() -> io::Result<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_err(io::Error::other)?.as_secs();
    i64::try_from(seconds).map_err(io::Error::other)
}
