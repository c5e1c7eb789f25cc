//! What the folders render to, and that it fits together.

use egret_api::crd::definitions;
use egret_controller::ADMIN_PORT;
use serde_json::{Value, json};

use crate::manifests::{Manifests, chart, key, rendered};
use crate::none;
use crate::tool::{printed, read, root};

const ACCOUNT: &str = "system:serviceaccount:egret-system:egret-controller";
const AGENT: &str = "system:serviceaccount:egret-system:egret-agent";

/// The monitoring kinds too; they belong to the Prometheus operator.
fn everything() -> Manifests {
    rendered("overlays/ovn-kubernetes", &["cloud", "monitoring"])
}

fn pod(manifests: &Manifests) -> Value {
    manifests.get("Deployment", "egret-controller")["spec"]["template"].clone()
}

fn agent(manifests: &Manifests) -> Value {
    manifests.get("DaemonSet", "egret-agent")["spec"]["template"].clone()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

#[test]
fn definitions_are_those_that_egret_prints() {
    let yaml = |definition| format!("---\n{}", serde_saphyr::to_string(definition).expect("YAML"));
    let printed: String = definitions(false).iter().map(yaml).collect();
    assert!(printed == read("deploy/crds/egress.yaml"), "`egret crds > deploy/crds/egress.yaml` brings it up to date");
}

#[test]
fn the_chart_renders_what_kustomize_does() {
    // Helm neither makes the namespace nor upgrades definitions, so these are not in it.
    let not_helms = ["Namespace", "CustomResourceDefinition"];
    let base = rendered("base", &[]).without(&not_helms).sorted();
    none(&differences(&chart(&[]).sorted(), &base));
    let mut whole = everything().without(&not_helms);
    let deployment = whole.0.iter_mut().find(|object| object["kind"] == "Deployment").expect("it is there");
    let environment = deployment.pointer_mut("/spec/template/spec/containers/0/env").and_then(Value::as_array_mut);
    environment.expect("it has some").push(json!({"name": "EGRET_PLATFORM", "value": "aws"}));
    let values = ["ovnKubernetes=true", "platform=aws", "monitoring=true"];
    none(&differences(&chart(&values).sorted(), &whole.sorted()));
    let without = base.iter().filter(|object| object["kind"] != "DaemonSet").cloned().collect::<Vec<_>>();
    none(&differences(&chart(&["agent.enabled=false"]).sorted(), &without));
}

/// What is only here, only there, or not the same.
fn differences(charts: &[Value], wanted: &[Value]) -> Vec<String> {
    let told = |what: &str, object: &Value, others: &[Value]| {
        (!others.contains(object)).then(|| format!("{what}: {:?}", key(object)))
    };
    let only_charts = charts.iter().filter_map(|object| told("the chart alone has", object, wanted));
    only_charts.chain(wanted.iter().filter_map(|object| told("the chart has not", object, charts))).collect()
}

#[test]
fn values_of_the_chart_reach_the_pod_and_the_namespace_everything() {
    let values = [
        "image.repository=registry.example/egret",
        "image.tag=1.2.3",
        "replicas=1",
        "env.EGRET_PROBE_PORT=9107",
        "tolerations[0].key=spot",
        "nodeSelector.pool=infra",
        "podAnnotations.team=network",
        "agent.env.EGRET_HEALTH_PORT=9107",
        "agent.nodeSelector.pool=edge",
    ];
    let manifests = chart(&values);
    let deployment = manifests.get("Deployment", "egret-controller");
    let template = pod(&manifests);
    let container = &template["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.example/egret:1.2.3");
    assert_eq!(deployment["spec"]["replicas"], 1);
    let environment = container["env"].as_array().expect("a list");
    assert!(environment.contains(&json!({"name": "EGRET_PROBE_PORT", "value": "9107"})), "{environment:?}");
    let tolerations = template["spec"]["tolerations"].as_array().expect("a list");
    assert!(tolerations.len() > 1 && tolerations.contains(&json!({"key": "spot"})), "{tolerations:?}");
    assert_eq!(template["spec"]["nodeSelector"], json!({"pool": "infra"}));
    assert_eq!(template["metadata"]["annotations"]["team"], "network");
    let template = agent(&manifests);
    let container = &template["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.example/egret:1.2.3");
    let environment = container["env"].as_array().expect("a list");
    assert!(environment.contains(&json!({"name": "EGRET_HEALTH_PORT", "value": "9107"})), "{environment:?}");
    assert_eq!(template["spec"]["nodeSelector"], json!({"pool": "edge"}));

    let elsewhere = ["template", "egret", "chart", "--namespace", "elsewhere", "--kube-version", "1.33.0"];
    let everything = [elsewhere.as_slice(), &["--set", "monitoring=true,platform=gcp"]].concat();
    let text = printed("helm", &root().join("deploy"), &everything);
    assert!(text.contains("system:serviceaccount:elsewhere:egret-controller"));
    assert!(text.contains("system:serviceaccount:elsewhere:egret-agent"));
    assert!(!text.contains("egret-system"), "something stays behind");
}

#[test]
fn helm_has_nothing_against_the_chart() {
    let said = printed("helm", &root().join("deploy"), &["lint", "--strict", "chart", "--kube-version", "1.33.0"]);
    assert!(said.contains("0 chart(s) failed"), "{said}");
}

/// What refers to something that is not there, or to another thing than it means.
fn loose_ends(manifests: &Manifests) -> Vec<String> {
    let mut complaints = Vec::new();
    let template = pod(manifests);
    let labels = &template["metadata"]["labels"];
    let mut selects = |what: &str, selector: &Value, labels: &Value| {
        let missing = selector.as_object().is_none_or(|wanted| {
            wanted.is_empty() || wanted.iter().any(|(name, value)| labels.get(name) != Some(value))
        });
        if missing {
            complaints.push(format!("{what} selects {selector}, not {labels}"));
        }
    };
    let controller = "egret-controller";
    let deployment = manifests.get("Deployment", controller);
    let service = manifests.get("Service", controller);
    let monitor = manifests.get("ServiceMonitor", controller);
    let budget = manifests.get("PodDisruptionBudget", controller);
    selects("the Deployment", &deployment["spec"]["selector"]["matchLabels"], labels);
    selects("the Service", &service["spec"]["selector"], labels);
    selects("the PodDisruptionBudget", &budget["spec"]["selector"]["matchLabels"], labels);
    selects("the ServiceMonitor", &monitor["spec"]["selector"]["matchLabels"], &service["metadata"]["labels"]);
    let apart =
        "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchLabels";
    selects("the anti-affinity", template.pointer(apart).unwrap_or(&Value::Null), labels);
    let spread = template.pointer("/spec/topologySpreadConstraints/0/labelSelector/matchLabels");
    selects("the topology spread", spread.unwrap_or(&Value::Null), labels);

    let container = &template["spec"]["containers"][0];
    let port = &container["ports"][0];
    let named = [
        ("the Service", &service["spec"]["ports"][0]["targetPort"]),
        ("the liveness probe", &container["livenessProbe"]["httpGet"]["port"]),
        ("the readiness probe", &container["readinessProbe"]["httpGet"]["port"]),
    ];
    for (what, name) in named.into_iter().filter(|(_, name)| **name != port["name"]) {
        complaints.push(format!("{what} wants port {name}, not {}", port["name"]));
    }
    if monitor["spec"]["endpoints"][0]["port"] != service["spec"]["ports"][0]["name"] {
        complaints.push("the ServiceMonitor wants another port than the Service has".to_owned());
    }
    if port["containerPort"] != ADMIN_PORT || service["spec"]["ports"][0]["port"] != ADMIN_PORT {
        complaints.push(format!("the admin port is {ADMIN_PORT}"));
    }
    complaints
}

#[test]
fn everything_refers_to_what_is_there() {
    none(&loose_ends(&everything()));
}

#[test]
fn a_reference_to_nothing_is_found() {
    let broken = |kind: &str, pointer: &str| {
        let mut manifests = everything();
        let object = manifests.0.iter_mut().find(|object| object["kind"] == kind).expect("one of this kind");
        *object.pointer_mut(pointer).expect("it is there") = json!("other");
        loose_ends(&manifests).len()
    };
    let label = "app.kubernetes.io~1name";
    assert_eq!(broken("Service", &format!("/spec/selector/{label}")), 1);
    assert_eq!(broken("Service", &format!("/metadata/labels/{label}")), 1);
    assert_eq!(broken("Service", "/spec/ports/0/targetPort"), 1);
    assert_eq!(broken("PodDisruptionBudget", &format!("/spec/selector/matchLabels/{label}")), 1);
    assert_eq!(broken("Deployment", "/spec/template/spec/containers/0/livenessProbe/httpGet/port"), 1);
    assert_eq!(broken("Deployment", "/spec/template/spec/containers/0/ports/0/containerPort"), 1);
}

#[test]
fn roles_are_bound_to_the_account_of_the_pod() {
    let manifests = everything();
    for (pod, name) in [(pod(&manifests), "egret-controller"), (agent(&manifests), "egret-agent")] {
        let account = manifests.get("ServiceAccount", name);
        assert_eq!(pod["spec"]["serviceAccountName"], account["metadata"]["name"]);
    }
    let bindings =
        manifests.0.iter().filter(|object| object["kind"].as_str().is_some_and(|kind| kind.ends_with("RoleBinding")));
    let mut bound = Vec::new();
    for binding in bindings {
        let subjects = binding["subjects"].as_array().expect("a list");
        let [subject] = subjects.as_slice() else { panic!("{subjects:?}") };
        let user = format!("system:serviceaccount:{}:{}", text(&subject["namespace"]), text(&subject["name"]));
        let agents = text(&binding["roleRef"]["name"]) == "egret-agent";
        assert_eq!(
            (text(&subject["kind"]), user.as_str()),
            ("ServiceAccount", if agents { AGENT } else { ACCOUNT }),
            "nobody else is given anything"
        );
        manifests.get(text(&binding["roleRef"]["kind"]), text(&binding["roleRef"]["name"]));
        bound.push(text(&binding["roleRef"]["name"]));
    }
    bound.sort_unstable();
    assert_eq!(bound, ["egret-agent", "egret-controller", "egret-controller", "egret-controller-cloud"]);
}

#[test]
fn no_role_has_wildcards_and_the_cloud_is_only_for_clouds() {
    for manifests in [rendered("base", &[]), everything()] {
        for role in manifests.0.iter().filter(|object| object.get("rules").is_some()) {
            assert!(!role["rules"].to_string().contains('*'), "{role}");
        }
    }
    let controllers = rendered("base", &[]).get("ClusterRole", "egret-controller").to_string();
    assert!(!controllers.contains("cloudprivateipconfigs"));
}

/// What a pod must be, whatever else it is.
fn lax(template: &Value) -> Vec<String> {
    let (pod, container) = (&template["spec"], &template["spec"]["containers"][0]);
    let (security, inner) = (&pod["securityContext"], &container["securityContext"]);
    let environment = container["env"].as_array().cloned().unwrap_or_default();
    let from = |name: &str, path: &str| {
        environment.contains(&json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}))
    };
    let rules = [
        (security["runAsNonRoot"] == true && security["runAsUser"].as_u64() > Some(0), "it is not root"),
        (security["seccompProfile"]["type"] == "RuntimeDefault", "system calls are filtered"),
        (inner["readOnlyRootFilesystem"] == true, "it cannot write to its files"),
        (inner["allowPrivilegeEscalation"] == false, "it cannot become more"),
        (inner["capabilities"] == json!({"drop": ["ALL"]}), "it has no capability"),
        (pod["priorityClassName"] == "system-cluster-critical", "it is not evicted for others"),
        (container["resources"]["requests"].is_object(), "it has what it needs"),
        (container["resources"]["limits"].get("cpu").is_none(), "it is not throttled"),
        // In the network of the host, HOSTNAME is the node's.
        (from("EGRET_POD_NAME", "metadata.name"), "it knows its pod"),
        (from("EGRET_NAMESPACE", "metadata.namespace"), "it knows its namespace"),
        (container["args"] == json!(["controller"]), "it is the controller"),
        (container["livenessProbe"]["httpGet"]["path"] == "/healthz", "it is restarted when it is stuck"),
        (container["readinessProbe"]["httpGet"]["path"] == "/readyz", "it says when it is ready"),
    ];
    rules.iter().filter(|(kept, _)| !kept).map(|(_, rule)| format!("not so: {rule}")).collect()
}

#[test]
fn the_pod_has_no_more_power_than_it_needs_and_knows_who_it_is() {
    let template = pod(&rendered("base", &[]));
    none(&lax(&template));
    assert_eq!(lax(&json!({})).len(), 12, "all but the absent limit");
    for (kept, _) in [("/spec/securityContext/runAsNonRoot", 0), ("/spec/containers/0/args/0", 0)] {
        let mut other = template.clone();
        *other.pointer_mut(kept).expect("it is there") = json!("other");
        assert_eq!(lax(&other).len(), 1, "{kept}");
    }
}

/// What the pod of an agent must be, whatever else it is.
fn lax_agent(template: &Value) -> Vec<String> {
    let (pod, container) = (&template["spec"], &template["spec"]["containers"][0]);
    let inner = &container["securityContext"];
    let environment = container["env"].as_array().cloned().unwrap_or_default();
    let node = json!({"name": "EGRET_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}});
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (mounts, volumes) = (list(&container["volumeMounts"]), list(&pod["volumes"]));
    let writable =
        mounts.iter().filter(|mount| mount["readOnly"] != true).filter_map(|mount| mount["mountPath"].as_str());
    let host = volumes.iter().filter_map(|volume| volume["hostPath"]["path"].as_str());
    let folders = ["/run/egret", "/proc/sys/net", "/etc/iproute2", "/usr/share"];
    let rules = [
        (inner["capabilities"] == json!({"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]}), "it has two capabilities"),
        (inner.get("privileged").is_none() && pod.get("hostPID").is_none(), "it is not privileged"),
        (pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", "system calls are filtered"),
        (inner["readOnlyRootFilesystem"] == true, "it cannot write to its files"),
        (inner["allowPrivilegeEscalation"] == false, "it cannot become more"),
        (writable.eq(["/run/egret", "/host/proc/sys/net"]), "two folders of the host are writable"),
        (host.eq(folders), "it sees four folders of the host"),
        (pod["hostNetwork"] == true, "it is in the network that it keeps"),
        (pod["tolerations"] == json!([{"operator": "Exists"}]), "it is on every node"),
        (pod["priorityClassName"] == "system-node-critical", "it is not evicted for others"),
        (container["resources"]["limits"].get("cpu").is_none(), "it is not throttled"),
        (environment.contains(&node), "it knows its node"),
        (container["args"] == json!(["agent"]), "it is the agent"),
        (
            container["ports"][0] == json!({"name": "admin", "containerPort": egret_agent::ADMIN_PORT}),
            "it has its port",
        ),
        (container["livenessProbe"]["httpGet"] == json!({"path": "/healthz", "port": "admin"}), "it is restarted"),
        (
            container["readinessProbe"]["httpGet"] == json!({"path": "/readyz", "port": "admin"}),
            "it says when it is ready",
        ),
    ];
    rules.iter().filter(|(kept, _)| !kept).map(|(_, rule)| format!("not so: {rule}")).collect()
}

#[test]
fn an_agent_has_no_more_power_than_it_needs_and_runs_everywhere() {
    let manifests = everything();
    let template = agent(&manifests);
    none(&lax_agent(&template));
    assert_eq!(lax_agent(&json!({})).len(), 14, "all but the absent limit and privileges");
    let labels = &template["metadata"]["labels"];
    for selector in ["/spec/selector/matchLabels", "/spec/updateStrategy/rollingUpdate"] {
        let found = manifests.get("DaemonSet", "egret-agent").pointer(selector).expect("it is there");
        assert!(found == labels || *found == json!({"maxSurge": 0, "maxUnavailable": 1}), "{found}");
    }
    let monitor = &manifests.get("PodMonitor", "egret-agent")["spec"];
    assert_eq!(&monitor["selector"]["matchLabels"], labels);
    assert_eq!(monitor["podMetricsEndpoints"][0]["port"], "admin");
}

/// What the manifest sets is what the agent reads.
#[test]
fn the_folders_of_the_agent_are_where_it_is_told_to_look() {
    let template = agent(&rendered("base", &[]));
    let container = &template["spec"]["containers"][0];
    let value = |name: &str| {
        let environment = container["env"].as_array().expect("a list");
        let found = environment.iter().find(|variable| variable["name"] == name);
        text(&found.unwrap_or_else(|| panic!("{name} is not set"))["value"]).to_owned()
    };
    let mounted = container["volumeMounts"].as_array().expect("a list");
    let inside = |path: &str| mounted.iter().any(|mount| path.starts_with(text(&mount["mountPath"])));
    assert!(inside(&format!("{}/net", value("EGRET_PROC_SYS"))));
    let usual = egret_agent::Config::new("n1").files;
    let names: Vec<String> = value("EGRET_TABLE_NAMES").split(',').map(str::to_owned).collect();
    let expected = usual.table_names.iter().map(|path| format!("/host{}", path.display()));
    assert!(names.iter().all(|path| inside(path)) && names.iter().cloned().eq(expected), "{names:?}");
    assert!(inside(&usual.state.display().to_string()));
}

#[test]
fn two_replicas_never_share_a_node_nor_go_at_once() {
    let manifests = rendered("base", &[]);
    let deployment = &manifests.get("Deployment", "egret-controller")["spec"];
    assert_eq!(deployment["replicas"], 2);
    // Both want one port of the host: a third pod beside them might find no node.
    assert_eq!(deployment["strategy"]["rollingUpdate"], json!({"maxSurge": 0, "maxUnavailable": 1}));
    let apart = &deployment["template"]["spec"]["affinity"]["podAntiAffinity"];
    assert_eq!(apart["requiredDuringSchedulingIgnoredDuringExecution"][0]["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(manifests.get("PodDisruptionBudget", "egret-controller")["spec"]["maxUnavailable"], 1);
}

#[test]
fn the_overlay_differs_from_the_base_in_the_policy_alone() {
    let keys = |folder| rendered(folder, &[]).sorted().iter().map(key).collect::<Vec<_>>();
    let renamed = |(kind, namespace, name): (String, String, String)| {
        let theirs = kind == "ValidatingAdmissionPolicy" && name == "egret-egressip-mark";
        (kind, namespace, if theirs { "egressip-mark-annotation-validation".to_owned() } else { name })
    };
    let mut expected: Vec<_> = keys("base").into_iter().map(renamed).collect();
    expected.sort();
    assert_eq!(keys("overlays/ovn-kubernetes"), expected);
    for folder in ["base", "overlays/ovn-kubernetes"] {
        let manifests = rendered(folder, &[]);
        let binding = manifests.get("ValidatingAdmissionPolicyBinding", "egret-egressip-mark");
        let policy = manifests.get("ValidatingAdmissionPolicy", text(&binding["spec"]["policyName"]));
        assert!(policy.to_string().contains(ACCOUNT), "the account of the policy is that of the pod");
    }
}

#[test]
fn images_have_the_version_of_the_workspace() {
    let image = format!("egret:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(pod(&rendered("base", &[]))["spec"]["containers"][0]["image"], image);
    assert_eq!(pod(&chart(&[]))["spec"]["containers"][0]["image"], image);
    assert_eq!(agent(&chart(&[]))["spec"]["containers"][0]["image"], image);
}
