//! A node, a pod or an outside server: something with a network of its own.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::address::Family;
use crate::dump;
use crate::error::LabError;
use crate::namespace::Namespace;
use crate::process::Process;
use crate::traffic::Pacer;
use crate::traffic::ask::{Client, Transport};
use crate::traffic::flow::{Flow, Kind};
use crate::traffic::reply::Reply;
use crate::traffic::respond::Responder;
use crate::traffic::stray;

/// How long a client waits for an answer.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// Where what processes say is kept.
pub(crate) const LOGS: &str = "/run/lab";

/// What asks, answers and repeats for every host of a lab.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    pub(crate) responder: Arc<Responder>,
    pub(crate) pacer: Arc<Pacer>,
}

/// A node, a pod, an outside server, or the OVN stand-in of a node. It answers questions at all its addresses.
#[derive(Debug)]
pub struct Host {
    name: Arc<str>,
    namespace: Arc<Namespace>,
    /// The first of each family is the one that others know it by.
    addresses: Vec<IpAddr>,
    traffic: Traffic,
}

impl Host {
    pub(crate) fn new(name: &str, addresses: Vec<IpAddr>, traffic: Traffic) -> Result<Self, LabError> {
        Ok(Self::within(Namespace::new(name)?, addresses, traffic))
    }

    pub(crate) fn within(namespace: Namespace, addresses: Vec<IpAddr>, traffic: Traffic) -> Self {
        Self { name: namespace.name().into(), namespace: Arc::new(namespace), addresses, traffic }
    }

    /// Starts to answer, as soon as it has its addresses.
    pub(crate) fn answer(&self, port: u16) -> Result<(), LabError> {
        self.traffic.responder.listen_for_echoes(&self.namespace, &self.name)?;
        self.serve(port)
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Its name, which is that of its namespace too.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address that others know it by.
    #[must_use]
    pub fn address(&self, family: Family) -> IpAddr {
        let mut addresses = self.addresses.iter().filter(|address| Family::of(**address) == family);
        *addresses.next().expect("every host has both families")
    }

    /// All its addresses, as the lab gave them.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Answers questions at another port too, at all its addresses.
    ///
    /// # Errors
    ///
    /// Somebody listens there.
    pub fn serve(&self, port: u16) -> Result<(), LabError> {
        self.traffic.responder.serve(&self.namespace, &self.name, &self.addresses, port)
    }

    /// Answers questions at an address that the lab did not give it.
    ///
    /// # Errors
    ///
    /// It does not have the address, or somebody listens there.
    pub fn serve_at(&self, address: IpAddr, port: u16) -> Result<(), LabError> {
        self.traffic.responder.serve(&self.namespace, &self.name, &[address], port)
    }

    /// Answers nothing any more, but echo requests, which the kernel answers.
    pub fn fall_silent(&self) {
        self.traffic.responder.forget(&self.name);
    }

    // Being there.

    /// Runs a program that must succeed, and returns what it says on its standard output.
    ///
    /// # Errors
    ///
    /// It cannot be started, or fails.
    pub fn run<'a>(&self, command: impl AsRef<[&'a str]>) -> Result<String, LabError> {
        self.namespace.tell(command.as_ref(), "")
    }

    /// Runs a program that must succeed, with this on its standard input.
    ///
    /// # Errors
    ///
    /// It cannot be started, or fails.
    pub fn tell<'a>(&self, command: impl AsRef<[&'a str]>, text: &str) -> Result<String, LabError> {
        self.namespace.tell(command.as_ref(), text)
    }

    /// Runs a program that may fail.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn output<'a>(&self, command: impl AsRef<[&'a str]>) -> Result<Output, LabError> {
        self.namespace.output(command.as_ref(), "")
    }

    /// Runs lines such as `route add 192.0.2.0/24 via 192.168.50.200`, of both families, as `ip` commands. What does not
    /// tell its family by an address of it, such as a rule, begins with `-6` if it is of that; it is done after the rest.
    ///
    /// # Errors
    ///
    /// One fails; those before it are done.
    pub fn ip<'a>(&self, lines: impl AsRef<[&'a str]>) -> Result<(), LabError> {
        let lines: Vec<String> = lines.as_ref().iter().map(|line| (*line).to_owned()).collect();
        self.namespace.ip(&lines)
    }

    /// Changes the nftables ruleset in one transaction.
    ///
    /// # Errors
    ///
    /// nft refuses.
    pub fn nft(&self, text: &str) -> Result<(), LabError> {
        self.namespace.nft(text)
    }

    /// Starts a program, which is killed and waited for when what is returned is dropped, or when this process ends.
    ///
    /// Of the command, its program, arguments, environment and folder count. What it says goes to a file.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn spawn(&self, command: &Command) -> Result<Process, LabError> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let program = PathBuf::from(command.get_program());
        let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = PathBuf::from(LOGS).join(format!("{}-{program}-{number}.log", self.name));
        Process::start_in(&self.namespace, command, log)
    }

    /// Programs that are started on this host from now on see this file below `/etc`, such as
    /// `iproute2/rt_tables.d/lab.conf`; those of other hosts do not.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write_etc(&self, path: &str, text: &str) -> Result<(), LabError> {
        self.namespace.write_etc(path, text)
    }

    /// Does something on a thread of its own that is in this host's namespace. Sockets that are opened there stay there.
    ///
    /// What looks into `/proc/self/net` sees the network of the first thread; `/proc/thread-self/net` is right.
    pub fn inside<R: Send>(&self, body: impl FnOnce() -> R + Send) -> R {
        self.namespace.inside(body)
    }

    /// A kernel parameter by its path below `net`, such as `ipv4/conf/eth0/rp_filter`.
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub fn sysctl(&self, name: &str) -> Result<String, LabError> {
        self.namespace.sysctl(name)
    }

    /// Sets one.
    ///
    /// # Errors
    ///
    /// There is none of that name, or the kernel does not take the value.
    pub fn set_sysctl(&self, name: &str, value: &str) -> Result<(), LabError> {
        self.namespace.set_sysctls(&[(name, value)])
    }

    /// What the kernel holds for this host, in lines that are the same for the same state: links, addresses, routes of
    /// all tables, rules, parameters, and the nftables ruleset without counters and handles.
    ///
    /// # Errors
    ///
    /// `ip` or `nft` fails.
    pub fn dump(&self) -> Result<String, LabError> {
        dump::dump(&self.namespace)
    }

    // Asking.

    /// Asks over TCP, with a connection of its own.
    #[must_use]
    pub fn tcp(&self, to: IpAddr, port: u16) -> Reply {
        self.ask(Transport::Tcp, to, port, PATIENCE)
    }

    /// Asks with a datagram, which is sent once.
    #[must_use]
    pub fn udp(&self, to: IpAddr, port: u16) -> Reply {
        self.ask(Transport::Udp, to, port, PATIENCE)
    }

    /// Asks with an echo request, which is sent once.
    #[must_use]
    pub fn icmp(&self, to: IpAddr) -> Reply {
        self.ask(Transport::Icmp, to, 0, PATIENCE)
    }

    /// Asks, and waits as long as said. The port of an echo request means nothing.
    #[must_use]
    pub fn ask(&self, transport: Transport, to: IpAddr, port: u16, limit: Duration) -> Reply {
        self.client(None, limit).ask(transport, SocketAddr::new(to, port), &self.traffic.responder)
    }

    /// Asks from one of its addresses that it would not choose by itself.
    #[must_use]
    pub fn ask_from(&self, from: IpAddr, transport: Transport, to: IpAddr, port: u16) -> Reply {
        self.client(Some(from), PATIENCE).ask(transport, SocketAddr::new(to, port), &self.traffic.responder)
    }

    fn client(&self, from: Option<IpAddr>, limit: Duration) -> Client<'_> {
        Client { namespace: &self.namespace, name: &self.name, from, limit }
    }

    /// Sends a TCP segment that belongs to no connection.
    ///
    /// # Errors
    ///
    /// There is no way there.
    pub fn stray(&self, to: IpAddr, port: u16) -> Result<(), LabError> {
        let failed = |source| LabError::Socket { place: self.name.to_string(), source };
        self.namespace.inside(|| stray::send(to, port)).map_err(failed)
    }

    /// Asks again and again, so many times a second, until what is returned is stopped or dropped.
    #[must_use = "it ends when this is dropped"]
    pub fn flow(&self, kind: Kind, to: IpAddr, port: u16, rate: u32) -> Flow {
        self.traffic.pacer.flow(Arc::clone(&self.namespace), &self.name, kind, SocketAddr::new(to, port), rate)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.traffic.responder.forget(&self.name);
    }
}
