//! Where in a document a value stands.

use std::ops::Range;

use egret_api::Segment;

use super::scalar;
use super::tree::{Shape, Tree, widen};

impl Tree {
    /// The span of the value at `path`; of the key of a value that spans lines or is absent; and if the path leaves the
    /// document, of the deepest key on it that is there. `None` for a document without nodes.
    pub(crate) fn locate(&self, source: &str, path: &[Segment]) -> Option<Range<usize>> {
        let (mut index, mut key) = (0, None);
        for segment in path {
            let Some((found_key, found)) = self.step(source, self.resolve(index), segment) else { break };
            index = found;
            key = found_key;
        }
        let node = self.nodes.get(index)?;
        match (&node.shape, key) {
            (Shape::Scalar { .. } | Shape::Alias(_), _) if !node.span.is_empty() => Some(widen(&node.span)),
            (Shape::Map | Shape::List, None) => self.first_leaf(index),
            (_, Some(key)) => self.nodes.get(key).map(|node| widen(&node.span)),
            (_, None) => Some(widen(&node.span)),
        }
    }

    /// The key and the value, or the element, that `segment` names in the collection `index`.
    fn step(&self, source: &str, index: usize, segment: &Segment) -> Option<(Option<usize>, usize)> {
        match (&self.nodes.get(index)?.shape, segment) {
            (Shape::List, Segment::Index(number)) => self.children(index).nth(*number).map(|found| (None, found)),
            (Shape::Map, Segment::Key(name)) => {
                let mut children = self.children(index);
                let mut merged = Vec::new();
                while let (Some(key), Some(value)) = (children.next(), children.next()) {
                    if self.is_merge(key, source) {
                        merged.push(self.resolve(value));
                    } else if self.is_key(key, source, name) {
                        return Some((Some(key), value));
                    }
                }
                merged.into_iter().find_map(|from| self.step_merged(source, from, segment))
            }
            _ => None,
        }
    }

    /// Into what `<<` brings; maps merged by a merged map are left out, their values are found by the key above them.
    fn step_merged(&self, source: &str, from: usize, segment: &Segment) -> Option<(Option<usize>, usize)> {
        let Segment::Key(name) = segment else { return None };
        let sources = match self.nodes.get(from)?.shape {
            Shape::List => self.children(from).map(|child| self.resolve(child)).collect(),
            _ => vec![from],
        };
        sources.into_iter().find_map(|map| {
            let mut children = self.children(map);
            while let (Some(key), Some(value)) = (children.next(), children.next()) {
                if self.is_key(key, source, name) {
                    return Some((Some(key), value));
                }
            }
            None
        })
    }

    /// What an alias stands for; anything else stands for itself.
    pub(crate) fn resolve(&self, index: usize) -> usize {
        match self.nodes.get(index).map(|node| &node.shape) {
            Some(Shape::Alias(target)) => *target as usize,
            _ => index,
        }
    }

    /// Whether this key is YAML's `<<`.
    pub(crate) fn is_merge(&self, index: usize, source: &str) -> bool {
        matches!(self.nodes.get(index).map(|node| &node.shape),
            Some(Shape::Scalar { text, plain: true }) if text.get(source) == "<<")
    }

    fn is_key(&self, index: usize, source: &str, name: &str) -> bool {
        match self.nodes.get(self.resolve(index)).map(|node| &node.shape) {
            Some(Shape::Scalar { text, plain: false }) => text.get(source) == name,
            Some(Shape::Scalar { text, plain: true }) => {
                let text = text.get(source);
                text == name || scalar::plain(text).ok().and_then(scalar::key).is_some_and(|key| key == name)
            }
            _ => false,
        }
    }

    fn is_collection(&self, index: usize) -> bool {
        matches!(self.nodes.get(index).map(|node| &node.shape), Some(Shape::Map | Shape::List))
    }

    /// The first thing written in a collection: where nothing better can be pointed at.
    fn first_leaf(&self, index: usize) -> Option<Range<usize>> {
        (index..self.next(index))
            .filter(|&inside| !self.is_collection(inside))
            .map(|inside| self.nodes.get(inside))
            .next()
            .unwrap_or_else(|| self.nodes.get(index))
            .map(|node| widen(&node.span))
    }
}
