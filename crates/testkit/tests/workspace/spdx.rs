//! SPDX licence expressions, as far as crates use them.

use std::iter::Peekable;
use std::vec::IntoIter;

/// Whether what is allowed satisfies the expression: one side of an OR, both sides of an AND. AND binds tighter.
///
/// `licence WITH exception` is one licence, allowed or not as a whole. A slash is the older way to write OR, looser than
/// everything. What cannot be read satisfies nothing.
pub(crate) fn satisfied(expression: &str, allowed: &[&str]) -> bool {
    let mut choices = expression.split('/').map(|choice| {
        let mut parser = Parser { tokens: tokens(choice).into_iter().peekable(), allowed };
        parser.any().filter(|_| parser.tokens.peek().is_none())
    });
    // A choice that cannot be read spoils the whole: its author may have meant something else.
    choices.try_fold(false, |satisfied, choice| Some(choice? || satisfied)).unwrap_or(false)
}

struct Parser<'a> {
    tokens: Peekable<IntoIter<String>>,
    allowed: &'a [&'a str],
}

impl Parser<'_> {
    fn any(&mut self) -> Option<bool> {
        let mut satisfied = self.all()?;
        while self.next_is("OR") {
            satisfied |= self.all()?;
        }
        Some(satisfied)
    }

    fn all(&mut self) -> Option<bool> {
        let mut satisfied = self.one()?;
        while self.next_is("AND") {
            satisfied &= self.one()?;
        }
        Some(satisfied)
    }

    fn one(&mut self) -> Option<bool> {
        if self.next_is("(") {
            let inner = self.any()?;
            return self.next_is(")").then_some(inner);
        }
        let mut licence = self.word()?;
        if self.next_is("WITH") {
            licence = format!("{licence} WITH {}", self.word()?);
        }
        Some(self.allowed.contains(&licence.as_str()))
    }

    fn next_is(&mut self, token: &str) -> bool {
        self.tokens.next_if(|next| next == token).is_some()
    }

    fn word(&mut self) -> Option<String> {
        self.tokens.next().filter(|token| !["(", ")", "AND", "OR", "WITH"].contains(&token.as_str()))
    }
}

fn tokens(expression: &str) -> Vec<String> {
    expression.replace('(', " ( ").replace(')', " ) ").split_whitespace().map(str::to_owned).collect()
}

const SOME: &[&str] = &["MIT", "BSD-3-Clause", "Apache-2.0 WITH LLVM-exception"];

#[test]
fn one_side_of_an_or_is_enough() {
    assert!(satisfied("MIT", SOME));
    assert!(satisfied("GPL-3.0-only OR MIT", SOME));
    assert!(satisfied("GPL-3.0-only/MIT", SOME));
    assert!(!satisfied("GPL-3.0-only OR MPL-2.0", SOME));
    assert!(!satisfied("GPL-3.0-only/MPL-2.0", SOME));
}

#[test]
fn an_and_needs_both_sides_and_binds_tighter_than_or() {
    assert!(satisfied("MIT AND BSD-3-Clause", SOME));
    assert!(!satisfied("MIT AND GPL-3.0-only", SOME));
    assert!(satisfied("MIT OR MIT AND GPL-3.0-only", SOME));
    assert!(satisfied("GPL-3.0-only AND MIT OR MIT", SOME));
    assert!(!satisfied("(MIT OR MIT) AND GPL-3.0-only", SOME));
    assert!(satisfied("(GPL-3.0-only OR MIT) AND (BSD-3-Clause OR MPL-2.0)", SOME));
}

#[test]
fn an_exception_belongs_to_its_licence() {
    assert!(satisfied("Apache-2.0 WITH LLVM-exception", SOME));
    assert!(!satisfied("Apache-2.0", SOME));
    assert!(!satisfied("MIT WITH LLVM-exception", SOME));
    assert!(satisfied("GPL-3.0-only OR Apache-2.0 WITH LLVM-exception", SOME));
}

#[test]
fn what_cannot_be_read_satisfies_nothing() {
    for expression in
        ["", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT BSD-3-Clause", "MIT OR OR MIT", "MIT/", "MIT WITH", "()", "mit"]
    {
        assert!(!satisfied(expression, SOME), "{expression}");
    }
}
