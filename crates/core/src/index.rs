//! Which nodes match which selectors, cached both ways.
//!
//! Labels that no selector names cannot decide anything. So a node is filed under its *label set*: its labels, cut down
//! to the keys that selectors name. Nodes of one pool share one label set, equal selectors are one selector, and a match
//! is evaluated once per pair of the two. A node that is relabelled costs the lookup of its new label set; only if that
//! set is new are selectors evaluated, and then only those that name a key whose value differs from the old set's.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use slab::Slab;

use crate::{Operator, Selector};

/// An interned selector of a [`SelectorIndex`]. Ids of released selectors are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectorId(usize);

impl SelectorId {
    /// The id as an index into a table of the caller's.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

/// The labels of a node, shared.
pub type Labels = Arc<BTreeMap<String, String>>;

type KeyId = u32;
type SetId = usize;
/// Labels cut down to named keys, ascending by key id.
type LabelSet = Arc<[(KeyId, Arc<str>)]>;

#[derive(Debug)]
struct SelectorEntry {
    selector: Selector,
    keys: Vec<KeyId>,
    uses: usize,
    /// The label sets that match, ascending.
    sets: Vec<SetId>,
}

#[derive(Debug)]
struct SetEntry {
    labels: LabelSet,
    nodes: Vec<u32>,
    /// The selectors that match, ascending.
    selectors: Vec<SelectorId>,
}

/// Where a selector is looked for: under a requirement that a label set must fulfil to match at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Anchor {
    Value(KeyId, Arc<str>),
    Key(KeyId),
    Anywhere,
}

/// Nodes (by number, the caller's) and selectors, and which match which.
#[derive(Debug, Default)]
pub struct SelectorIndex {
    keys: FxHashMap<Arc<str>, KeyId>,
    selectors: Slab<SelectorEntry>,
    selector_ids: FxHashMap<Selector, SelectorId>,
    anchors: FxHashMap<Anchor, Vec<SelectorId>>,
    sets: Slab<SetEntry>,
    set_ids: FxHashMap<LabelSet, SetId>,
    /// By node number: its labels and the set it is filed under.
    nodes: Vec<Option<(Labels, SetId)>>,
    evaluations: u64,
}

impl SelectorIndex {
    /// The id of `selector`, kept until it has been released as often as it was acquired.
    pub fn acquire(&mut self, selector: &Selector) -> SelectorId {
        if let Some(&id) = self.selector_ids.get(selector) {
            self.selectors[id.0].uses += 1;
            return id;
        }
        let keys = self.name_keys(selector);
        let id = SelectorId(self.selectors.vacant_key());
        for anchor in anchors_of(selector, &self.keys) {
            self.anchors.entry(anchor).or_default().push(id);
        }
        let mut sets = Vec::new();
        for (set_id, set) in &mut self.sets {
            self.evaluations += 1;
            if matches(selector, &keys, &set.labels) {
                sets.push(set_id);
                insert_sorted(&mut set.selectors, id);
            }
        }
        self.selector_ids.insert(selector.clone(), id);
        self.selectors.insert(SelectorEntry { selector: selector.clone(), keys, uses: 1, sets });
        id
    }

    /// Lets go of one use of `id`; true if that was the last, so that the id may come to mean another selector.
    pub fn release(&mut self, id: SelectorId) -> bool {
        let entry = &mut self.selectors[id.0];
        entry.uses -= 1;
        if entry.uses > 0 {
            return false;
        }
        let entry = self.selectors.remove(id.0);
        for anchor in anchors_of(&entry.selector, &self.keys) {
            if let Some(list) = self.anchors.get_mut(&anchor) {
                list.retain(|other| *other != id);
                if list.is_empty() {
                    self.anchors.remove(&anchor);
                }
            }
        }
        for set in entry.sets {
            self.sets[set].selectors.retain(|other| *other != id);
        }
        self.selector_ids.remove(&entry.selector);
        true
    }

    /// Files node number `node` under `labels`, whether or not it is known.
    pub fn set_node(&mut self, node: u32, labels: &Labels) {
        let index = node as usize;
        if self.nodes.len() <= index {
            self.nodes.resize_with(index + 1, || None);
        }
        let old = self.nodes[index].as_ref().map(|(_, set)| *set);
        let set = self.file(labels, old);
        if old != Some(set) {
            self.sets[set].nodes.push(node);
            if let Some(old) = old {
                self.unfile(node, old);
            }
        }
        self.nodes[index] = Some((labels.clone(), set));
    }

    /// Forgets node number `node`.
    pub fn remove_node(&mut self, node: u32) {
        if let Some((_, set)) = self.nodes.get_mut(node as usize).and_then(Option::take) {
            self.unfile(node, set);
        }
    }

    /// The selectors that node number `node` matches, ascending; none for an unknown node.
    #[must_use]
    pub fn selectors(&self, node: u32) -> &[SelectorId] {
        match self.nodes.get(node as usize) {
            Some(Some((_, set))) => &self.sets[*set].selectors,
            _ => &[],
        }
    }

    /// Whether node number `node` matches `selector`.
    #[must_use]
    pub fn matches(&self, selector: SelectorId, node: u32) -> bool {
        self.selectors(node).binary_search(&selector).is_ok()
    }

    /// The nodes that match `selector`, in no particular order.
    pub fn nodes(&self, selector: SelectorId) -> impl Iterator<Item = u32> + '_ {
        self.selectors[selector.0].sets.iter().flat_map(|set| self.sets[*set].nodes.iter().copied())
    }

    /// How many (selector, label set) pairs were evaluated since the index was made.
    #[must_use]
    pub fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// The ids of the keys that `selector` names, in the order of its requirements. A key named for the first time
    /// splits the label sets, so every node is filed again.
    fn name_keys(&mut self, selector: &Selector) -> Vec<KeyId> {
        let before = self.keys.len();
        let mut ids = Vec::with_capacity(selector.requirements().len());
        for requirement in selector.requirements() {
            let next = KeyId::try_from(self.keys.len()).expect("fewer than 2^32 label keys");
            let id = match self.keys.get(requirement.key()) {
                Some(&id) => id,
                None => *self.keys.entry(requirement.key().into()).or_insert(next),
            };
            ids.push(id);
        }
        if self.keys.len() > before {
            for node in 0..self.nodes.len() {
                if let Some((labels, _)) = self.nodes[node].clone() {
                    self.set_node(u32::try_from(node).expect("node numbers are u32"), &labels);
                }
            }
        }
        ids
    }

    /// The set for `labels`; a new one inherits from `old` what the changed keys cannot have changed.
    fn file(&mut self, labels: &Labels, old: Option<SetId>) -> SetId {
        let mut cut: Vec<(KeyId, Arc<str>)> = self
            .keys
            .iter()
            .filter_map(|(key, id)| labels.get(&**key).map(|value| (*id, Arc::from(value.as_str()))))
            .collect();
        cut.sort_unstable_by_key(|(key, _)| *key);
        let cut: LabelSet = cut.into();
        if let Some(&id) = self.set_ids.get(&cut) {
            return id;
        }
        let selectors = self.matching(&cut, old);
        let id = self.sets.vacant_key();
        for selector in &selectors {
            insert_sorted(&mut self.selectors[selector.0].sets, id);
        }
        self.set_ids.insert(cut.clone(), id);
        self.sets.insert(SetEntry { labels: cut, nodes: Vec::new(), selectors })
    }

    fn unfile(&mut self, node: u32, set: SetId) {
        let entry = &mut self.sets[set];
        if let Some(position) = entry.nodes.iter().position(|other| *other == node) {
            entry.nodes.swap_remove(position);
        }
        if !entry.nodes.is_empty() {
            return;
        }
        let entry = self.sets.remove(set);
        for selector in entry.selectors {
            self.selectors[selector.0].sets.retain(|other| *other != set);
        }
        self.set_ids.remove(&entry.labels);
    }

    /// The selectors that match the new set `labels`, ascending. Looked at are those whose anchor the set fulfils and,
    /// if there is an old set to inherit from, that name a key which differs.
    fn matching(&mut self, labels: &LabelSet, old: Option<SetId>) -> Vec<SelectorId> {
        let old = old.map(|set| &self.sets[set]);
        let changed = old.map(|old| changed_keys(&old.labels, labels));
        let touched = |keys: &[KeyId]| {
            changed.as_ref().is_none_or(|changed| keys.iter().any(|key| changed.binary_search(key).is_ok()))
        };
        let inherited = old.into_iter().flat_map(|old| &old.selectors).copied();
        let mut found: Vec<SelectorId> = inherited.filter(|id| !touched(&self.selectors[id.0].keys)).collect();
        let anchors = labels
            .iter()
            .flat_map(|(key, value)| [Anchor::Value(*key, value.clone()), Anchor::Key(*key)])
            .chain([Anchor::Anywhere]);
        let mut evaluations = 0;
        for id in anchors.filter_map(|anchor| self.anchors.get(&anchor)).flatten() {
            let entry = &self.selectors[id.0];
            if touched(&entry.keys) {
                evaluations += 1;
                if matches(&entry.selector, &entry.keys, labels) {
                    found.push(*id);
                }
            }
        }
        self.evaluations += evaluations;
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The anchors of a selector: a set that fulfils none of them cannot match. The first `In` gives one for each of its
/// values, else the first `Exists` gives its key; a selector that only excludes can match anything.
fn anchors_of(selector: &Selector, keys: &FxHashMap<Arc<str>, KeyId>) -> Vec<Anchor> {
    let key = |name: &str| *keys.get(name).expect("the keys of a selector are named first");
    let requirements = selector.requirements();
    let value = requirements.iter().find_map(|requirement| match requirement.operator() {
        Operator::In(values) => {
            let anchor = |value: &String| Anchor::Value(key(requirement.key()), value.as_str().into());
            Some(values.iter().map(anchor).collect())
        }
        _ => None,
    });
    let exists = || {
        let exists = requirements.iter().find(|requirement| *requirement.operator() == Operator::Exists);
        exists.map(|requirement| vec![Anchor::Key(key(requirement.key()))])
    };
    value.or_else(exists).unwrap_or_else(|| vec![Anchor::Anywhere])
}

fn matches(selector: &Selector, keys: &[KeyId], labels: &LabelSet) -> bool {
    selector.requirements().iter().zip(keys).all(|(requirement, key)| {
        let value = labels.binary_search_by_key(key, |(key, _)| *key).ok().map(|i| &*labels[i].1);
        requirement.admits(value)
    })
}

/// The keys whose presence or value differs, ascending.
fn changed_keys(old: &LabelSet, new: &LabelSet) -> Vec<KeyId> {
    let missing = |a: &LabelSet, b: &LabelSet| {
        a.iter().filter(|label| !b.contains(label)).map(|(key, _)| *key).collect::<Vec<_>>()
    };
    let mut changed = missing(old, new);
    changed.extend(missing(new, old));
    changed.sort_unstable();
    changed.dedup();
    changed
}

fn insert_sorted<T: Ord>(list: &mut Vec<T>, item: T) {
    if let Err(position) = list.binary_search(&item) {
        list.insert(position, item);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Arc::new(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    fn selector(key: &str, value: &str) -> Selector {
        Selector::compile([(key, value)], []).expect("a good selector")
    }

    #[test]
    fn a_changed_node_evaluates_only_selectors_that_name_a_changed_key() {
        let mut index = SelectorIndex::default();
        let pool: Vec<_> = ["a", "b"].iter().map(|value| index.acquire(&selector("pool", value))).collect();
        let other: Vec<_> = (0..100).map(|i| index.acquire(&selector("zone", &format!("z{i}")))).collect();
        let exclude = Selector::compile([], [("zone", "NotIn", vec!["z9"])]).expect("a good selector");
        let exclude = index.acquire(&exclude);
        index.set_node(0, &labels(&[("pool", "a"), ("zone", "z1")]));
        let before = index.evaluations();
        index.set_node(0, &labels(&[("pool", "b"), ("zone", "z1"), ("unnamed", "x")]));
        assert_eq!(index.evaluations() - before, 1, "only pool=b can match by the changed key");
        assert_eq!(index.selectors(0), [pool[1], other[1], exclude]);
        let before = index.evaluations();
        index.set_node(0, &labels(&[("pool", "b"), ("zone", "z1"), ("unnamed", "y")]));
        index.set_node(1, &labels(&[("pool", "b"), ("zone", "z1")]));
        assert_eq!(index.evaluations(), before, "a known label set is not evaluated again");
        assert_eq!(index.nodes(pool[1]).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn released_selectors_leave_nothing_behind() {
        let mut index = SelectorIndex::default();
        let first = index.acquire(&selector("pool", "a"));
        assert_eq!(index.acquire(&selector("pool", "a")), first);
        index.set_node(0, &labels(&[("pool", "a")]));
        assert!(!index.release(first));
        assert_eq!(index.selectors(0), [first]);
        assert!(index.release(first));
        assert!(index.selectors(0).is_empty() && index.anchors.is_empty() && index.selectors.is_empty());
        index.remove_node(0);
        assert!(index.sets.is_empty() && index.set_ids.is_empty());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Node(u32, BTreeMap<String, String>),
        Remove(u32),
        Acquire(Selector),
        Release(usize),
    }

    fn random_selector() -> impl Strategy<Value = Selector> {
        let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"]);
        let requirement = (0..3, operator, prop::collection::vec(0..3, 1..3));
        prop::collection::vec(requirement, 0..3).prop_map(|requirements| {
            let texts: Vec<_> = requirements
                .into_iter()
                .map(|(key, operator, values)| {
                    let values = if operator.ends_with("In") { values } else { Vec::new() };
                    (format!("k{key}"), operator, values.iter().map(|v| format!("v{v}")).collect::<Vec<_>>())
                })
                .collect();
            let expressions = texts
                .iter()
                .map(|(key, operator, values)| (key.as_str(), *operator, values.iter().map(String::as_str).collect()));
            Selector::compile([], expressions).expect("a good selector")
        })
    }

    fn step() -> impl Strategy<Value = Step> {
        let labels = prop::collection::btree_map("k[0-3]", "v[0-2]", 0..4);
        prop_oneof![
            4 => (0..6u32, labels).prop_map(|(node, labels)| Step::Node(node, labels)),
            1 => (0..6u32).prop_map(Step::Remove),
            3 => random_selector().prop_map(Step::Acquire),
            1 => (0..8usize).prop_map(Step::Release),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn the_index_answers_as_brute_force_does(steps in prop::collection::vec(step(), 0..40)) {
            let mut index = SelectorIndex::default();
            let mut nodes: BTreeMap<u32, BTreeMap<String, String>> = BTreeMap::new();
            let mut selectors: Vec<(SelectorId, Selector)> = Vec::new();
            for step in steps {
                match step {
                    Step::Node(node, labels) => {
                        index.set_node(node, &Arc::new(labels.clone()));
                        nodes.insert(node, labels);
                    }
                    Step::Remove(node) => {
                        index.remove_node(node);
                        nodes.remove(&node);
                    }
                    Step::Acquire(selector) => selectors.push((index.acquire(&selector), selector)),
                    Step::Release(i) if i < selectors.len() => {
                        index.release(selectors.swap_remove(i).0);
                    }
                    Step::Release(_) => {}
                }
                for (id, selector) in &selectors {
                    let mut found: Vec<u32> = index.nodes(*id).collect();
                    found.sort_unstable();
                    let expected: Vec<u32> =
                        nodes.iter().filter(|(_, labels)| selector.matches(labels)).map(|(node, _)| *node).collect();
                    prop_assert_eq!(&found, &expected, "{}", selector);
                    for node in 0..6 {
                        prop_assert_eq!(index.matches(*id, node), expected.contains(&node));
                    }
                }
            }
        }
    }
}
