//! HTTP/1.1 over plain sockets. The client is as cheap as possible, so that mainly the server is measured.

use std::io::{Read, Write};
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Returns the bytes of a request.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: bench.test\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The parsed start of a response.
struct Head {
    status: u16,
    /// The length of head and body, in bytes.
    length: usize,
    body_at: usize,
}

/// Parses the head of a response; `None` if it is not complete yet.
fn head(bytes: &[u8]) -> Option<Head> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&bytes[..end]).unwrap();
    let status = text.get(9..12).and_then(|status| status.parse().ok());
    let name = "content-length:";
    let length = text.split("\r\n").find_map(|line| {
        let value = line.get(name.len()..)?;
        let fits = line[..name.len()].eq_ignore_ascii_case(name);
        fits.then(|| value.trim().parse::<usize>().unwrap())
    });
    let body_at = end + 4;
    Some(Head {
        status: status.unwrap(),
        length: body_at + length.unwrap_or(0),
        body_at,
    })
}

/// A keep-alive connection.
#[derive(Debug)]
pub(crate) struct Connection {
    address: SocketAddr,
    stream: TcpStream,
    /// True if the response to the last request is missing. Later bytes could be mistaken for another response.
    is_broken: bool,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self {
            address,
            stream: connect(address).await?,
            is_broken: false,
            buffer: Vec::with_capacity(64 * 1024),
        })
    }

    /// Sends a request. Returns the status and body of the response. A broken connection is reopened first.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> std::io::Result<(u16, &[u8])> {
        if self.is_broken {
            self.stream = connect(self.address).await?;
        }
        self.is_broken = true;
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(head) = head(&self.buffer)
                && self.buffer.len() >= head.length
            {
                self.is_broken = false;
                return Ok((head.status, &self.buffer[head.body_at..head.length]));
            }
        }
    }
}

async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The response to a call that is not measured.
#[derive(Debug)]
pub(crate) struct Reply {
    head: String,
    pub(crate) json: Value,
}

impl Reply {
    pub(crate) fn text(&self, field: &str) -> String {
        self.json[field].as_str().unwrap().to_owned()
    }

    /// Returns the first cookie that the response sets, as a client sends it back.
    pub(crate) fn cookie(&self) -> String {
        let lines = self.head.lines();
        let cookie = lines.filter_map(|line| line.split_once(": "));
        let mut cookies = cookie.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        let (_, cookie) = cookies.next().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }
}

/// Sends a request over a new connection. Panics unless the response is a success.
pub(crate) fn call(address: SocketAddr, request: &[u8]) -> Reply {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = stream.read(&mut part).unwrap();
        bytes.extend_from_slice(&part[..count]);
        let Some(head) = head(&bytes) else {
            assert!(count > 0, "the server closed the connection");
            continue;
        };
        if bytes.len() < head.length {
            continue;
        }
        let text = String::from_utf8_lossy(&bytes);
        assert!((200..300).contains(&head.status), "{text}");
        return Reply {
            head: text[..head.body_at].to_owned(),
            json: serde_json::from_slice(&bytes[head.body_at..]).unwrap_or_default(),
        };
    }
}
