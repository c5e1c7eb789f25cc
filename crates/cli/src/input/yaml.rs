//! The value of a YAML document.

use serde_json::{Map, Value};

use super::scalar;
use super::tree::{MAX_DEPTH, Shape, SyntaxFault, Tree, too_deep, widen};

/// How much aliases may add to a document, in bytes of text plus a constant for each value. A thousand times what any
/// hand-written manifest saves with anchors, and a thousandth of what hurts a laptop.
const ALIAS_BUDGET: usize = 4 << 20;

/// What a value costs besides its text.
const VALUE_COST: usize = 16;

/// The value of the one document in this text; `None` if there is none, or only null.
///
/// # Errors
/// What is wrong with the text, with a span in it.
pub(crate) fn parse(source: &str) -> Result<Option<Value>, SyntaxFault> {
    let tree = Tree::parse(source)?;
    if tree.nodes.is_empty() {
        return Ok(None);
    }
    let mut builder = Builder { source, tree: &tree, budget: ALIAS_BUDGET, aliases: 0 };
    let value = builder.value(0, 0)?;
    Ok(Some(value).filter(|value| !value.is_null()))
}

struct Builder<'a> {
    source: &'a str,
    tree: &'a Tree,
    /// What aliases may still add.
    budget: usize,
    /// How many aliases we are inside of.
    aliases: usize,
}

impl Builder<'_> {
    fn value(&mut self, index: usize, depth: usize) -> Result<Value, SyntaxFault> {
        let Some(node) = self.tree.nodes.get(index) else { return Ok(Value::Null) };
        if depth > MAX_DEPTH {
            return Err(too_deep(widen(&node.span)));
        }
        match &node.shape {
            Shape::Scalar { text, plain } => {
                let text = text.get(self.source);
                self.pay(index, text.len())?;
                if *plain {
                    scalar::plain(text).map_err(|message| self.fault(index, message, "put it in quotes"))
                } else {
                    Ok(Value::String(text.to_owned()))
                }
            }
            Shape::List => {
                self.pay(index, 0)?;
                self.tree.children(index).map(|child| self.value(child, depth + 1)).collect()
            }
            Shape::Map => {
                self.pay(index, 0)?;
                self.map(index, depth)
            }
            Shape::Alias(target) => {
                self.aliases += 1;
                let value = self.value(*target as usize, depth + 1);
                self.aliases -= 1;
                value
            }
        }
    }

    fn map(&mut self, index: usize, depth: usize) -> Result<Value, SyntaxFault> {
        let (mut map, mut merged) = (Map::new(), Map::new());
        let mut children = self.tree.children(index);
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            if self.tree.is_merge(key, self.source) {
                let from = self.value(value, depth + 1)?;
                self.merge(value, from, &mut merged)?;
                continue;
            }
            let name = self.key(key)?;
            let value = self.value(value, depth + 1)?;
            if map.contains_key(&name) {
                return Err(self.fault(
                    key,
                    format!("the key {name:?} is in this map twice"),
                    "Kubernetes refuses such an object; remove one of the two",
                ));
            }
            map.insert(name, value);
        }
        for (name, value) in merged {
            map.entry(name).or_insert(value);
        }
        Ok(Value::Object(map))
    }

    fn key(&mut self, index: usize) -> Result<String, SyntaxFault> {
        let legal = match self.tree.nodes.get(self.tree.resolve(index)).map(|node| &node.shape) {
            Some(Shape::Scalar { .. }) => scalar::key(self.value(index, 0)?),
            _ => None,
        };
        legal.ok_or_else(|| {
            self.fault(
                index,
                "a key has to be text".to_owned(),
                "a text that begins with {, [ or ? has to be in quotes",
            )
        })
    }

    /// `<<: *defaults`, or a list of such; the first one wins.
    fn merge(&self, index: usize, from: Value, merged: &mut Map<String, Value>) -> Result<(), SyntaxFault> {
        let sources = if let Value::Array(list) = from { list } else { vec![from] };
        for source in sources {
            let Value::Object(source) = source else {
                return Err(self.fault(
                    index,
                    "only a map can be merged into a map".to_owned(),
                    "put << in quotes if it is meant as a key",
                ));
            };
            for (name, value) in source {
                merged.entry(name).or_insert(value);
            }
        }
        Ok(())
    }

    fn pay(&mut self, index: usize, bytes: usize) -> Result<(), SyntaxFault> {
        if self.aliases == 0 {
            return Ok(());
        }
        match self.budget.checked_sub(bytes + VALUE_COST) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(self.fault(
                index,
                format!("the aliases of this document add more than {} MiB to it", ALIAS_BUDGET >> 20),
                "aliases of aliases grow without bound; write the values out",
            )),
        }
    }

    fn fault(&self, index: usize, message: String, help: &str) -> SyntaxFault {
        let span = self.tree.nodes.get(index).map(|node| widen(&node.span)).unwrap_or_default();
        SyntaxFault { span, message, help: Some(help.to_owned()) }
    }
}
