//! The fake as a program: `core-stripe-fake [port] [time]`. Its secret key is `sk_test_fake`, and the secret of its
//! webhooks is `whsec_fake`. Its clock runs from the given time in Unix seconds. Default: 2026-11-01.

use std::io::{self, Write};

use core_stripe_fake::{FakeStripe, Settings};

/// The default port.
const PORT: u16 = 14021;

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut settings = Settings {
        port: PORT,
        runs: true,
        ..Settings::default()
    };
    let mut arguments = std::env::args().skip(1);
    if let Some(port) = arguments.next() {
        settings.port = port.parse().map_err(io::Error::other)?;
    }
    if let Some(time) = arguments.next() {
        settings.now = time.parse().map_err(io::Error::other)?;
    }
    let fake = FakeStripe::start_with(settings).await?;
    writeln!(io::stdout(), "{}", fake.base_url())?;
    tokio::signal::ctrl_c().await
}
