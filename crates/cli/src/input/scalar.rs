//! What a scalar of YAML means in a manifest.

use serde_json::{Number, Value};

/// The value of a plain (unquoted) scalar, or the reason why JSON cannot hold it.
///
/// `kubectl` and the API server read YAML through sigs.k8s.io/yaml, which is YAML 1.1 with exceptions: `yes`, `no`, `on`
/// and `off` are booleans, `y` and `n` are text, a leading zero is octal, `_` may separate digits, a timestamp stays
/// text and a sexagesimal number (`190:20:30`) is text. A value has to mean the same here as in the cluster.
pub(crate) fn plain(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf"
        | "-.INF" => return Err(format!("{text} is a number that JSON, and so Kubernetes, cannot hold")),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    })
}

fn number(text: &str) -> Option<Number> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    let digits = text.replace('_', "");
    integer(&digits).or_else(|| float(&digits))
}

/// As Go's `strconv.ParseInt(digits, 0, 64)` and `ParseUint`.
fn integer(digits: &str) -> Option<Number> {
    let (negative, magnitude) = match digits.as_bytes().first()? {
        b'-' => (true, digits.get(1..)?),
        b'+' => (false, digits.get(1..)?),
        _ => (false, digits),
    };
    let (radix, magnitude) = match magnitude.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, magnitude.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, magnitude.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, magnitude.get(2..)?),
        [b'0', _, ..] => (8, magnitude.get(1..)?),
        _ => (10, magnitude),
    };
    if !magnitude.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(magnitude, radix).ok()?;
    if negative { 0_i64.checked_sub_unsigned(magnitude).map(Number::from) } else { Some(Number::from(magnitude)) }
}

/// 2^53: below it every whole `f64` is exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`, the pattern of go-yaml.
fn float(digits: &str) -> Option<Number> {
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let legal = all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && all_digits(exponent));
    let value: f64 = if legal { digits.parse().ok()? } else { return None };
    // Go writes a whole number without a fraction, and Kubernetes then reads an integer.
    #[expect(clippy::cast_possible_truncation, reason = "below 2^53 a whole f64 is an i64")]
    if value.fract() == 0.0 && value.abs() < EXACT {
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}

/// The text of a key, or `None` for null, which cannot be one.
pub(crate) fn key(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plain_scalar_means_what_it_means_in_the_cluster() {
        for (text, value) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("y", json!("y")),
            ("N", json!("N")),
            ("tRue", json!("tRue")),
            ("12", json!(12)),
            ("-12", json!(-12)),
            ("+12", json!(12)),
            ("0o7", json!(7)),
            ("0755", json!(493)),
            ("08", json!(8)),
            ("0x1F", json!(31)),
            ("0b11", json!(3)),
            ("-0x1", json!(-1)),
            ("1_000", json!(1000)),
            ("1e3", json!(1000)),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("1.", json!(1)),
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("99999999999999999999", json!(1e20)),
            ("1e999", json!("1e999")),
            ("--1", json!("--1")),
            ("-", json!("-")),
            (".", json!(".")),
            ("1e", json!("1e")),
            ("0x", json!("0x")),
            ("0x-1", json!("0x-1")),
            ("infinity", json!("infinity")),
            ("10.0.0.1", json!("10.0.0.1")),
            ("fd00::1", json!("fd00::1")),
            ("190:20:30", json!("190:20:30")),
            ("2024-01-01", json!("2024-01-01")),
            ("2024-01-01T00:00:00Z", json!("2024-01-01T00:00:00Z")),
            ("16Gi", json!("16Gi")),
        ] {
            assert_eq!(plain(text), Ok(value), "{text:?}");
        }
    }

    #[test]
    fn a_number_without_a_json_form_is_refused() {
        assert!(plain(".inf").is_err());
        assert!(plain("-.INF").is_err());
        assert!(plain(".NaN").is_err());
    }
}
