//! Runs two nodes of Postgres under Patroni, one member of etcd, and HAProxy, from the files of a deployment.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};

use super::background::{Background, find_program, folder, free_port, give_away};
use super::server::find_binaries;
use super::start_or_panic;

/// The password of all roles.
const PASSWORD: &str = "sesame";
/// The number of nodes.
const NODES: usize = 2;
/// The time between two questions to a node.
const PAUSE: Duration = Duration::from_millis(50);
/// The maximum duration of a question to a node.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// A node of Postgres under Patroni.
#[derive(Debug)]
struct Node {
    /// The folder of its data.
    data: PathBuf,
    /// The file with the process id of Patroni.
    pid: PathBuf,
    port: u16,
    /// The port of Patroni's REST interface.
    rest_port: u16,
    _program: Background,
}

/// A cluster that runs until it is dropped or this process ends.
#[derive(Debug)]
pub struct PatroniCluster {
    nodes: Vec<Node>,
    /// The port on which HAProxy leads to the primary.
    primary_port: u16,
    _haproxy: Background,
    _etcd: Background,
}

impl PatroniCluster {
    /// Starts a cluster with the files `patroni.yml`, `create-database` and `haproxy.cfg` of a folder. Addresses and paths
    /// in them are replaced by those of this machine.
    ///
    /// # Panics
    /// If a program is missing or does not start. A missing program fails a test; it never skips the test.
    pub async fn start(deployment: &Path) -> Self {
        let deployment = deployment.to_owned();
        start_or_panic(move || start(&deployment)).await
    }

    /// Returns the URL of the database with all nodes as hosts.
    #[must_use]
    pub fn url(&self) -> String {
        let hosts = self.nodes.iter();
        let hosts: Vec<_> = hosts
            .map(|node| format!("127.0.0.1:{}", node.port))
            .collect();
        url(&hosts.join(","))
    }

    /// Returns the URL of the database on one node.
    #[must_use]
    pub fn url_of(&self, node: usize) -> String {
        url(&format!("127.0.0.1:{}", self.nodes[node].port))
    }

    /// Returns the URL of the primary's database through HAProxy.
    #[must_use]
    pub fn url_through_haproxy(&self) -> String {
        url(&format!("127.0.0.1:{}", self.primary_port))
    }

    /// Waits until a node has this role, which is a path of Patroni's REST interface. Returns the node.
    pub async fn wait_for(&self, role: &str) -> usize {
        let mut pauses = interval(PAUSE);
        loop {
            for (at, node) in self.nodes.iter().enumerate() {
                if node.has_role(role).await {
                    return at;
                }
            }
            pauses.tick().await;
        }
    }

    /// Ends Postgres and Patroni of a node like a crash of its machine (`kill -9`).
    ///
    /// # Panics
    /// If one of the processes is missing.
    pub async fn kill(&self, node: usize) {
        let node = &self.nodes[node];
        let (data, pid) = (node.data.clone(), node.pid.clone());
        start_or_panic(move || kill(&data, &pid)).await;
    }
}

impl Node {
    /// Asks Patroni whether the node has this role.
    async fn has_role(&self, role: &str) -> bool {
        let question = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.rest_port)).await?;
            let request = format!("GET /{role} HTTP/1.0\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        match timeout(ANSWER_TIMEOUT, question).await {
            Ok(Ok(answer)) => answer.lines().next().is_some_and(|l| l.contains(" 200 ")),
            _ => false,
        }
    }
}

fn url(hosts: &str) -> String {
    format!("postgres://core:{PASSWORD}@{hosts}/core")
}

fn start(deployment: &Path) -> Result<PatroniCluster, String> {
    let patroni = find_program("patroni", "patroni python3-etcd")?;
    let etcd = find_program("etcd", "etcd-server")?;
    let haproxy = find_program("haproxy", "haproxy")?;
    let binaries = find_binaries().ok_or("PostgreSQL was not found")?;
    let folder = folder("patroni")?;
    let (etcd, etcd_port) = start_etcd(&etcd, &folder)?;
    let file = patroni_file(deployment, &folder)?;
    let mut nodes = Vec::new();
    for number in 1..=NODES {
        let name = format!("db{number}");
        let node = start_node(
            &patroni,
            &binaries,
            &file,
            &folder.join(&name),
            &name,
            etcd_port,
        )?;
        nodes.push(node);
    }
    let (haproxy, primary_port) = start_haproxy(&haproxy, deployment, &folder, &nodes)?;
    Ok(PatroniCluster {
        nodes,
        primary_port,
        _haproxy: haproxy,
        _etcd: etcd,
    })
}

fn start_etcd(program: &Path, folder: &Path) -> Result<(Background, u16), String> {
    let (port, peer_port) = (free_port()?, free_port()?);
    let (client, peer) = (
        format!("http://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{peer_port}"),
    );
    let run = format!(
        "{} --data-dir {folder}/etcd --listen-client-urls {client} --advertise-client-urls {client} \
         --listen-peer-urls {peer} --initial-advertise-peer-urls {peer} --initial-cluster default={peer} \
         2>{folder}/etcd.log",
        program.display(),
        folder = folder.display(),
    );
    // It is dropped last.
    let stop = format!("kill $!; wait; rm -rf {}", folder.display());
    Ok((Background::start(&run, &[], &stop)?, port))
}

/// Writes the configuration of Patroni with the path of its script on this machine.
fn patroni_file(deployment: &Path, folder: &Path) -> Result<PathBuf, String> {
    let script = folder.join("create-database");
    let copied = std::fs::copy(deployment.join("create-database"), &script);
    copied.map_err(|error| error.to_string())?;
    let text = read(&deployment.join("patroni.yml"))?;
    let text = text.replace(
        "/etc/patroni/create-database",
        &script.display().to_string(),
    );
    let file = folder.join("patroni.yml");
    std::fs::write(&file, text).map_err(|error| error.to_string())?;
    give_away(folder)?;
    Ok(file)
}

fn start_node(
    patroni: &Path,
    binaries: &Path,
    file: &Path,
    data: &Path,
    name: &str,
    etcd_port: u16,
) -> Result<Node, String> {
    let (port, rest_port) = (free_port()?, free_port()?);
    let (address, rest) = (
        format!("127.0.0.1:{port}"),
        format!("127.0.0.1:{rest_port}"),
    );
    let data_folder = data.display();
    let environment = [
        ("PATRONI_NAME", name.to_owned()),
        ("PATRONI_ETCD3_HOSTS", format!("127.0.0.1:{etcd_port}")),
        ("PATRONI_RESTAPI_LISTEN", rest.clone()),
        ("PATRONI_RESTAPI_CONNECT_ADDRESS", rest),
        ("PATRONI_POSTGRESQL_LISTEN", address.clone()),
        ("PATRONI_POSTGRESQL_CONNECT_ADDRESS", address),
        ("PATRONI_POSTGRESQL_DATA_DIR", data_folder.to_string()),
        ("PATRONI_POSTGRESQL_BIN_DIR", binaries.display().to_string()),
        ("PATRONI_POSTGRESQL_PGPASS", format!("{data_folder}.pgpass")),
        ("PATRONI_SUPERUSER_PASSWORD", PASSWORD.to_owned()),
        ("PATRONI_REPLICATION_PASSWORD", PASSWORD.to_owned()),
        ("PATRONI_REWIND_PASSWORD", PASSWORD.to_owned()),
        ("CORE_DATABASE_PASSWORD", PASSWORD.to_owned()),
    ];
    let run = format!(
        "sh -c 'echo $$ >{data_folder}.pid; exec {} {} 2>{data_folder}.log'",
        patroni.display(),
        file.display()
    );
    let stop = format!(
        "kill -9 $(cat {data_folder}.pid) $(head -n 1 {data_folder}/postmaster.pid) 2>/dev/null"
    );
    Ok(Node {
        data: data.to_owned(),
        pid: PathBuf::from(format!("{data_folder}.pid")),
        port,
        rest_port,
        _program: Background::start(&run, &environment, &stop)?,
    })
}

fn start_haproxy(
    program: &Path,
    deployment: &Path,
    folder: &Path,
    nodes: &[Node],
) -> Result<(Background, u16), String> {
    let (primary_port, standby_port) = (free_port()?, free_port()?);
    let mut text = read(&deployment.join("haproxy.cfg"))?;
    text = text.replace("bind :5000", &format!("bind 127.0.0.1:{primary_port}"));
    text = text.replace("bind :5001", &format!("bind 127.0.0.1:{standby_port}"));
    for (at, node) in nodes.iter().enumerate() {
        let number = at + 1;
        let server = format!("127.0.0.1:{} check port {}", node.port, node.rest_port);
        let example = format!("db{number}:5432 check port 8008");
        if !text.contains(&example) {
            return Err(format!("haproxy.cfg does not contain {example}"));
        }
        text = text.replace(&example, &server);
    }
    let file = folder.join("haproxy.cfg");
    std::fs::write(&file, text).map_err(|error| error.to_string())?;
    let run = format!(
        "{} -db -f {} 2>{}/haproxy.log",
        program.display(),
        file.display(),
        folder.display()
    );
    Ok((Background::start(&run, &[], "kill $!")?, primary_port))
}

/// Kills Patroni, so that it restarts nothing, then the server process and its children.
fn kill(data: &Path, pid: &Path) -> Result<(), String> {
    let patroni = read(pid)?;
    let server = read(&data.join("postmaster.pid"))?;
    let server = server.lines().next().ok_or("no process of Postgres")?;
    let children = format!("/proc/{server}/task/{server}/children");
    signal(&["-9", patroni.trim()])?;
    // A stopped server process starts no more children.
    signal(&["-STOP", server])?;
    let children = read(Path::new(&children))?;
    let children = children.split_whitespace();
    let all: Vec<_> = ["-9", server].into_iter().chain(children).collect();
    signal(&all)
}

fn signal(arguments: &[&str]) -> Result<(), String> {
    let killed = Command::new("kill").args(arguments).status();
    match killed {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("kill {arguments:?}: {other:?}")),
    }
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}
