//! What is logged: one line a fact, with a constant message and fields, on standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, ParseError};
use tracing_subscriber::fmt::MakeWriter;

/// What is logged, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// How a line is written.
    pub format: LogFormat,
    /// What is logged: a level, or directives as `RUST_LOG` has them (`info,egret_controller=debug`).
    pub filter: LogFilter,
}

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line; the fields are at the top level.
    Json,
}

/// Directives that were found to be readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(String);

/// Directives that nobody can have meant.
#[derive(Debug, thiserror::Error)]
pub enum LogFilterError {
    /// A single word, which would be taken for the name of a module, so that everything else is silent.
    #[error("{word:?} is no level: use error, warn, info, debug, trace or off, or MODULE=LEVEL")]
    NoLevel {
        /// The word.
        word: String,
    },
    /// A directive cannot be read.
    #[error(transparent)]
    Directive(#[from] ParseError),
}

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl LogFilter {
    /// Reads directives.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn parse(text: &str) -> Result<Self, LogFilterError> {
        let words = text.split(',').map(str::trim).filter(|word| !word.contains(['=', '[', ']', '{', '}']));
        for word in words {
            // Nothing would be read as a level, too.
            if word.is_empty() || word.parse::<LevelFilter>().is_err() {
                return Err(LogFilterError::NoLevel { word: word.to_owned() });
            }
        }
        EnvFilter::builder().parse(text)?;
        Ok(Self(text.to_owned()))
    }

    fn compile(&self) -> EnvFilter {
        EnvFilter::builder().parse(&self.0).expect("it was read before")
    }
}

/// A second logger in one process.
#[derive(Debug, thiserror::Error)]
#[error("failed to begin logging")]
pub struct LogError(#[source] Box<dyn std::error::Error + Send + Sync>);

/// From now on everything that this process logs goes to standard error.
///
/// # Errors
/// If that was done before.
pub fn begin(options: &LogOptions) -> Result<(), LogError> {
    tracing::subscriber::set_global_default(subscriber(options, std::io::stderr))
        .map_err(|error| LogError(error.into()))
}

/// What writes the lines.
fn subscriber(
    options: &LogOptions,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> Box<dyn tracing::Subscriber + Send + Sync> {
    let lines = tracing_subscriber::fmt().with_env_filter(options.filter.compile()).with_writer(writer);
    match options.format {
        // Logs are read from files and by `kubectl logs`, where colours are noise.
        LogFormat::Text => Box::new(lines.with_ansi(false).finish()),
        LogFormat::Json => Box::new(lines.json().flatten_event(true).with_current_span(false).finish()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panics").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, filter: &str) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let options = LogOptions { format, filter: LogFilter::parse(filter).expect("it is readable") };
        tracing::subscriber::with_default(subscriber(&options, move || writer.clone()), || {
            tracing::info!(node = "worker-1", "node is reachable again");
            tracing::debug!("not asked for");
        });
        let bytes = lines.0.lock().expect("nobody panics").clone();
        String::from_utf8(bytes).expect("lines are text")
    }

    #[test]
    fn a_line_of_json_has_its_fields_at_the_top() {
        let text = logged(LogFormat::Json, "info");
        let line: serde_json::Value = serde_json::from_str(&text).expect("one line of JSON");
        assert_eq!(line["message"], "node is reachable again");
        assert_eq!(line["node"], "worker-1");
        assert_eq!(line["level"], "INFO");
        assert!(line["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
    }

    #[test]
    fn a_line_of_text_has_no_colours() {
        let text = logged(LogFormat::Text, "info");
        assert!(text.contains("INFO") && text.contains("node is reachable again node=\"worker-1\""), "{text}");
        assert!(!text.contains('\u{1b}') && text.lines().count() == 1, "{text}");
    }

    #[test]
    fn directives_choose_by_module() {
        assert_eq!(logged(LogFormat::Text, "info,egret_daemon=error"), "");
        assert_eq!(logged(LogFormat::Text, "debug").lines().count(), 2);
        for wrong in ["egret_controller=loud", "verbose", "info,", ""] {
            assert!(LogFilter::parse(wrong).is_err(), "{wrong}");
        }
    }
}
