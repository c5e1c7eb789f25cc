//! A kernel to speak to, and what could be wanted of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use egret_core::Family;
use egret_hostmodel::{
    Business, EgressAddress, Element, Elements, Hop, Key, Role, Route, Rule, RuleAction, Settings, Shape, State, Step,
    Table, Transport, Value, Way, diff,
};
use egret_hostnet::{Applied, Files, Kernel, Observed, StepError};

pub(crate) struct Node {
    pub(crate) kernel: Kernel,
}

impl Node {
    pub(crate) fn open() -> Self {
        let files = Files {
            state: PathBuf::from("/run/egret"),
            table_names: vec![PathBuf::from("/run/rt_tables")],
            ..Files::default()
        };
        Self { kernel: Kernel::open(&Settings::default(), &files).unwrap() }
    }

    pub(crate) async fn observe(&self) -> Observed {
        self.kernel.observe().await.unwrap()
    }

    pub(crate) async fn found(&self) -> State {
        self.observe().await.found
    }

    pub(crate) async fn apply(&self, steps: &[Step]) {
        let applied = self.kernel.apply(steps).await;
        let at = steps.get(applied.done).map(ToString::to_string);
        assert!(applied.failed.is_none(), "{:?} at {at:?}", applied.failed);
        assert_eq!(applied.done, steps.len());
    }

    /// Does a step that must fail, and says why it did.
    pub(crate) async fn refused(&self, step: Step) -> StepError {
        let Applied { done, failed } = self.kernel.apply(&[step]).await;
        assert_eq!(done, 0);
        failed.expect("the step fails")
    }

    /// From whatever is there to `wanted`; it must be there afterwards, and nothing be left to do.
    pub(crate) async fn become_like(&self, wanted: &State) {
        let steps = diff(&self.found().await, wanted);
        self.apply(&steps).await;
        let found = self.found().await;
        let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
        assert_eq!(&found, wanted, "after {steps:#?}");
    }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn egress(ip: &str) -> EgressAddress {
    EgressAddress { ip: ip.parse().unwrap(), link: "eth1".to_owned() }
}

pub(crate) fn default_route(gateway: &str) -> Route {
    let gateway = ip(gateway);
    let (destination, metric) = if gateway.is_ipv4() { ("0.0.0.0/0", 0) } else { ("::/0", 1024) };
    Route {
        table: 1005,
        destination: destination.parse().unwrap(),
        metric,
        hops: vec![Hop { link: "eth1".to_owned(), gateway: Some(gateway), onlink: false, weight: 1 }],
        protocol: Settings::default().protocol,
    }
}

/// A rule that sends a source to table 1005.
pub(crate) fn lookup(source: &str) -> Rule {
    let family = if ip(source).is_ipv4() { Family::V4 } else { Family::V6 };
    Rule::new(family, 5000, RuleAction::Lookup(1005)).from(ip(source).into())
}

/// Something of everything.
pub(crate) fn everything() -> State {
    let settings = Settings::default();
    let mut elements = Elements::new();
    let mut put = |role: Role, ip: IpAddr, key: Key, element: Element| {
        elements.entry(role.of(ip)).or_default().insert(key, element);
    };
    for (pod, with) in [(ip("10.244.1.7"), ip("192.168.60.50")), (ip("fd00:10::7"), ip("fd00:60::50"))] {
        let comment = "default/web";
        let address = Value::Address(with);
        put(Role::ServiceSource, pod, Key::Source(pod), Element::of(comment));
        put(Role::AddressSource, pod, Key::Source(pod), Element::of(comment));
        put(Role::Refuse, pod, Key::Source(pod), Element::of(comment));
        put(Role::Bound, pod, Key::Source(pod), Element::of(comment));
        put(Role::Allow, pod, Key::Pair(pod, with), Element::of(comment));
        put(Role::ServiceSnat, pod, Key::Source(pod), Element::mapping(address.clone(), comment));
        put(Role::AddressSnat, pod, Key::Exit(pod, "eth1".to_owned()), Element::mapping(address, comment));
        let entry = Key::Entry(with, Transport::Tcp, 80);
        put(Role::Reply, with, entry, Element::mapping(Value::Way(Way::Path(1)), comment));
        let cluster = if pod.is_ipv4() { "10.0.0.0/8" } else { "fd00:10::/64" };
        put(Role::Cluster, pod, Key::Prefix(cluster.parse().unwrap()), Element::default());
    }
    let shape = Shape { settings, paths: BTreeMap::from([(1, "blue".to_owned())]) };
    let forwarding = "net/ipv4/conf/eth1/forwarding".to_owned();
    let filter = "net/ipv4/conf/eth1/rp_filter".to_owned();
    State {
        addresses: [egress("192.168.60.50"), egress("fd00:60::50")].into(),
        routes: [default_route("192.168.60.200"), default_route("fd00:60::200")].into(),
        rules: [Family::V4, Family::V6].into_iter().flat_map(|family| rules(family, settings)).collect(),
        table: Some(Table { shape: Some(shape), elements }),
        sysctls: BTreeMap::from([(forwarding, "1".to_owned()), (filter, "2".to_owned())]),
    }
}

fn rules(family: Family, settings: Settings) -> BTreeSet<Rule> {
    let (pod, inner) = match family {
        Family::V4 => ("10.244.1.7", "10.0.0.0/8"),
        Family::V6 => ("fd00:10::7", "fd00:10::/64"),
    };
    let rule = |priority, action| Rule::new(family, priority, action);
    BTreeSet::from([
        rule(998, RuleAction::Lookup(254)).to(inner.parse().unwrap()).incoming("blue"),
        rule(4996, RuleAction::Goto(5002)).mark(settings.foreign()),
        rule(4998, RuleAction::Lookup(1005)).mark(settings.mark(Business::Reply(1))),
        rule(4999, RuleAction::Unreachable).mark(settings.mark(Business::Reply(1))),
        lookup(pod),
        lookup(pod).source_port(30_080),
        rule(5002, RuleAction::Nop),
    ])
}
