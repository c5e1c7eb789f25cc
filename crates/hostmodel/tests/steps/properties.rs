//! Random policies after one another, with agents that are killed in the middle.

use egret_hostmodel::{Datapath, State, Step, diff, drift, wanted};
use proptest::prelude::*;

use crate::model::Kernel;
use crate::policies::{any_policy, node, nothing};
use crate::prefixes::{state_of, walk};

fn any_datapath() -> impl Strategy<Value = Datapath> {
    prop_oneof![Just(Datapath::Direct), Just(Datapath::Ovn)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_step_leads_the_old_way_the_new_way_or_nowhere(
        policies in any_datapath().prop_flat_map(|datapath| proptest::collection::vec(any_policy(datapath), 1..4)),
    ) {
        let surroundings = node();
        let mut kernel = Kernel::new(&surroundings, policies[0].settings);
        for policy in policies.iter().chain([&nothing(Datapath::Direct)]) {
            let before = kernel.state.clone();
            let to = state_of(policy, &surroundings, &before);
            walk(&mut kernel, policies[0].datapath, &before, &to, usize::MAX);
        }
        prop_assert_eq!(kernel.state, State::default());
    }

    #[test]
    fn a_killed_agent_leaves_what_the_next_one_finishes(
        policies in any_datapath().prop_flat_map(|datapath| proptest::collection::vec(any_policy(datapath), 2)),
        most in 0..40_usize,
    ) {
        let surroundings = node();
        let mut kernel = Kernel::new(&surroundings, policies[0].settings);
        let first = state_of(&policies[0], &surroundings, &State::default());
        walk(&mut kernel, policies[0].datapath, &State::default(), &first, usize::MAX);
        let second = state_of(&policies[1], &surroundings, &kernel.state);
        walk(&mut kernel, policies[0].datapath, &first, &second, most);
        let again = state_of(&policies[1], &surroundings, &kernel.state);
        walk(&mut kernel, policies[0].datapath, &first, &again, usize::MAX);
    }

    #[test]
    fn what_is_wanted_does_not_depend_on_the_order_of_objects(policy in any_policy(Datapath::Direct)) {
        let mut other = policy.clone();
        other.services.reverse();
        other.addresses.reverse();
        let surroundings = node();
        prop_assert_eq!(
            wanted(&policy, &surroundings, &State::default()),
            wanted(&other, &surroundings, &State::default())
        );
    }

    #[test]
    fn there_is_drift_exactly_where_there_are_steps(
        [before, after] in [any_policy(Datapath::Direct), any_policy(Datapath::Direct)],
    ) {
        let surroundings = node();
        let [before, mut after] = [before, after].map(|policy| state_of(&policy, &surroundings, &State::default()));
        let told = drift(&before, &after);
        let only_comments = told.is_empty() && before != after;
        prop_assert_eq!(told.is_empty(), diff(&before, &after).is_empty() || only_comments);
        if only_comments {
            // Nothing but comments may differ then.
            for (set, keys) in after.table.iter_mut().flat_map(|table| &mut table.elements) {
                for (key, element) in keys {
                    let before = &before.table.as_ref().unwrap().elements[set][key];
                    prop_assert_eq!(&element.value, &before.value);
                    element.comment.clone_from(&before.comment);
                }
            }
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn steps_survive_being_written_down(policy in any_policy(Datapath::Direct)) {
        let surroundings = node();
        let steps = diff(&State::default(), &state_of(&policy, &surroundings, &State::default()));
        let text = serde_json::to_string(&steps).unwrap();
        prop_assert_eq!(serde_json::from_str::<Vec<Step>>(&text).unwrap(), steps);
    }
}
