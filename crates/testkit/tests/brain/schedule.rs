//! What happens, step by step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use egret_api::{Kind, Manifests};
use egret_brain::{Answer, Brain, Config, Input, MassSilence, Now, Output, Write, WriteError, WriteId};
use egret_core::{NodeName, Options, Platform, Timestamp};
use egret_placement::audit::{Check, State, audit};
use egret_placement::decide;
use egret_testkit::world::items;
use serde_json::Value;

use crate::check::Hands;
use crate::drawn::Drawn;
use crate::store::Store;
use crate::{check, cluster};

/// What is wrong all the time.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is wrong by itself, and any of them together")]
pub(crate) struct Trouble {
    pub(crate) cloud: bool,
    pub(crate) by_hand: bool,
    pub(crate) prunes: bool,
    pub(crate) denies_marks: bool,
}

type Heard = (Write, Result<Option<Value>, WriteError>);

pub(crate) struct Schedule {
    seed: u64,
    drawn: Drawn,
    trouble: Trouble,
    store: Store,
    brain: Brain,
    leading: bool,
    /// As far as each watch has told.
    seen: BTreeMap<Kind, usize>,
    flying: Vec<Write>,
    heard: Vec<Heard>,
    now: Duration,
    targets: BTreeSet<NodeName>,
    wake: Option<Duration>,
    silent: BTreeSet<String>,
    hands: Hands,
    /// By write, how many changes of requests to the cloud had been told when it was decided.
    decided: BTreeMap<WriteId, usize>,
    attempts: usize,
    raised: usize,
}

impl Schedule {
    pub(crate) fn new(seed: u64, trouble: Trouble) -> Self {
        let mut drawn = Drawn(seed);
        let mut store = Store { prunes: trouble.prunes, denies_marks: trouble.denies_marks, ..Store::default() };
        cluster::populate(&mut store, &mut drawn);
        let mut schedule = Self {
            seed,
            drawn,
            trouble,
            store,
            brain: Brain::new(config(trouble)),
            leading: false,
            seen: BTreeMap::new(),
            flying: Vec::new(),
            heard: Vec::new(),
            now: Duration::ZERO,
            targets: BTreeSet::new(),
            wake: None,
            silent: BTreeSet::new(),
            hands: Hands::default(),
            decided: BTreeMap::new(),
            attempts: 0,
            raised: 0,
        };
        schedule.start();
        schedule
    }

    fn moment(&self) -> Now {
        Now { elapsed: self.now, wall: Timestamp(1_767_355_200) }
    }

    fn take(&mut self, input: Input) {
        let now = self.moment();
        self.brain.take(input, now);
    }

    fn start(&mut self) {
        self.brain = Brain::new(config(self.trouble));
        self.brain.kinds().into_iter().for_each(|kind| self.list(kind));
        self.take(Input::Leading(true));
        self.leading = true;
    }

    fn list(&mut self, kind: Kind) {
        self.seen.insert(kind, self.store.told.len());
        let objects = self.store.list(kind);
        self.take(Input::Listed { kind, objects });
    }

    /// The watch of a kind tells the next change. Whether there was one.
    fn tell(&mut self, kind: Kind) -> bool {
        let seen = self.seen.get(&kind).copied().unwrap_or_default();
        let next = self.store.told.iter().enumerate().skip(seen).find(|(_, (told, _))| *told == kind);
        let Some((at, (_, input))) = next else { return false };
        let input = input.clone();
        self.seen.insert(kind, at + 1);
        self.take(input);
        true
    }

    fn pass(&mut self) -> bool {
        self.now += Duration::from_millis(1);
        let Output { writes, events, targets, wake, .. } = self.brain.pass(self.moment());
        let retargeted = targets.keys().ne(self.targets.iter());
        self.targets = targets.keys().cloned().collect();
        self.wake = wake;
        let active = !writes.is_empty() || !events.is_empty() || retargeted;
        self.attempts += writes.len();
        self.raised += events.len();
        for write in writes {
            let busy = self.flying.iter().chain(self.heard.iter().map(|(write, _)| write));
            assert!(busy.into_iter().all(|other| other.object != write.object), "seed {}: {write:?}", self.seed);
            self.decided.insert(write.id, self.seen.get(&Kind::CloudPrivateIpConfig).copied().unwrap_or_default());
            self.flying.push(write);
        }
        active
    }

    /// A write arrives at the store.
    fn arrive(&mut self, at: usize, fails: bool) {
        let write = self.flying.remove(at);
        let failure = || WriteError::Transient { message: "drawn".to_owned(), retry_after: None };
        if fails && self.drawn.one_in(6) {
            self.heard.push((write, Err(failure())));
            return;
        }
        let key = write.object.clone();
        let before = self.store.objects.get(&key).cloned();
        let version = self.store.told.len();
        if key.kind == Kind::CloudPrivateIpConfig && before.is_some() {
            let mut rehearsal = Store { objects: self.store.objects.clone(), ..Store::default() };
            if rehearsal.execute(&write).is_ok() && rehearsal.objects.get(&key) != before.as_ref() {
                check::request(&self.store, &key, &self.hands);
            }
        }
        let result = self.store.execute(&write);
        if self.store.told.len() > version && key.kind == Kind::EgressIp {
            let after = self.store.objects[&key].clone();
            let before_items = before.as_ref().map(items);
            let told = self.trouble.cloud.then(|| self.decided[&write.id]);
            check::egress_ip(&self.store, &key, &before.unwrap(), &after, &self.hands, told);
            if Some(items(&after)) != before_items {
                self.hands.statuses.remove(&key);
            }
        }
        let lost = fails && self.drawn.one_in(8);
        self.heard.push((write, if lost { Err(failure()) } else { result }));
    }

    fn hear(&mut self, at: usize) {
        let (write, result) = self.heard.remove(at);
        self.take(Input::Written { id: write.id, result });
    }

    fn probe(&mut self, node: &NodeName) {
        let answer = if self.silent.contains(node.as_str()) { Answer::Silent } else { Answer::Alive };
        self.take(Input::Probed { node: node.clone(), answer });
    }

    /// One thing happens.
    pub(crate) fn step(&mut self) {
        self.now += Duration::from_millis(u64::try_from(self.drawn.below(60)).unwrap());
        match self.drawn.below(40) {
            0..=4 => self.change(),
            5..=13 => {
                let kinds = self.brain.kinds();
                let kind = self.drawn.of(&kinds);
                self.tell(kind);
            }
            14 => {
                let kinds = self.brain.kinds();
                let kind = self.drawn.of(&kinds);
                self.list(kind);
            }
            15..=22 => drop(self.pass()),
            23..=27 if !self.flying.is_empty() => {
                let at = self.drawn.below(self.flying.len());
                self.arrive(at, true);
            }
            28..=32 if !self.heard.is_empty() => {
                let at = self.drawn.below(self.heard.len());
                self.hear(at);
            }
            33..=35 if !self.targets.is_empty() => {
                let targets: Vec<NodeName> = self.targets.iter().cloned().collect();
                let target = self.drawn.below(targets.len());
                self.probe(&targets[target]);
            }
            36 => {
                let node = format!("n{}", self.drawn.below(5));
                if !self.silent.remove(&node) && self.drawn.one_in(2) {
                    self.silent.insert(node);
                }
            }
            37 => {
                let open = cluster::open_requests(&self.store);
                if !open.is_empty() {
                    let key = open[self.drawn.below(open.len())].clone();
                    let assigned = !self.drawn.one_in(4);
                    cluster::answer(&mut self.store, &key, assigned);
                }
            }
            38 => self.interrupt(),
            39 if self.drawn.one_in(4) => self.now += Duration::from_secs(40),
            _ => {}
        }
    }

    fn change(&mut self) {
        let before = self.store.told.len();
        let changed = cluster::change(&mut self.store, &mut self.drawn, self.trouble.by_hand);
        match changed {
            Some(key) if key.kind == Kind::EgressIp => drop(self.hands.statuses.insert(key)),
            Some(key) if self.store.told.len() > before => drop(self.hands.requests.insert(key, before)),
            _ => {}
        }
    }

    /// The controller dies and another one starts, or it does not lead for a while. Either way what is under way has come
    /// to its end, or never will, before anybody leads.
    fn interrupt(&mut self) {
        match self.drawn.below(4) {
            0 => {
                while !self.flying.is_empty() {
                    if self.drawn.one_in(2) { self.arrive(0, true) } else { drop(self.flying.remove(0)) }
                }
                self.heard.clear();
                self.start();
            }
            1 if self.leading => {
                self.leading = false;
                self.take(Input::Leading(false));
                self.targets.clear();
            }
            _ if !self.leading && self.flying.is_empty() && self.heard.is_empty() => {
                self.leading = true;
                self.take(Input::Leading(true));
            }
            _ => {}
        }
    }

    /// Nothing fails any more, the cloud confirms everything, and everything comes to its end.
    pub(crate) fn settle(&mut self) {
        let (mut jumps, mut listed) = (0, false);
        for _ in 0..4000 {
            let mut active = false;
            for kind in self.brain.kinds() {
                while self.tell(kind) {
                    active = true;
                }
            }
            for key in cluster::open_requests(&self.store) {
                cluster::answer(&mut self.store, &key, true);
                active = true;
            }
            while !self.flying.is_empty() {
                self.arrive(0, false);
            }
            while !self.heard.is_empty() {
                self.hear(0);
                active = true;
            }
            if !self.leading {
                self.leading = true;
                self.take(Input::Leading(true));
            }
            for node in self.targets.clone() {
                self.probe(&node);
            }
            active |= self.pass();
            if active {
                continue;
            }
            // As the controller does once a minute.
            if !std::mem::replace(&mut listed, true) {
                for kind in [Kind::EgressIp, Kind::EgressService, Kind::CloudPrivateIpConfig] {
                    self.list(kind);
                }
                continue;
            }
            match self.wake {
                Some(wake) if jumps < 40 => {
                    jumps += 1;
                    self.now = self.now.max(wake);
                }
                _ => return,
            }
        }
        panic!("seed {}: no end, {:?}", self.seed, self.flying);
    }

    /// Statuses are as a fresh decision has them, and an audit finds nothing.
    pub(crate) fn assert_settled(&self) {
        let mut manifests = Manifests::default();
        for object in self.store.objects.values() {
            manifests.insert(object.clone()).unwrap();
        }
        let mut snapshot = manifests.observe(&options(self.trouble)).snapshot;
        let view = self.brain.view(self.moment());
        for (name, reach) in &view.reachability {
            snapshot.nodes.get_mut(&NodeName::from(name.as_str())).unwrap().reachability = (*reach).into();
        }
        assert!(view.departed.is_empty() && view.mass_silence.is_none());
        for refusal in &view.refused {
            let address = egret_core::Address::parse(&refusal.address).unwrap();
            snapshot.refused.insert((address, refusal.node.as_str().into()));
        }
        let decision = decide(&snapshot);
        let (stored, decided) = (State::recorded(&snapshot), State::decided(&decision));
        assert_eq!(stored.egress_ips, decided.egress_ips, "seed {} {:?}", self.seed, self.trouble);
        let mut findings = audit(&snapshot, &stored);
        // A node whose capacity shrank keeps what it has.
        findings.retain(|finding| finding.check != Check::Capacity);
        assert!(findings.is_empty(), "seed {} {:?}: {findings:?}", self.seed, self.trouble);
        if !self.trouble.denies_marks {
            let annotation = |object: &Value| object["metadata"]["annotations"][crate::store::MARK].to_string();
            let marks: BTreeSet<_> = self.store.of(Kind::EgressIp).map(|(_, object)| annotation(object)).collect();
            assert_eq!(marks.len(), self.store.of(Kind::EgressIp).count(), "seed {}: {marks:?}", self.seed);
        }
    }

    /// Neither lists nor a new controller find anything to write or to say, whichever nodes are silent and in whatever order
    /// they are probed.
    pub(crate) fn assert_content(&mut self) {
        let before = (self.attempts, self.raised);
        self.brain.kinds().into_iter().for_each(|kind| self.list(kind));
        self.settle();
        let now = (self.attempts, self.raised);
        assert_eq!(now, before, "seed {} {:?}: lists bring no writes", self.seed, self.trouble);
        self.start();
        self.pass();
        let mut targets: Vec<NodeName> = self.targets.iter().cloned().collect();
        while !targets.is_empty() {
            let node = targets.remove(self.drawn.below(targets.len()));
            self.probe(&node);
            self.pass();
        }
        self.settle();
        let now = (self.attempts, self.raised);
        assert_eq!(now, before, "seed {} {:?}: nor does a new controller", self.seed, self.trouble);
    }
}

fn options(trouble: Trouble) -> Options {
    let platform = if trouble.cloud { Platform::Cloud } else { Platform::BareMetal };
    Options { platform, ..Options::default() }
}

/// Mass silence would hold what is silent here; it has its own tests.
fn config(trouble: Trouble) -> Config {
    let mass_silence = MassSilence { least: 100, percent: 100, ..MassSilence::default() };
    Config { options: options(trouble), mass_silence, ..Config::default() }
}
