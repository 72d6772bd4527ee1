//! A server under a service manager: sockets that it inherits, and the notices that it sends.

use std::time::Duration;

use tokio::net::UnixDatagram;
use tokio::time::timeout;

use crate::world::{Call, Installation, SERVICE_KEY, Server};

/// Maximum time for a notice. A test that reaches it fails.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(20);

/// A Python program that opens the sockets of a server, as systemd does, and becomes the server.
const OPENS_SOCKETS: &str = r#"
import os, socket, sys
def open_all(base):
    opened = []
    for offset in (0, 1, 2, 3, 4, 5, 6, 9, 10):
        own = socket.socket()
        own.bind(("127.0.0.1", base + offset))
        own.listen()
        opened.append(own)
    return opened
for base in range(21000, 60000, 16):
    try:
        opened = open_all(base)
        break
    except OSError:
        pass
for at, own in enumerate(opened):
    os.dup2(own.fileno(), 100 + at)
for at in range(len(opened)):
    os.dup2(100 + at, 3 + at, inheritable=True)
os.environ.update(LISTEN_FDS=str(len(opened)), LISTEN_PID=str(os.getpid()))
arguments = sys.argv[1:]
arguments[arguments.index("--base-port") + 1] = str(base)
os.execv(arguments[0], arguments)
"#;

async fn next_notice(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 256];
    let received = timeout(NOTICE_TIMEOUT, socket.recv(&mut bytes)).await;
    String::from_utf8(bytes[..received.unwrap().unwrap()].to_vec()).unwrap()
}

#[tokio::test]
async fn a_server_uses_the_sockets_that_its_service_manager_has_opened() {
    let folder = tempfile::tempdir().unwrap();
    let environment = [("AUTH_API_KEY", SERVICE_KEY.to_owned())];
    let launcher = ["python3", "-c", OPENS_SOCKETS];
    let arguments = ["--database-url", "memory:"];
    let server = Server::start_under(&launcher, folder.path(), &arguments, &environment).await;
    let ports = ["gateway", "iam", "sites"].map(|name| {
        let url = server.url(name);
        url.rsplit_once(':').unwrap().1.parse::<u16>().unwrap()
    });
    // The launcher holds these ports, so the server cannot have bound them itself.
    assert!(ports[0] >= 21_000 && ports[1] == ports[0] + 1 && ports[2] == ports[0] + 10);
    let list = Call::get("/api/v1/platforms").bearer(SERVICE_KEY);
    let _ = server.send("gateway", list).await.expect(200);
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn a_server_notifies_its_service_manager_when_it_is_starting_ready_alive_and_stopping() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let environment = [
        ("AUTH_API_KEY", SERVICE_KEY.to_owned()),
        ("NOTIFY_SOCKET", path.display().to_string()),
        ("WATCHDOG_USEC", "600000".to_owned()),
    ];
    let data = folder.path().join("data");
    let server = Server::start_with(&data, &[], &environment).await;
    let mut notice = next_notice(&socket).await;
    assert_eq!(notice.trim(), "EXTEND_TIMEOUT_USEC=30000000");
    while notice.trim() == "EXTEND_TIMEOUT_USEC=30000000" {
        notice = next_notice(&socket).await;
    }
    assert_eq!(notice.trim(), "READY=1");
    for _ in 0..3 {
        assert_eq!(next_notice(&socket).await.trim(), "WATCHDOG=1");
    }
    server.signal("TERM").await;
    let mut notice = next_notice(&socket).await;
    while notice.trim() == "WATCHDOG=1" {
        notice = next_notice(&socket).await;
    }
    assert_eq!(notice.trim(), "STOPPING=1");
    assert!(server.wait_for_exit().await.success());
}
