//! The container file is only text here: no engine builds it where the tests run. What can be told from its text is held.

use crate::none;
use crate::tool::{read, root};

fn wrong(file: &str, toolchain: &str) -> Vec<String> {
    let lines: Vec<&str> = file.lines().map(str::trim).filter(|line| !line.starts_with('#')).collect();
    let after = |word: &str| lines.iter().filter_map(|line| line.strip_prefix(word)).map(str::trim).collect::<Vec<_>>();
    let (stages, last) = (after("FROM "), lines.iter().rposition(|line| line.starts_with("FROM ")).unwrap_or(0));
    let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = \"")?.strip_suffix('"'));
    let channel = channel.unwrap_or("a toolchain without a channel");
    let ends = |word: &str| lines[last..].iter().find_map(|line| line.strip_prefix(word)).unwrap_or_default();
    let user: Vec<&str> = ends("USER ").split(':').collect();
    let numeric = user.iter().all(|part| part.parse::<u32>().is_ok_and(|id| id > 0));
    let rules = [
        (stages.len() == 3, "it builds in one stage, takes nft from another and ships a third".to_owned()),
        (
            stages.first().is_some_and(|stage| stage.contains(&format!("rust:{channel}-"))),
            format!("it builds with Rust {channel}"),
        ),
        (
            after("ENV ").contains(&format!("RUSTUP_TOOLCHAIN={channel}").as_str()),
            format!("it does not download another than {channel}"),
        ),
        (
            file.contains("cargo build --release --locked --package egret-cli --bin egret"),
            "it builds what is locked".to_owned(),
        ),
        (
            stages.iter().all(|stage| stage.contains(':') && !stage.contains(":latest")),
            "its images have tags".to_owned(),
        ),
        (
            stages.iter().take(2).all(|stage| stage.contains("bookworm"))
                && stages.last().is_some_and(|stage| stage.contains("debian12")),
            "all stages have one C library".to_owned(),
        ),
        (numeric, "it is a user with a number, not root".to_owned()),
        (ends("ENTRYPOINT ") == r#"["/usr/local/bin/egret"]"#, "it starts egret".to_owned()),
        (lines[last..].contains(&"COPY --from=build /egret /usr/local/bin/egret"), "it ships egret".to_owned()),
        (lines[last..].contains(&"COPY --from=nft /found /"), "it ships nft".to_owned()),
    ];
    rules.into_iter().filter(|(kept, _)| !kept).map(|(_, rule)| format!("not so: {rule}")).collect()
}

/// What is copied from the checkout and is not there, or is kept out of the build.
fn missing(file: &str, ignored: &str) -> Vec<String> {
    let copies = file.lines().filter_map(|line| line.strip_prefix("COPY ")).filter(|line| !line.starts_with("--from"));
    let sources = copies.flat_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[..words.len() - 1].to_vec()
    });
    let let_in: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let bad = sources.filter(|source| !root().join(source).exists() || !let_in.contains(source));
    bad.map(|source| format!("{source} is copied, but not there")).collect()
}

#[test]
fn the_container_file_is_true_to_this_checkout() {
    let file = read("deploy/Containerfile");
    none(&wrong(&file, &read("rust-toolchain.toml")));
    none(&missing(&file, &read("deploy/Containerfile.dockerignore")));
}

#[test]
fn a_container_file_that_is_not_is_refused() {
    let (file, toolchain) = (read("deploy/Containerfile"), read("rust-toolchain.toml"));
    let count = |old: &str, new: &str| wrong(&file.replacen(old, new, 1), &toolchain).len();
    assert_eq!(wrong(&file, "channel = \"1.0.0\"\n").len(), 2);
    assert_eq!(count("USER 65532:65532", "USER nonroot"), 1);
    assert_eq!(count("USER 65532:65532", "USER 0"), 1);
    assert_eq!(count("--locked ", ""), 1);
    assert_eq!(count("cc-debian12:nonroot", "cc-debian12"), 1);
    assert_eq!(count("slim-bookworm", "slim-trixie"), 1);
    assert_eq!(count("bookworm-slim", "trixie-slim"), 1);
    assert_eq!(count("COPY --from=nft /found /", ""), 1);
    assert_eq!(missing("COPY nowhere /\n", "!nowhere\n"), ["nowhere is copied, but not there"]);
    assert_eq!(missing("COPY crates /\n", "*\n"), ["crates is copied, but not there"]);
}
