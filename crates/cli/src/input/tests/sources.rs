use std::os::unix::fs::symlink;
use std::sync::Mutex;

use super::*;

fn folder(path: &Path) -> Loaded {
    load_from(&[Source::Path(path.to_owned())], &mut &b""[..], &Silent)
}

/// Writes down what it is told.
struct Names(Mutex<Vec<String>>);

impl Progress for Names {
    fn file(&self, name: &str, objects_so_far: usize) {
        self.0.lock().unwrap().push(format!("{} {objects_so_far}", short(name)));
    }
}

#[test]
fn lists_are_taken_apart_and_lend_their_type() {
    let loaded = text(
        "apiVersion: k8s.ovn.org/v1\nkind: EgressIPList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n---\n\
         apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: c}\n",
    );
    assert_eq!(told(&loaded), "");
    assert_eq!(keys(&loaded), ["<stdin>:10", "<stdin>:4", "<stdin>:5"]);
    assert_eq!(loaded.objects, 3);
}

#[test]
fn a_list_may_be_empty() {
    let loaded = text("{kind: List, items: null}\n---\n{kind: NodeList, items: []}\n");
    assert_eq!((loaded.objects, loaded.has_errors()), (0, false));
}

#[test]
fn a_kind_that_only_ends_in_list_is_an_object() {
    let loaded = text("apiVersion: x/v1\nkind: AllowList\nmetadata: {name: a}\n");
    assert_eq!(loaded.ignored.get("AllowList"), Some(&1));
}

#[test]
fn documents_json_bom_and_line_ends_mix() {
    let input = format!(
        "\u{FEFF}---\r\n{}---\r\n\r\n---\r\n# nothing\r\n---\r\n{}\r\n--- {}\n",
        NODE.replace('\n', "\r\n"),
        r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}{"apiVersion":"v1","kind":"Node","metadata":{"name":"c"}}"#,
        r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "d"}}"#,
    );
    let loaded = text(input);
    assert_eq!(told(&loaded), "");
    assert_eq!(keys(&loaded), ["<stdin>:11", "<stdin>:11", "<stdin>:12", "<stdin>:2"]);
}

#[test]
fn yaml_in_flow_style_is_not_taken_for_json() {
    assert_eq!(told(&text("{apiVersion: v1, kind: Node, metadata: {name: a}}")), "");
}

#[test]
fn anchors_and_merges_are_expanded() {
    let loaded = text(
        "kind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: &meta\n    labels: &labels {a: b}\n    name: a\n\
         - apiVersion: v1\n  kind: Node\n  metadata:\n    <<: *meta\n    name: b\n    copy: *labels\n",
    );
    assert_eq!(told(&loaded), "");
    assert_eq!(loaded.objects, 2);
}

#[test]
fn a_must_gather_is_read_in_the_order_of_its_paths() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path();
    write(path, "cluster-scoped-resources/core/nodes/b.yaml", NODE.replace("worker-1", "b"));
    write(path, "cluster-scoped-resources/core/nodes/a.yaml", NODE.replace("worker-1", "a"));
    write(
        path,
        "namespaces/shop/core/services.yaml",
        "apiVersion: v1\nkind: ServiceList\nitems:\n- metadata: {name: web, namespace: shop}\n",
    );
    write(
        path,
        "namespaces/shop/core/pods.json",
        r#"{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"p"}}]}"#,
    );
    write(path, "version.json", r#"{"clientVersion": {}}"#);
    write(path, "empty.yml", "");
    write(path, "namespaces/shop/pods/web/log.log", "\t{");
    let names = Names(Mutex::default());
    let loaded = load_from(&[Source::Path(path.to_owned())], &mut &b""[..], &names);
    assert_eq!(told(&loaded), "");
    let names = names.0.into_inner().unwrap();
    assert_eq!(names, ["a.yaml 0", "b.yaml 1", "empty.yml 2", "pods.json 2", "services.yaml 3", "version.json 4"]);
    assert_eq!(
        loaded.ignored.iter().map(|(kind, &count)| (kind.as_str(), count)).collect::<Vec<_>>(),
        [("(not of Kubernetes)", 1), ("Pod", 1)]
    );
}

#[test]
fn loops_of_links_end_and_no_file_is_read_twice() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "..data/a.yaml", NODE);
    symlink("..", root.path().join("..data/up")).unwrap();
    symlink("..data/a.yaml", root.path().join("a.yaml")).unwrap();
    symlink("self.yaml", root.path().join("self")).unwrap();
    let loaded = folder(root.path());
    assert_eq!(told(&loaded), "");
    assert_eq!(loaded.objects, 1);
}

#[test]
fn a_folder_without_manifests_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "readme.txt", "x");
    let loaded = folder(root.path());
    assert!(loaded.has_errors());
    assert!(loaded.diagnostics[0].message().starts_with("this folder holds no .yaml"));
}

#[test]
fn what_cannot_be_read_is_an_error_with_its_path() {
    let root = tempfile::tempdir().unwrap();
    symlink("nowhere", root.path().join("dangling.yaml")).unwrap();
    write(root.path(), "good.yaml", NODE);
    let loaded = folder(root.path());
    assert_eq!(loaded.objects, 1);
    assert_eq!(short(loaded.diagnostics[0].file()), "dangling.yaml");
    let loaded = load_from(&["/nonexistent/a.yaml".into()], &mut &b""[..], &Silent);
    insta::assert_snapshot!(told(&loaded), @r#"
    error: failed to read the input: No such file or directory (os error 2)
    --> /nonexistent/a.yaml
     = help: check the path
    "#);
}

#[test]
fn input_without_objects_is_a_warning() {
    let loaded = text("");
    assert!(!loaded.has_errors());
    insta::assert_snapshot!(told(&loaded), @r#"
    warning: the input holds no object
    --> <stdin>
     = help: did the command that wrote it fail? its errors are not in the file
    "#);
}

#[test]
fn the_later_of_two_different_objects_counts_and_both_are_named() {
    let loaded = text(format!("{NODE}---\n{NODE}  labels: {{a: b}}\n---\n{NODE}  labels: {{a: b}}\n"));
    assert_eq!(loaded.objects, 3);
    insta::assert_snapshot!(told(&loaded), @r#"
    warning: Node worker-1 is in the input twice, and differs
     --> <stdin>:9:9
      |
    9 |   name: worker-1
      |         ^^^^^^^^
      |
     ::: <stdin>:4:9
      |
    4 |   name: worker-1
      |         -------- the earlier one
      |
      = help: the later one is used; remove the other one
    "#);
    assert_eq!(loaded.diagnostics[0].earlier(), Some(("<stdin>", Some(4))));
}

#[test]
fn thousands_of_replaced_objects_are_summed_up() {
    use std::fmt::Write;
    let dump = |label: &str| {
        let mut dump = String::new();
        for number in 0..100 {
            write!(dump, "---\napiVersion: v1\nkind: Node\nmetadata: {{name: n{number}, labels: {{a: {label}}}}}\n")
                .unwrap();
        }
        dump
    };
    let loaded = text(dump("b") + &dump("c"));
    assert_eq!(loaded.diagnostics.len(), 21);
    assert_eq!(loaded.diagnostics[20].message(), "80 more objects are in the input twice");
}

#[test]
fn a_dash_is_standard_input() {
    assert_eq!(Source::from("-"), Source::Stdin);
    assert_eq!(Source::from("./-"), Source::Path("./-".into()));
}
