//! The servers of the whole lab: one thread that answers on all sockets.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::iter;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{SockaddrStorage, recvfrom};
use socket2::{Domain, Socket, Type};

use super::{LONGEST, asked, echo};
use crate::address::Family;
use crate::error::LabError;
use crate::namespace::Namespace;

/// The token of the event that ends the thread.
const END: u64 = 0;

/// How many events are looked at in one go.
const EVENTS: usize = 256;

/// More connections at once than a test makes.
const BACKLOG: i32 = 1024;

/// All servers. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Responder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    epoll: Epoll,
    end: EventFd,
    sockets: Mutex<Sockets>,
    echoes: Mutex<HashMap<u64, Echo>>,
    echoed: Condvar,
}

#[derive(Debug, Default)]
struct Sockets {
    next: u64,
    open: HashMap<u64, Server>,
}

#[derive(Debug)]
struct Server {
    host: Arc<str>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Udp(UdpSocket),
    Listener(TcpListener),
    Stream(TcpStream, SocketAddr, Vec<u8>),
    Echo(Family, Socket),
}

/// Who saw an echo request, and where from.
#[derive(Clone, Debug)]
pub(crate) struct Echo {
    pub(crate) server: String,
    pub(crate) source: IpAddr,
}

impl Responder {
    pub(crate) fn start() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let end = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        epoll.add(&end, EpollEvent::new(EpollFlags::EPOLLIN, END))?;
        let shared = Shared {
            epoll,
            end,
            sockets: Mutex::new(Sockets { next: END + 1, open: HashMap::new() }),
            echoes: Mutex::default(),
            echoed: Condvar::new(),
        };
        let shared = Arc::new(shared);
        let thread = thread::Builder::new().name("responder".to_owned());
        let thread = thread.spawn({
            let shared = Arc::clone(&shared);
            move || shared.serve()
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Answers in the namespace, as `host`, over TCP and UDP at these addresses and this port.
    pub(crate) fn serve(
        &self,
        namespace: &Namespace,
        host: &Arc<str>,
        addresses: &[IpAddr],
        port: u16,
    ) -> Result<(), LabError> {
        let open = || {
            addresses.iter().try_fold(Vec::new(), |mut all, address| {
                let (udp, listener) = open(SocketAddr::new(*address, port))?;
                all.extend([Kind::Udp(udp), Kind::Listener(listener)]);
                Ok(all)
            })
        };
        self.add(namespace, host, namespace.inside(open))
    }

    /// Tells us of the echo requests that the namespace gets.
    pub(crate) fn listen_for_echoes(&self, namespace: &Namespace, host: &Arc<str>) -> Result<(), LabError> {
        let open = || Family::BOTH.into_iter().map(|family| Ok(Kind::Echo(family, open_raw(family)?))).collect();
        self.add(namespace, host, namespace.inside(open))
    }

    /// Closes every socket of the host.
    pub(crate) fn forget(&self, host: &str) {
        self.shared.sockets().open.retain(|_, server| &*server.host != host);
    }

    /// Who saw the echo request with this number. Waits until somebody did, or until the time given.
    pub(crate) fn who_saw(&self, number: u64, until: Instant) -> Option<Echo> {
        let mut echoes = self.shared.echoes.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(echo) = echoes.remove(&number) {
                return Some(echo);
            }
            let rest = until.checked_duration_since(Instant::now()).filter(|rest| *rest > Duration::ZERO)?;
            let waited = self.shared.echoed.wait_timeout(echoes, rest);
            echoes = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn add(&self, namespace: &Namespace, host: &Arc<str>, opened: io::Result<Vec<Kind>>) -> Result<(), LabError> {
        let added = opened.and_then(|all| all.into_iter().try_for_each(|kind| self.shared.add(host, kind)));
        added.map_err(|source| LabError::Socket { place: namespace.name().to_owned(), source })
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        // It cannot be full, and without it the thread would not be waited for.
        if self.shared.end.write(1).is_ok() {
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}

impl Shared {
    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, host: &Arc<str>, kind: Kind) -> io::Result<()> {
        let mut sockets = self.sockets();
        let token = sockets.next;
        sockets.next += 1;
        self.epoll.add(kind.socket(), EpollEvent::new(EpollFlags::EPOLLIN, token))?;
        sockets.open.insert(token, Server { host: Arc::clone(host), kind });
        Ok(())
    }

    fn serve(&self) {
        let mut events = [EpollEvent::empty(); EVENTS];
        loop {
            let ready = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => continue,
                Err(_) => return,
            };
            for event in &events[..ready] {
                if event.data() == END {
                    return;
                }
                self.answer(event.data());
            }
        }
    }

    fn answer(&self, token: u64) {
        let mut sockets = self.sockets();
        // It may have been closed since.
        let Some(Server { host, kind }) = sockets.open.get_mut(&token) else { return };
        match kind {
            Kind::Udp(socket) => answer_datagrams(host, socket),
            Kind::Echo(family, socket) => self.note_echoes(host, *family, socket),
            Kind::Stream(stream, peer, rest) => {
                if answer_lines(host, stream, *peer, rest).is_err() {
                    sockets.open.remove(&token);
                }
            }
            Kind::Listener(listener) => {
                let (host, accepted) = (Arc::clone(host), accept(listener));
                drop(sockets);
                for stream in accepted {
                    // One that cannot be watched is closed, and its client sees that.
                    let _ = self.add(&host, stream);
                }
            }
        }
    }

    fn note_echoes(&self, host: &str, family: Family, socket: &Socket) {
        let mut buffer = [0; LONGEST];
        while let Ok((length, source)) = recvfrom::<SockaddrStorage>(socket.as_raw_fd(), &mut buffer) {
            let question = echo::carried(family, &buffer[..length], false).and_then(asked);
            let (Some((_, number)), Some(source)) = (question, source.as_ref().and_then(ip)) else { continue };
            let echo = Echo { server: host.to_owned(), source };
            self.echoes.lock().unwrap_or_else(PoisonError::into_inner).insert(number, echo);
            self.echoed.notify_all();
        }
    }
}

impl Kind {
    fn socket(&self) -> &dyn AsFd {
        match self {
            Kind::Udp(socket) => socket,
            Kind::Listener(listener) => listener,
            Kind::Stream(stream, ..) => stream,
            Kind::Echo(_, socket) => socket,
        }
    }
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

fn open(address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let socket = |kind| {
        let socket = Socket::new(Domain::for_address(address), kind, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        Ok::<_, io::Error>(socket)
    };
    let listener = socket(Type::STREAM)?;
    listener.listen(BACKLOG)?;
    Ok((socket(Type::DGRAM)?.into(), listener.into()))
}

fn open_raw(family: Family) -> io::Result<Socket> {
    let (domain, protocol) = match family {
        Family::V4 => (Domain::IPV4, socket2::Protocol::ICMPV4),
        Family::V6 => (Domain::IPV6, socket2::Protocol::ICMPV6),
    };
    let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn answer_datagrams(host: &str, socket: &UdpSocket) {
    let mut buffer = [0; LONGEST];
    // Anything else than a question, such as an error that an earlier answer met, is passed over.
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((length, peer)) => {
                let mut answer = format!("{host} {} ", peer.ip()).into_bytes();
                answer.extend(&buffer[..length]);
                // Nobody waits longer than for a lost one.
                let _ = socket.send_to(&answer, peer);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => {}
        }
    }
}

fn accept(listener: &TcpListener) -> Vec<Kind> {
    let accepted = iter::from_fn(|| listener.accept().ok());
    let ready = accepted.filter(|(stream, _)| stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok());
    ready.map(|(stream, peer)| Kind::Stream(stream, peer, Vec::new())).collect()
}

/// An error means that the connection is over.
fn answer_lines(host: &str, stream: &mut TcpStream, peer: SocketAddr, rest: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; LONGEST];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => rest.extend(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let mut answer = format!("{host} {} ", peer.ip()).into_bytes();
            answer.extend(rest.drain(..=end));
            stream.write_all(&answer)?;
        }
    }
}
