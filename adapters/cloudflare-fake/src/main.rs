//! The fake as a program: `core-cloudflare-fake [port]`. Its API token is `fake-api-token`.

use std::io::{self, Write};

use core_cloudflare_fake::{FakeCloudflare, Settings};

/// The default port.
const PORT: u16 = 14020;

#[tokio::main]
async fn main() -> io::Result<()> {
    let port = match std::env::args().nth(1) {
        Some(text) => text.parse().map_err(io::Error::other)?,
        None => PORT,
    };
    let settings = Settings {
        port,
        ..Settings::default()
    };
    let fake = FakeCloudflare::start_with(settings).await?;
    writeln!(io::stdout(), "{}", fake.base_url())?;
    tokio::signal::ctrl_c().await
}
