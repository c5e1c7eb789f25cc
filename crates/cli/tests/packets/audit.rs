//! `egret audit --node`: what differs is told, and repaired when that is asked for.

use egret_netlab::{Family, alone, test_name};

use crate::world::{from_both, goes};

#[test]
fn what_differs_on_a_node_is_told_and_repaired() {
    alone(test_name!(), &[], || {
        from_both(1, |mut world| {
            let exit = world.with_web();
            world.kill("n1");
            let node = world.lab.node("n1");
            let audit = |more: &[&str]| {
                let words = [env!("CARGO_BIN_EXE_egret"), "audit", "/run/objects.json", "--node", "n1"];
                let state = ["--state-folder", "/run/egret-n1"];
                let words: Vec<&str> = words.into_iter().chain(state).chain(more.iter().copied()).collect();
                let output = node.output(words).unwrap();
                (output.status.code(), String::from_utf8(output.stdout).unwrap())
            };
            let (code, text) = audit(&[]);
            assert_eq!(code, Some(0), "{text}");
            assert!(text.contains("the kernel is as it should be"), "{text}");

            let pod = world.lab.pod("a").address(Family::V4).to_string();
            node.run(["ip", "rule", "del", "priority", "5000", "from", &pod]).unwrap();
            let element = format!("delete element inet egret service-snat-v4 {{ {pod} }}");
            node.nft(&element).unwrap();
            let (code, text) = audit(&[]);
            assert_eq!(code, Some(1), "{text}");
            for expected in ["NODE n1 (2 differences)", &format!("from {pod}/32 lookup 1234"), "service-snat-v4"] {
                assert!(text.contains(expected), "{expected} is not in\n{text}");
            }
            let (code, text) = audit(&["-o", "json"]);
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!((code, json["drifts"].as_array().map(Vec::len)), (Some(1), Some(2)), "{text}");

            let (code, text) = audit(&["--repair"]);
            assert_eq!(code, Some(0), "{text}");
            assert!(text.contains("REPAIRED") && text.contains("the kernel is as it should be"), "{text}");
            goes(&world, "a", "blue", &exit.external);
            world.clean_up("n1");
        })
    });
}
