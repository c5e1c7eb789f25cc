//! The pages, as far as the tests read Markdown.

use std::fs;
use std::path::Path;

use crate::support::root;

/// A page.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its path below the root of the repository.
    pub(crate) name: String,
    /// All of it.
    pub(crate) text: String,
}

/// A fenced block of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// What stands behind the opening fence.
    pub(crate) language: String,
    /// The lines between, without what they are indented by.
    pub(crate) text: String,
}

/// All pages of `docs`, and the README.
pub(crate) fn pages() -> Vec<Page> {
    let mut found = vec!["README.md".to_owned()];
    collect(&root().join("docs"), "docs", &mut found);
    found.sort();
    let page = |name: String| Page { text: fs::read_to_string(root().join(&name)).expect("a page is text"), name };
    found.into_iter().map(page).collect()
}

fn collect(folder: &Path, name: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder of pages") {
        let path = entry.expect("it can be read").path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{name}/{file}");
        if path.is_dir() {
            collect(&path, &name, found);
        } else if file.ends_with(".md") {
            found.push(name);
        }
    }
}

/// Takes a page apart: its fenced blocks, and everything else.
pub(crate) fn split(text: &str) -> (Vec<Block>, String) {
    let (mut blocks, mut prose) = (Vec::new(), String::new());
    let mut open: Option<(Block, usize)> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open = Some((Block { language: language.trim().to_owned(), text: String::new() }, indent));
            }
            (Some(_), Some(_)) => blocks.extend(open.take().map(|(block, _)| block)),
            (None, Some((block, indent))) => {
                block.text.push_str(line.get(*indent..).unwrap_or_default());
                block.text.push('\n');
            }
            (None, None) => {
                prose.push_str(line);
                prose.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a block does not end");
    (blocks, prose)
}

#[test]
fn a_page_is_taken_apart() {
    let (blocks, prose) = split("a\n\n```yaml\nx: 1\n```\nb `c`\n  ```sh\n  d\n    e\n  ```\n");
    let block = |language: &str, text: &str| Block { language: language.to_owned(), text: text.to_owned() };
    assert_eq!(blocks, [block("yaml", "x: 1\n"), block("sh", "d\n  e\n")]);
    assert_eq!(prose, "a\n\nb `c`\n");
}
