//! Whoever copies a command out of a page gets one that exists.

use clap::Parser;
use clap::error::ErrorKind;
use egret_cli::args::Cli;

use crate::none;
use crate::page::{pages, split};

/// The languages of blocks that are commands.
const SHELL: [&str; 3] = ["console", "sh", "shell"];

/// The commands of `egret` in a line for a shell, each as its words.
fn commands(line: &str) -> Vec<Vec<String>> {
    let line = line.trim().trim_start_matches("$ ");
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let (mut quote, mut begun) = (None, false);
    let end = |words: &mut Vec<String>, word: &mut String, begun: &mut bool| {
        if std::mem::take(begun) {
            words.push(std::mem::take(word));
        }
    };
    for char in line.chars() {
        match (char, quote) {
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => word.push(c),
            ('\'' | '"', None) => (quote, begun) = (Some(char), true),
            ('#', None) if !begun => break,
            ('|' | ';' | '&' | '>', None) => {
                end(&mut words, &mut word, &mut begun);
                all.push(std::mem::take(&mut words));
            }
            (c, None) if c.is_whitespace() => end(&mut words, &mut word, &mut begun),
            (c, None) => {
                word.push(c);
                begun = true;
            }
        }
    }
    end(&mut words, &mut word, &mut begun);
    all.push(words);
    // The binary answers as a plug-in of kubectl too.
    for words in &mut all {
        if words.len() > 1 && words[0] == "kubectl" && words[1] == "egret" {
            words.remove(0);
        }
    }
    all.retain(|words| words.first().is_some_and(|first| first == "egret"));
    all
}

/// What is wrong with a command; in running text its arguments may be left out.
fn complaint(words: &[String], in_text: bool) -> Option<String> {
    let error = Cli::try_parse_from(words).err()?;
    let placeholder = |word: &String| word.chars().all(|char| char.is_ascii_uppercase());
    let excused = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument => in_text,
        // `egret COMMAND --help`.
        ErrorKind::InvalidSubcommand | ErrorKind::InvalidValue => in_text && words.iter().any(placeholder),
        // `egret` by itself is the name of the program.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => in_text && words.len() == 1,
        _ => false,
    };
    (!excused).then(|| error.to_string())
}

/// The code spans of running text.
fn spans(prose: &str) -> Vec<String> {
    let flat = prose.split_whitespace().collect::<Vec<_>>().join(" ");
    flat.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_command_exists() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages() {
        let (blocks, prose) = split(&page.text);
        let shell = blocks.iter().filter(|block| SHELL.contains(&block.language.as_str()));
        let lines = shell.flat_map(|block| block.text.lines()).map(|line| (line.to_owned(), false));
        // Commands in lists are indented instead of fenced.
        let indented = prose.lines().filter(|line| line.starts_with("    ")).map(|line| (line.to_owned(), false));
        let spans = spans(&prose).into_iter().map(|span| (span, true));
        for (text, in_text) in lines.chain(indented).chain(spans) {
            for words in commands(&text) {
                count += 1;
                let complaint = complaint(&words, in_text);
                wrong.extend(complaint.map(|why| format!("{}: {}\n{why}", page.name, words.join(" "))));
            }
        }
    }
    none(&wrong);
    assert!(count > 20, "only {count} commands were found");
}

#[test]
fn a_command_with_a_slip_is_found() {
    let judged = |line: &str| commands(line).iter().map(|words| complaint(words, false).is_some()).collect::<Vec<_>>();
    assert_eq!(judged("$ egret plan a.yaml --drain n1 # one | egret x"), [false]);
    assert_eq!(judged("kubectl get nodes | egret plan - --draining n1"), [true]);
    assert_eq!(judged("egret plans a.yaml && kubectl egret status a.yaml > b"), [true, false]);
    assert_eq!(judged("egret plan a.yaml --label node/n1 'pool=a'; egret audits"), [false, true]);
    assert_eq!(judged("kubectl -n egret-system logs deployment/egret-controller"), [false; 0]);
    assert_eq!(spans("a `egret\nplan` b `c`"), ["egret plan", "c"]);
}
