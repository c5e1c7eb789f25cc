//! The names that a mistyped one may have meant.

/// How many are offered.
const OFFERED: usize = 3;

/// The names nearest to `wanted`, nearest first; none that is farther than half its length.
pub(crate) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ranked: Vec<(usize, &str)> = names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wanted.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance * 2 <= name.len().max(wanted.len()))
        .collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(OFFERED).map(|(_, name)| name).collect()
}

/// `; did you mean a, b or c?`, or nothing where no name is near.
pub(crate) fn did_you_mean<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(wanted, names).as_slice() {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [rest @ .., last] => format!("; did you mean {} or {last}?", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        let names = ["worker-1", "worker-2", "infra-1", "tenant-a"];
        assert_eq!(did_you_mean("wroker-1", names), "; did you mean worker-1 or worker-2?");
        assert_eq!(did_you_mean("zzz", names), "");
    }
}
