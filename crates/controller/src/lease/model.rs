//! Several instances on one API server in made-up time: whatever is lost, late, frozen or meddled with, never do two of
//! them believe that they may write.

use std::time::Duration;

use super::Terms;
use super::election::{Election, Observed, Record, Step};

const TERMS: Terms =
    Terms { duration: Duration::from_secs(15), deadline: Duration::from_secs(10), retry: Duration::from_secs(2) };

/// `SplitMix64`: a seed gives the same run on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The API server's side: one Lease.
#[derive(Default)]
struct Store {
    lease: Option<Observed>,
    version: u64,
}

impl Store {
    fn put(&mut self, record: Record) -> Observed {
        self.version += 1;
        let stored = Observed { record, version: self.version.to_string() };
        self.lease = Some(stored.clone());
        stored
    }

    fn write(&mut self, over: Option<&String>, record: Record) -> Option<Observed> {
        (self.lease.as_ref().map(|lease| &lease.version) == over).then(|| self.put(record))
    }
}

enum Request {
    Read,
    Write { over: Option<String>, record: Record },
}

enum Answer {
    Read(Option<Observed>),
    Wrote(Observed),
    Conflict,
}

/// A request on its way there, then its answer on its way back; either may be lost.
struct Call {
    began: Duration,
    request: Option<Request>,
    answer: Option<Answer>,
}

struct Instance {
    election: Election,
    /// Thousandths of real time that pass on its clock.
    rate: u64,
    offset: Duration,
    frozen: bool,
    call: Option<Call>,
    next_attempt: Duration,
}

struct World {
    random: Random,
    terms: Terms,
    now: Duration,
    store: Store,
    instances: Vec<Instance>,
    starts: u64,
}

impl World {
    fn new(seed: u64, count: usize, terms: Terms) -> Self {
        let mut world = Self {
            random: Random(seed),
            terms,
            now: Duration::ZERO,
            store: Store::default(),
            instances: Vec::new(),
            starts: 0,
        };
        for _ in 0..count {
            let started = world.start();
            world.instances.push(started);
        }
        world
    }

    fn start(&mut self) -> Instance {
        self.starts += 1;
        Instance {
            election: Election::new(format!("instance-{}", self.starts), self.terms),
            // Clocks that differ by up to 8 %: far worse than any that ticks in a computer.
            rate: 960 + self.random.below(81),
            offset: Duration::from_secs(self.random.below(1_000_000)),
            frozen: false,
            call: None,
            next_attempt: Duration::ZERO,
        }
    }

    fn clock(&self, index: usize) -> Duration {
        let instance = &self.instances[index];
        instance.offset + Duration::from_micros(u64::try_from(self.now.as_micros()).unwrap() * instance.rate / 1000)
    }

    /// Something happens somewhere.
    fn turn(&mut self) {
        self.now += Duration::from_millis(self.random.below(200));
        let index = usize::try_from(self.random.below(self.instances.len() as u64)).unwrap();
        match self.random.below(400) {
            0..4 => self.instances[index].frozen = true,
            4..11 => self.instances[index].frozen = false,
            // Whoever starts while the Lease is deleted and its holder alive takes it: a known limit.
            11..13 if self.store.lease.is_none() => {}
            11 => self.instances[index] = self.start(),
            12 => self.release(index),
            13 => self.meddle(),
            14 => self.now += Duration::from_secs(self.random.below(20)),
            15..150 => self.deliver(index),
            _ if self.instances[index].frozen => {}
            _ => self.run(index),
        }
    }

    fn run(&mut self, index: usize) {
        let now = self.clock(index);
        let (lost, lossy) = (self.random.one_in(8), self.random.one_in(8));
        let wait = self.terms.retry + Duration::from_millis(self.random.below(500));
        let terms = self.terms;
        let instance = &mut self.instances[index];
        if let Some(call) = &mut instance.call {
            match call.answer.take() {
                Some(answer) if !lost => {
                    let began = call.began;
                    instance.call = None;
                    match answer {
                        Answer::Read(lease) => instance.election.read(lease, now),
                        Answer::Wrote(lease) => instance.election.wrote(lease, began, now),
                        Answer::Conflict => instance.election.conflicted(),
                    }
                }
                // Timed out; the request may still be on its way, which `deliver` has decided before.
                answer if answer.is_some() || now > call.began + terms.deadline / 2 => {
                    instance.call = None;
                    instance.election.failed();
                }
                _ => {}
            }
            return;
        }
        let request = match instance.election.next(now) {
            Step::Rest if now < instance.next_attempt => return,
            Step::Rest => {
                instance.next_attempt = now + wait;
                return instance.election.attempt();
            }
            Step::Read => Request::Read,
            Step::Write { over, transitions, .. } => {
                let holder = instance.election.identity().to_owned();
                let renewed = format!("{holder} {now:?}");
                Request::Write { over, record: Record { holder, duration: terms.duration, transitions, renewed } }
            }
        };
        let request = (!lossy).then_some(request);
        instance.call = Some(Call { began: now, request, answer: None });
    }

    /// A request reaches the API server, frozen sender or not.
    fn deliver(&mut self, index: usize) {
        let Some(call) = &mut self.instances[index].call else { return };
        call.answer = match call.request.take() {
            None => call.answer.take(),
            Some(Request::Read) => Some(Answer::Read(self.store.lease.clone())),
            Some(Request::Write { over, record }) => {
                Some(self.store.write(over.as_ref(), record).map_or(Answer::Conflict, Answer::Wrote))
            }
        };
    }

    fn release(&mut self, index: usize) {
        if let Some((version, transitions)) = self.instances[index].election.resign() {
            let record = Record::released(transitions, format!("{:?}", self.now));
            self.store.write(Some(&version), record);
        }
        self.instances[index] = self.start();
    }

    /// An operator empties, deletes or annotates the Lease.
    fn meddle(&mut self) {
        let Some(lease) = self.store.lease.clone() else { return };
        match self.random.below(3) {
            0 => drop(self.store.put(Record { holder: String::new(), ..lease.record })),
            1 => drop(self.store.put(lease.record)),
            // Likewise not while somebody has not seen it yet.
            _ if self.instances.iter().all(|instance| instance.election.has_seen()) => self.store.lease = None,
            _ => {}
        }
    }

    fn leaders(&self) -> Vec<usize> {
        let leads = |&index: &usize| self.instances[index].election.right(self.clock(index)).is_some();
        (0..self.instances.len()).filter(leads).collect()
    }
}

/// Runs a seed; gives the turns with a leader, or the turn in which there were two.
fn run(seed: u64, terms: Terms) -> Result<usize, String> {
    let mut world = World::new(seed, 2 + usize::try_from(seed % 2).unwrap(), terms);
    let mut led = 0;
    for turn in 0..3000 {
        world.turn();
        let leaders = world.leaders();
        if leaders.len() > 1 {
            return Err(format!("seed {seed}, turn {turn}, {:?}: {leaders:?} lead", world.now));
        }
        led += leaders.len();
    }
    Ok(led)
}

#[test]
fn never_do_two_believe_that_they_may_write() {
    let led: usize = (0..400).map(|seed| run(seed, TERMS).unwrap()).sum();
    let share = led * 100 / (400 * 3000);
    assert!(share > 40, "somebody leads most of the time, not {share} %");
}

#[test]
fn the_model_finds_a_right_that_outlasts_the_lease() {
    let terms = Terms { deadline: Duration::from_secs(16), ..TERMS };
    assert!((0..400).any(|seed| run(seed, terms).is_err()));
}
