//! Label selectors as people write them on a command line: kubectl's notation.

use egret_core::Selector;

/// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
///
/// # Errors
/// What is wrong, in one sentence.
pub(crate) fn parse(text: &str) -> Result<Selector, String> {
    let mut expressions: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for part in split(text)? {
        expressions.push(requirement(part)?);
    }
    Selector::compile([], expressions)
        .map_err(|faults| faults.iter().map(|fault| fault.reason.clone()).collect::<Vec<_>>().join("; "))
}

/// Splits at commas outside parentheses.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("there is a ')' without its '('")?,
            ',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("there is a '(' without its ')'".to_owned());
    }
    parts.push(text[start..].trim());
    if let Some(empty) = parts.iter().position(|part| part.is_empty()) {
        return Err(format!("requirement {} is empty", empty + 1));
    }
    Ok(parts)
}

fn requirement(part: &str) -> Result<(&str, &str, Vec<&str>), String> {
    if let Some(list) = part.strip_suffix(')') {
        let (head, values) = list.split_once('(').ok_or_else(|| format!("{part:?} is no requirement"))?;
        let values = values.split(',').map(str::trim).collect();
        return match head.split_whitespace().collect::<Vec<_>>()[..] {
            [key, "in"] => Ok((key, "In", values)),
            [key, "notin"] => Ok((key, "NotIn", values)),
            _ => Err(format!("{part:?} is no requirement; write `key in (a,b)` or `key notin (a,b)`")),
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Ok((key.trim(), "NotIn", vec![value.trim()]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok((key.trim(), "In", vec![value.trim()]));
    }
    match part.strip_prefix('!') {
        Some(key) => Ok((key.trim(), "DoesNotExist", Vec::new())),
        None => Ok((part, "Exists", Vec::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectls_notation_is_read() {
        for (text, canonical) in [
            ("a=b", "a=b"),
            ("a==b", "a=b"),
            ("a!=b", "a!=b"),
            ("a in (c, b),d notin (e)", "a in (b,c),d!=e"),
            ("a,!b", "a,!b"),
            ("kubernetes.io/os=windows", "kubernetes.io/os=windows"),
        ] {
            assert_eq!(parse(text).map(|selector| selector.to_string()), Ok(canonical.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_selector_says_why() {
        for text in ["", "a,", "a in (b", "a) in b", "a of (b)", "-a=b", "a=b c", "a in ()x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
