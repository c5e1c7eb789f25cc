use std::fmt::Write;

use super::*;

const GOOD: &str = "---\napiVersion: v1\nkind: Node\nmetadata: {name: good}\n";

/// The one bad document stands between two good ones, which are loaded all the same.
fn among_good(bad: &str) -> String {
    let loaded = text(format!("{GOOD}---\n{bad}\n{}", GOOD.replace("good", "better")));
    assert_eq!(loaded.origins.len(), 2, "{}", told(&loaded));
    told(&loaded)
}

#[test]
fn tabs_in_the_indentation() {
    insta::assert_snapshot!(among_good("kind: Node\nmetadata:\n\tname: a"), @r#"
    error: tabs disallowed within this context (block indentation)
     --> <stdin>:8:1
      |
    8 |     name: a
      | ^^^^
      |
      = help: indent with spaces: YAML allows no tabs there
    "#);
}

#[test]
fn an_open_quote() {
    insta::assert_snapshot!(among_good("kind: Node\nmetadata:\n  name: \"a"), @r#"
    error: unclosed quote
     --> <stdin>:8:9
      |
    8 |   name: "a
      |         ^
      |
      = help: close the quote that is opened here or above
    "#);
}

#[test]
fn an_open_bracket() {
    insta::assert_snapshot!(among_good("kind: Node\nmetadata: {name: a"), @r#"
    error: unclosed bracket '{'
     --> <stdin>:7:11
      |
    7 | metadata: {name: a
      |           ^
      |
      = help: close the bracket that is opened here or above
    "#);
}

#[test]
fn a_wrong_indentation() {
    insta::assert_snapshot!(among_good("kind: Node\nmetadata:\n  name: a\n    labels: b"), @r#"
    error: mapping values are not allowed in this context
     --> <stdin>:9:11
      |
    9 |     labels: b
      |           ^
      |
      = help: check the indentation; a text that contains ": " has to be in quotes
    "#);
}

#[test]
fn a_key_twice() {
    insta::assert_snapshot!(among_good("kind: Node\nmetadata:\n  name: a\n  name: b"), @r#"
    error: the key "name" is in this map twice
     --> <stdin>:9:3
      |
    9 |   name: b
      |   ^^^^
      |
      = help: Kubernetes refuses such an object; remove one of the two
    "#);
}

#[test]
fn a_key_twice_in_json() {
    insta::assert_snapshot!(among_good("{\"kind\": \"Node\",\n \"kind\": \"Node\"}"), @r#"
    error: this map holds twice the key "kind"
     --> <stdin>:7:2
      |
    7 |  "kind": "Node"}
      |  ^^^^^^
      |
      = help: Kubernetes refuses such an object; remove one of the two
    "#);
}

#[test]
fn json_cut_off() {
    insta::assert_snapshot!(among_good("{\"kind\": \"Node\",\n \"metadata\": {\"name\": \"a\"\n"), @r#"
    error: EOF while parsing an object
     --> <stdin>:7:25
      |
    7 |  "metadata": {"name": "a"
      |                         ^
      |
      = help: the text ends too early; was it cut off?
    "#);
}

#[test]
fn an_unknown_anchor() {
    insta::assert_snapshot!(among_good("kind: *node"), @r#"
    error: while parsing node, found unknown anchor
     --> <stdin>:6:7
      |
    6 | kind: *node
      |       ^
      |
      = help: define the anchor (`&name`) before it is used, or put the text in quotes
    "#);
}

#[test]
fn a_key_that_is_no_text() {
    insta::assert_snapshot!(among_good("? [a, b]\n: c"), @r#"
    error: a key has to be text
     --> <stdin>:6:3
      |
    6 | ? [a, b]
      |   ^^^^^^
      |
      = help: a text that begins with {, [ or ? has to be in quotes
    "#);
}

#[test]
fn a_document_that_is_no_object() {
    insta::assert_snapshot!(among_good("- kind: Node"), @r#"
    error: this is not an object of Kubernetes
     --> <stdin>:6:3
      |
    6 | - kind: Node
      |   ^^^^
      |
      = help: a document is one object with apiVersion, kind and metadata, or a List of such
    "#);
}

#[test]
fn a_list_without_a_list() {
    insta::assert_snapshot!(among_good("kind: List\nitems: {a: b}"), @r#"
    error: the items of a List have to be a list
     --> <stdin>:7:1
      |
    7 | items: {a: b}
      | ^^^^^
      |
      = help: a document is one object with apiVersion, kind and metadata, or a List of such
    "#);
}

#[test]
fn a_nul_byte() {
    insta::assert_snapshot!(among_good("kind: Node\nmetadata: {name: a\0b\u{1b}[31m, a: \"\\q\"}"), @r#"
    error: unexpected character: `\u{0}'
     --> <stdin>:7:19
      |
    7 | metadata: {name: a␀b␛[31m, a: "\q"}
      |                   ^
      |
      = help: correct the YAML here, or in the lines just above
    "#);
}

#[test]
fn an_alias_to_what_it_is_in() {
    insta::assert_snapshot!(among_good("kind: &a [*a]"), @r#"
    error: this alias stands inside the value that it refers to
     --> <stdin>:6:11
      |
    6 | kind: &a [*a]
      |           ^^
      |
      = help: write the value out
    "#);
}

#[test]
fn an_alias_bomb() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let alias = format!("*a{}, ", level - 1).repeat(10);
        writeln!(bomb, "a{level}: &a{level} [{alias}]").unwrap();
    }
    let told = among_good(&bomb);
    assert!(told.starts_with("error: the aliases of this document add more than 4 MiB to it"), "{told}");
}

#[test]
fn a_large_text_repeated_by_aliases() {
    let bomb = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a, ".repeat(100));
    assert!(among_good(&bomb).starts_with("error: the aliases of this document add"));
}

#[test]
fn nesting_without_end() {
    let mut steps = String::new();
    for depth in 0..10_000 {
        writeln!(steps, "{}a:", " ".repeat(depth)).unwrap();
    }
    for deep in [
        "[".repeat(10_000),
        "{\"a\":".repeat(10_000),
        format!("a: {}{}", "[".repeat(10_000), "]".repeat(10_000)),
        "- ".repeat(10_000),
        "? ".repeat(10_000),
        format!("a: {}", "{a: ".repeat(10_000)),
        steps,
    ] {
        let told = among_good(&deep);
        assert!(told.contains("nests more than 128 levels") || told.contains("recursion limit"), "{told}");
    }
}

#[test]
fn aliases_do_not_lead_deeper_than_text_may() {
    let mut chain = "a0: &a0 [x]\n".to_owned();
    for level in 1..1000 {
        writeln!(chain, "a{level}: &a{level} [*a{}]", level - 1).unwrap();
    }
    let told = among_good(&chain);
    assert!(told.starts_with("error: the document nests more than 128 levels deep"), "{told}");
}

#[test]
fn what_is_not_utf8() {
    insta::assert_snapshot!(told(&text(b"kind: Node\nmetadata: {name: \xFF}")), @r#"
    error: the input is not UTF-8 (line 2)
    --> <stdin>
     = help: save it as UTF-8; if it is compressed, unpack it first
    "#);
    let loaded = text(b"\xFF\xFEk\0i\0");
    assert!(loaded.diagnostics[0].help().unwrap().contains("UTF-16"));
}

#[test]
fn arbitrary_text_never_panics() {
    let pieces: Vec<&str> =
        "a|: |- |\n|  |[|]|{|}|\"|'|&a |*a|>-\n|---\n|...\n|\t|\0|ä|\u{2028}|\r|%YAML 1.2\n|!!int |<<: |\
                             kind: List\n|items:\n|?|,|#|\u{FEFF}"
            .split('|')
            .collect();
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut input = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            input += pieces[usize::try_from(state >> 33).unwrap() % pieces.len()];
        }
        for diagnostic in text(&input).diagnostics {
            assert!(diagnostic.line().is_none_or(|line| line >= 1));
            let _ = diagnostic.render(Style { colour: true, width: 30 });
        }
    }
}

/// Found by fuzzing: the renderer lets the second set of control characters through.
#[test]
fn no_control_character_of_the_input_reaches_the_terminal() {
    for control in ['\u{1b}', '\u{7}', '\u{82}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{2028}'] {
        let told = told(&text(format!("kind: Node\nmetadata: {{name: a{control}b")));
        let steers = |c: char| c != '\n' && (c.is_control() || c == control);
        assert!(!told.is_empty() && !told.chars().any(steers), "{told:?}");
    }
}

#[test]
fn the_name_of_a_foreign_kind_cannot_steer_a_terminal() {
    let loaded = text("apiVersion: v1\nkind: \"Po\\e[2Jd\"\nmetadata: {name: a}");
    assert_eq!(loaded.ignored.keys().collect::<Vec<_>>(), ["Po\\u{1b}[2Jd"]);
}
