//! The thread that keeps all flows of a lab going.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::flow::{End, Flow, Kind, Progress};
use super::link::Link;
use super::reply::Silence;
use super::{next_number, question, told};
use crate::namespace::Namespace;

/// The token of the event that says that there are orders.
const ORDERS: u64 = 0;

const EVENTS: usize = 256;

/// How long the answer to a question with a socket of its own is waited for.
const OLD: Duration = Duration::from_secs(3);

/// After such a delay, such as a machine that was asleep, nothing is made up for.
const BEHIND: Duration = Duration::from_secs(1);

/// Keeps flows going. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Pacer {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Orders {
    waiting: Mutex<Vec<Order>>,
    bell: EventFd,
}

#[derive(Debug)]
enum Order {
    Start(u64, Pace),
    Stop(u64),
    End,
}

/// One flow.
#[derive(Debug)]
struct Pace {
    namespace: Arc<Namespace>,
    client: String,
    kind: Kind,
    to: SocketAddr,
    interval: Duration,
    progress: Arc<Progress>,
    /// Its sockets that may still get answers, the latest last. A flow that has only one keeps its number for good.
    sockets: VecDeque<u64>,
}

#[derive(Debug)]
struct Open {
    flow: u64,
    since: Instant,
    link: Link,
}

impl Pacer {
    pub(crate) fn start() -> io::Result<Self> {
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let orders = Arc::new(Orders { waiting: Mutex::default(), bell });
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&orders.bell, EpollEvent::new(EpollFlags::EPOLLIN, ORDERS))?;
        let run = Run {
            orders: Arc::clone(&orders),
            epoll,
            flows: HashMap::new(),
            open: HashMap::new(),
            due: BinaryHeap::new(),
            next: ORDERS + 1,
        };
        let thread = thread::Builder::new().name("pacer".to_owned()).spawn(move || run.run())?;
        Ok(Self { orders, thread: Some(thread) })
    }

    /// Starts a flow.
    pub(crate) fn flow(&self, namespace: Arc<Namespace>, client: &str, kind: Kind, to: SocketAddr, rate: u32) -> Flow {
        let (id, progress) = (next_number(), Progress::new());
        let interval = Duration::from_secs(1) / rate.max(1);
        let (shared, client) = (Arc::clone(&progress), client.to_owned());
        let pace = Pace { namespace, client, kind, to, interval, progress: shared, sockets: VecDeque::new() };
        self.orders.give(Order::Start(id, pace));
        let orders = Arc::clone(&self.orders);
        Flow { progress, end: Some(End(Box::new(move || orders.give(Order::Stop(id))))) }
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        self.orders.give(Order::End);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Orders {
    fn give(&self, order: Order) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(order);
        // It cannot be full.
        let _ = self.bell.write(1);
    }

    fn take(&self) -> Vec<Order> {
        let _ = self.bell.read();
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The state of the thread, which nobody else sees.
struct Run {
    orders: Arc<Orders>,
    epoll: Epoll,
    flows: HashMap<u64, Pace>,
    open: HashMap<u64, Open>,
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    next: u64,
}

impl Run {
    fn run(mut self) {
        let mut events = [EpollEvent::empty(); EVENTS];
        loop {
            let ready = match self.epoll.wait(&mut events, self.sleep()) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => 0,
                Err(_) => return,
            };
            for event in &events[..ready] {
                if event.data() != ORDERS {
                    self.ready(event.data());
                } else if !self.obey() {
                    return;
                }
            }
            self.ask_due();
        }
    }

    /// Until the next question is due.
    fn sleep(&self) -> EpollTimeout {
        let Some(Reverse((due, _))) = self.due.peek() else { return EpollTimeout::NONE };
        let rest = due.saturating_duration_since(Instant::now());
        // Up to a millisecond late rather than awake all the time.
        let whole = if rest.is_zero() { rest } else { rest + Duration::from_millis(1) };
        EpollTimeout::try_from(whole).unwrap_or(EpollTimeout::ZERO)
    }

    /// Whether to go on.
    fn obey(&mut self) -> bool {
        for order in self.orders.take() {
            match order {
                Order::Start(id, pace) => {
                    self.flows.insert(id, pace);
                    self.due.push(Reverse((Instant::now(), id)));
                }
                Order::Stop(id) => {
                    self.flows.remove(&id);
                    self.open.retain(|_, open| open.flow != id);
                }
                Order::End => return false,
            }
        }
        true
    }

    fn ask_due(&mut self) {
        let now = Instant::now();
        while let Some(Reverse((due, id))) = self.due.peek().copied().filter(|Reverse((due, _))| *due <= now) {
            self.due.pop();
            let Some(pace) = self.flows.get(&id) else { continue };
            let next = due + pace.interval;
            self.due.push(Reverse((if next + BEHIND < now { now } else { next }, id)));
            if pace.progress.ask() {
                self.ask(id);
            }
        }
    }

    fn ask(&mut self, id: u64) {
        let Some(pace) = self.flows.get_mut(&id) else { return };
        let each = matches!(pace.kind, Kind::UdpEach | Kind::TcpEach);
        let old = |open: Option<&Open>| open.is_none_or(|open| open.since.elapsed() > OLD);
        while each && pace.sockets.front().is_some_and(|token| old(self.open.get(token))) {
            if let Some(token) = pace.sockets.pop_front() {
                self.open.remove(&token);
            }
        }
        let token = match pace.sockets.back().filter(|_| !each) {
            Some(token) => *token,
            None => match Link::open(&pace.namespace, pace.kind, pace.to)
                .and_then(|link| watch(&self.epoll, self.next, link))
            {
                Err(error) => return pace.progress.failed(error.into()),
                Ok(link) => {
                    let token = self.next;
                    self.next += 1;
                    pace.sockets.push_back(token);
                    self.open.insert(token, Open { flow: id, since: Instant::now(), link });
                    token
                }
            },
        };
        let Some(open) = self.open.get_mut(&token) else {
            // The one connection of this flow has ended, which was told.
            return;
        };
        let sent = open.link.send(&question(&pace.client, next_number()));
        if let Err(error) = sent {
            self.met(token, id, error);
        }
    }

    fn ready(&mut self, token: u64) {
        // It may have been closed since.
        let Some(open) = self.open.get_mut(&token) else { return };
        let id = open.flow;
        let Some(pace) = self.flows.get(&id) else { return };
        let mut answered = false;
        let received = open.link.receive(|text| {
            if let Some(told) = told(text) {
                pace.progress.answered(&told);
                answered = true;
            }
        });
        match received {
            Err(error) => self.met(token, id, error),
            // There is nothing more to come.
            Ok(_) if answered && matches!(pace.kind, Kind::UdpEach | Kind::TcpEach) => {
                self.open.remove(&token);
            }
            Ok(true) => {
                let _ = self.epoll.modify(open.link.socket(), &mut EpollEvent::new(EpollFlags::EPOLLIN, token));
            }
            Ok(false) => {}
        }
    }

    /// What a socket met: the end of a connection, or a datagram that was refused.
    fn met(&mut self, token: u64, flow: u64, error: io::Error) {
        if let Some(pace) = self.flows.get(&flow) {
            pace.progress.failed(Silence::from(error));
        }
        if self.open.get(&token).is_some_and(|open| matches!(open.link, Link::Stream { .. })) {
            self.open.remove(&token);
        }
    }
}

/// A connection that is ready to be written to has been made.
fn watch(epoll: &Epoll, token: u64, link: Link) -> io::Result<Link> {
    let events = match link {
        Link::Datagrams(_) => EpollFlags::EPOLLIN,
        Link::Stream { .. } => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
    };
    epoll.add(link.socket(), EpollEvent::new(events, token))?;
    Ok(link)
}
