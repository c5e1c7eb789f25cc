use egret_api::{Fault, FieldPath};

use super::*;

const DUMP: &str = r#"# a dump
apiVersion: v1
kind: List
items:
- kind: Node
  metadata:
    name: n1
- kind: EgressIP
  metadata:
    annotations:
      "k8s.ovn.org/x": '{"a":"b"}'
      k8s.ovn.org/y: |
        {"a": 1}
    name: "a\u0062c"
  spec: &spec
    egressIPs:
      - 10.0.0.1
      - "10.0.0.2"
    empty:
    nothing: {}
    on: x
- kind: EgressIP
  metadata: {name: b, labels: {ä: ö, "long": z}}
  spec: *spec
- kind: EgressIP
  spec: {<<: *spec, own: 1}
"#;

fn path(text: &str) -> FieldPath {
    text.split('.').filter(|step| !step.is_empty()).fold(FieldPath::default(), |path, step| match step.parse() {
        Ok(index) => path.index(index),
        Err(_) => path.key(&step.replace('~', ".")),
    })
}

/// Line, column and underlined text of the value at this path of the item of a dump.
fn place(dump: &str, item: usize, steps: &str) -> (usize, usize, String) {
    let file = file::File::new("dump.yaml", dump.to_owned());
    let document = file::Document::new(&file, 0..dump.len());
    let place = Origin::new(&document).item(item).place(&path(steps));
    (place.line().unwrap(), place.column().unwrap(), place.marked().to_owned())
}

#[test]
fn every_value_is_found() {
    for (item, steps, line, column, marked) in [
        (0, "metadata.name", 7, 11, "n1"),
        (1, "metadata.annotations.k8s~ovn~org/x", 11, 24, r#"'{"a":"b"}'"#),
        (1, "metadata.name", 14, 11, r#""a\u0062c""#),
        (1, "spec.egressIPs.1", 18, 9, "\"10.0.0.2\""),
        (1, "spec.true", 21, 9, "x"),
        (2, "metadata.labels.ä", 23, 35, "ö"),
        (2, "metadata.labels.long", 23, 46, "z"),
    ] {
        assert_eq!(place(DUMP, item, steps), (line, column, marked.to_owned()), "{steps}");
    }
}

#[test]
fn a_collection_or_an_empty_value_is_shown_by_its_key() {
    assert_eq!(place(DUMP, 1, "spec"), (15, 3, "spec".to_owned()));
    assert_eq!(place(DUMP, 1, "spec.egressIPs"), (16, 5, "egressIPs".to_owned()));
    assert_eq!(place(DUMP, 1, "spec.empty"), (19, 5, "empty".to_owned()));
    assert_eq!(place(DUMP, 1, "spec.nothing"), (20, 5, "nothing".to_owned()));
}

#[test]
fn what_is_absent_is_shown_by_what_should_hold_it() {
    assert_eq!(place(DUMP, 1, "spec.egressNodeSelector.matchLabels"), (15, 3, "spec".to_owned()));
    assert_eq!(place(DUMP, 1, "spec.egressIPs.7"), (16, 5, "egressIPs".to_owned()));
    assert_eq!(place(DUMP, 0, "spec.egressIPs"), (5, 3, "kind".to_owned()));
    assert_eq!(place(DUMP, 1, "metadata.name.deeper"), (14, 11, r#""a\u0062c""#.to_owned()));
    assert_eq!(place(DUMP, 9, "spec"), (4, 1, "items".to_owned()));
}

#[test]
fn aliases_and_merges_are_followed_to_what_they_stand_for() {
    assert_eq!(place(DUMP, 2, "spec"), (24, 9, "*spec".to_owned()));
    assert_eq!(place(DUMP, 2, "spec.egressIPs.0"), (17, 9, "10.0.0.1".to_owned()));
    assert_eq!(place(DUMP, 3, "spec.egressIPs.0"), (17, 9, "10.0.0.1".to_owned()));
    assert_eq!(place(DUMP, 3, "spec.own"), (26, 26, "1".to_owned()));
}

#[test]
fn a_block_scalar_is_shown_by_one_line() {
    let (line, _, marked) = place(DUMP, 1, "metadata.annotations.k8s~ovn~org/y");
    assert!((12..=13).contains(&line) && !marked.contains('\n'), "{line} {marked:?}");
}

#[test]
fn json_has_places_too() {
    let dump =
        "{\n\t\"kind\": \"List\",\n\t\"items\": [\n\t\t{\"spec\": {\"egressIPs\": [\"10.0.0.1\", \"x\\/y\"]}}\n\t]\n}";
    assert_eq!(place(dump, 0, "spec.egressIPs.1"), (4, 39, r#""x\/y""#.to_owned()));
    assert_eq!(place(dump, 0, "spec.none"), (4, 4, "\"spec\"".to_owned()));
}

#[test]
fn a_second_json_value_has_places_of_its_own() {
    let loaded = text(
        "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}}\n  \
         {\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {}}",
    );
    insta::assert_snapshot!(told(&loaded), @r#"
    error: metadata.name: required, but missing
     --> <stdin>:2:40
      |
    2 |   {"apiVersion": "v1", "kind": "Node", "metadata": {}}
      |                                        ^^^^^^^^^^
      |
      = note: in Node
    "#);
}

/// A fault at `spec.egressIPs` of the only object of this input.
fn fault(input: &str) -> Diagnostic {
    let loaded = text(input);
    assert_eq!(told(&loaded), "");
    let fault = Fault {
        path: FieldPath::of(&["spec", "egressIPs"]),
        message: "has to be a list".to_owned(),
        help: Some("write a list of addresses".to_owned()),
    };
    Diagnostic::of_fault(loaded.origins.values().next().unwrap(), &fault).with_object("EgressIP a")
}

#[test]
fn a_fault_is_shown_under_its_value() {
    let shown = fault(
        "apiVersion: k8s.ovn.org/v1\r\nkind: EgressIP\r\nmetadata:\r\n  name: a\r\nspec:\r\n  egressIPs: 10.0.0.1\r\n",
    );
    insta::assert_snapshot!(shown.render(Style::default()), @r#"
    error: spec.egressIPs: has to be a list
     --> <stdin>:6:14
      |
    6 |   egressIPs: 10.0.0.1
      |              ^^^^^^^^
      |
      = note: in EgressIP a
      = help: write a list of addresses
    "#);
    let position = (shown.severity(), shown.file(), shown.line(), shown.column());
    assert_eq!(position, (Severity::Error, "<stdin>", Some(6), Some(14)));
    assert_eq!((shown.object(), shown.help()), (Some("EgressIP a"), Some("write a list of addresses")));
}

#[test]
fn long_lines_are_cut_around_the_caret() {
    let long = "x".repeat(4_000_000);
    let input = format!(
        "{{\"apiVersion\": \"k8s.ovn.org/v1\", \"kind\": \"EgressIP\", \"metadata\": {{\"name\": \"a\", \"u\": \"{long}\"}}, \
         \"spec\": {{\"egressIPs\": \"10.0.0.1\"}}, \"status\": \"{long}\"}}"
    );
    let shown = fault(&input).render(Style { colour: false, width: 80 });
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.iter().skip(1).all(|line| line.chars().count() <= 80), "{shown}");
    let caret = lines.iter().find_map(|line| line.find('^')).unwrap();
    let source = lines.iter().find(|line| line.starts_with('1')).unwrap();
    assert_eq!(&source[caret..caret + 10], "\"10.0.0.1\"");
    let column = input.find("\"10.0.0.1\"").unwrap() + 1;
    assert!(lines[1].ends_with(&format!("--> <stdin>:1:{column}")), "{shown}");
}

#[test]
fn a_long_value_is_cut_itself() {
    let long = "x".repeat(5000);
    let input =
        format!("apiVersion: k8s.ovn.org/v1\nkind: EgressIP\nmetadata: {{name: a}}\nspec:\n  egressIPs: '{long}'\n");
    let shown = fault(&input).into_warning().render(Style { colour: false, width: 60 });
    let source = shown.lines().find(|line| line.starts_with('5')).unwrap();
    assert!(source.contains("...") && source.chars().count() <= 60, "{shown}");
}

#[test]
fn colour_is_a_choice() {
    let origin = |loaded: &Loaded| loaded.origins.values().next().unwrap().clone();
    let fault = Fault { path: FieldPath::of(&["metadata", "name"]), message: "bad \u{1b}[2J".to_owned(), help: None };
    let diagnostic = Diagnostic::of_fault(&origin(&text(NODE)), &fault).with_object("Node \u{7}");
    assert!(!diagnostic.render(Style::default()).contains('\u{1b}'));
    let coloured = diagnostic.render(Style { colour: true, width: 80 });
    assert!(coloured.contains("\u{1b}[") && !coloured.contains("\u{1b}[2J") && !coloured.contains('\u{7}'));
}
