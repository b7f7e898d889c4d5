//! `tessera serve`: serves a web page and an HTTP API.

use super::judge::JudgeArguments;
use super::options::SearchArguments;
use super::output::print;
use anyhow::{Context, bail, ensure};
use clap::Args;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tessera::agent::AgentKind;
use tessera::backend::{BackendKind, shipped};
use tessera::command_line::{BackendArguments, TimeSpan, network_file};
use tessera::serve::{self, Config, Host, Lichess, LichessToken, Limits, Origin, Sharing, Tokens};

/// Memory of a search tree, in MiB.
const TREE: usize = 64;
/// Memory for cached evaluations, in MiB.
const CACHE: usize = 128;
/// The network that generates games, which ships with the program.
const WRITER: &str = "tessera-gpt";
/// Timeout for a server's response.
const PATIENCE: Duration = Duration::from_secs(3);
/// Number of requests per second that a client may make if the server is reachable from other
/// machines.
const PUBLIC_RATE: u32 = 20;

/// Play and analyse in a browser, and over HTTP for programs
#[derive(Args)]
pub struct Arguments {
    /// Port to listen on; 0 chooses a free one
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    port: u16,
    /// Address to listen on, or a host name such as localhost. Addresses that other machines can
    /// reach need --token-file or --open
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS", value_parser = Bind::look_up)]
    bind: Bind,
    /// Hosts, separated by commas, by which clients reach the server in addition to localhost and
    /// --bind, such as chess.example.org behind a proxy
    #[arg(long = "host", value_name = "HOST", value_delimiter = ',')]
    hosts: Vec<Host>,
    /// File of access tokens, one per line; clients must send one of them
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Let everyone who can reach the address send requests
    #[arg(long, conflicts_with = "token_file")]
    open: bool,
    /// Origins, separated by commas, of other sites' pages that may send requests, such as
    /// https://example.org
    #[arg(long = "origin", value_name = "ORIGIN", value_delimiter = ',')]
    origins: Vec<Origin>,
    /// Also analyse on Lichess's analysis board, for the account whose API token this file
    /// contains; the token needs the scopes engine:read and engine:write
    #[arg(long, value_name = "FILE")]
    lichess_token_file: Option<PathBuf>,
    /// Address of the site that the token is for
    #[arg(
        long,
        hide = true,
        value_name = "URL",
        default_value = "https://lichess.org"
    )]
    lichess_site: String,
    /// Address of the site's broker for external engines
    #[arg(
        long,
        hide = true,
        value_name = "URL",
        default_value = "https://engine.lichess.ovh"
    )]
    lichess_broker: String,
    /// Let people share reviews by links, and keep the pages in this folder: up to 1,000, or 256 MiB.
    /// Anyone with a link can read the review, without a token
    #[arg(long, value_name = "FOLDER")]
    share_in: Option<PathBuf>,
    /// Time after which a link expires
    #[arg(long, value_name = "TIME", default_value = "30d", requires = "share_in", value_parser = TimeSpan::positive)]
    share_for: TimeSpan,
    /// Also load these networks, separated by commas, for the agents of their families and for
    /// requests that name them: files, or names such as tessera-world
    #[arg(long = "also", value_name = "NET", value_delimiter = ',', value_parser = network_file)]
    networks: Vec<PathBuf>,
    /// Agent that plays unless a request names another one
    #[arg(long, value_enum, default_value_t, value_name = "AGENT")]
    agent: AgentKind,
    #[command(flatten)]
    backend: BackendArguments,
    #[command(flatten)]
    judge: JudgeArguments,
    /// Instead of serving, check that the server at this address, such as localhost:8080, is ready,
    /// and fail if it is not
    #[arg(long, value_name = "ADDRESS")]
    check: Option<String>,
    #[command(flatten)]
    search: SearchArguments,
    #[command(flatten)]
    limits: LimitArguments,
}

/// Limits of a request, of a client and of all clients together.
#[derive(Args)]
struct LimitArguments {
    /// Maximum number of nodes per search
    #[arg(long, value_name = "N", default_value_t = Limits::default().nodes, value_parser = clap::value_parser!(u64).range(1..))]
    max_nodes: u64,
    /// Maximum time per search
    #[arg(long, value_name = "TIME", default_value_t = TimeSpan(Limits::default().time), value_parser = TimeSpan::positive)]
    max_time: TimeSpan,
    /// Searches that run concurrently; 0 runs one per processor core
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: u16,
    /// Requests that may wait in the queue
    #[arg(long, value_name = "N", default_value_t = Limits::default().queue as u32)]
    queue: u32,
    /// Search trees kept for games in progress, 64 MiB each; 0 keeps four per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    trees: u16,
    /// Requests per second and client; 0 sets no limit. The default is 0 if only this machine can
    /// reach the server, and 20 otherwise
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// Open streams per client
    #[arg(long, value_name = "N", default_value_t = Limits::default().streams as u16)]
    streams: u16,
    /// Open connections in total
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections as u32, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Time after which a connection without a request is closed
    #[arg(long, value_name = "TIME", default_value_t = TimeSpan(Limits::default().silence), value_parser = TimeSpan::positive)]
    idle_time: TimeSpan,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        if let Some(address) = &self.check {
            return check(address).with_context(|| format!("the server at {address} is not ready"));
        }
        let is_local = self.bind.address.is_loopback();
        if !is_local && self.token_file.is_none() && !self.open {
            bail!(
                "--bind {} lets other machines connect: restrict access with --token-file, or allow it with --open",
                self.bind.host
            );
        }
        let tokens = self.token_file.as_deref().map(Tokens::read).transpose()?;
        let lichess = self.lichess_token_file.as_deref().map(|path| {
            let token = LichessToken::read(path)?;
            let (site, broker) = (self.lichess_site, self.lichess_broker);
            anyhow::Ok(Lichess {
                token,
                site,
                broker,
            })
        });
        let lichess = lichess.transpose()?;
        let mut player = self
            .search
            .settings(self.agent, self.backend.backend, TREE)?;
        if player.options.search.hash + player.backend.cache == TREE {
            // All trees share one cache.
            player.options.search.hash = TREE;
            player.backend.cache = CACHE;
        }
        let limits = self.limits.limits(is_local);
        player.backend.threads = limits.parallel;
        let uses_networks = matches!(
            self.backend.backend,
            BackendKind::Torch | BackendKind::Check
        );
        let writer = uses_networks.then(|| shipped::file(WRITER));
        let writer = writer.filter(|file| file.is_file());
        let mut hosts = self.hosts;
        hosts.push(self.bind.host);
        let time = self.share_for.0;
        let sharing = self.share_in.map(|folder| Sharing { folder, time });
        let config = Config {
            address: SocketAddr::new(self.bind.address, self.port),
            hosts,
            player,
            networks: self.networks,
            writer,
            judge: self.judge.start(limits.parallel)?.map(Arc::new),
            tokens,
            origins: self.origins,
            lichess,
            sharing,
            limits,
        };
        let mut told = Ok(());
        serve::run(config, |address| {
            told = print(&format!("listening on http://{address}\n"));
        })?;
        told
    }
}

/// The address to listen on.
#[derive(Clone, Debug)]
struct Bind {
    /// The host in the form that the user wrote.
    host: Host,
    address: IpAddr,
}

impl Bind {
    fn look_up(text: &str) -> anyhow::Result<Bind> {
        let host: Host = text.parse().context("set the port with --port")?;
        let address = match &host {
            Host::Address(address) => *address,
            Host::Name(name) => {
                let found = (name.as_str(), 0).to_socket_addrs();
                let found = found.with_context(|| format!("cannot look up {name}"))?;
                // If the host has IPv4 and IPv6 addresses, prefer IPv4.
                let address = found.map(|it| it.ip()).min_by_key(IpAddr::is_ipv6);
                address.with_context(|| format!("{name} has no address"))?
            }
        };
        Ok(Bind { host, address })
    }
}

/// Fails unless the server at an address is ready.
fn check(address: &str) -> anyhow::Result<()> {
    let mut failure = None;
    let mut connected = address.to_socket_addrs()?.filter_map(|address| {
        let stream = TcpStream::connect_timeout(&address, PATIENCE);
        stream.map_err(|error| failure = Some(error)).ok()
    });
    let stream = connected.next();
    let Some(mut stream) = stream else {
        bail!(
            failure.map_or("the name has no address".to_owned(), |error| error
                .to_string())
        );
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    let host = stream.peer_addr()?;
    write!(
        stream,
        "GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut status = String::new();
    BufReader::new(stream).read_line(&mut status)?;
    ensure!(status.contains(" 200 "), "it answers `{}`", status.trim());
    Ok(())
}

impl LimitArguments {
    fn limits(&self, is_local: bool) -> Limits {
        let mut limits = Limits {
            nodes: self.max_nodes,
            time: self.max_time.0,
            queue: self.queue as usize,
            rate: self.rate.unwrap_or(if is_local { 0 } else { PUBLIC_RATE }),
            streams: self.streams.into(),
            connections: self.connections as usize,
            silence: self.idle_time.0,
            ..Limits::default()
        };
        limits.default_time = limits.default_time.min(limits.time);
        if self.jobs > 0 {
            limits.parallel = self.jobs.into();
        }
        if self.trees > 0 {
            limits.trees = self.trees.into();
        }
        limits
    }
}
