//! What came out, beside what was wanted.

use std::fmt;
use std::time::Duration;

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<Figure>);

#[derive(Debug)]
struct Figure {
    what: &'static str,
    unit: Unit,
    measured: f64,
    target: Option<f64>,
    /// The same, measured once with OVN-Kubernetes' own cluster manager on a machine like this one.
    theirs: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Seconds,
    Megabytes,
    Writes,
}

/// A target that is missed by less is no failure: the machine may be busy.
const TOLERANCE: f64 = 1.5;

impl Figures {
    pub(crate) fn add(&mut self, what: &'static str, unit: Unit, measured: f64, target: f64, theirs: Option<f64>) {
        self.0.push(Figure { what, unit, measured, target: Some(target), theirs });
    }

    pub(crate) fn time(&mut self, what: &'static str, measured: Duration, target: f64, theirs: f64) {
        self.add(what, Unit::Seconds, measured.as_secs_f64(), target, Some(theirs));
    }

    /// Worth knowing, and nothing to reach.
    pub(crate) fn note(&mut self, what: &'static str, unit: Unit, measured: f64) {
        self.0.push(Figure { what, unit, measured, target: None, theirs: None });
    }

    /// Whether a target is missed by more than half of it.
    pub(crate) fn failed(&self) -> bool {
        self.0.iter().any(|figure| figure.excess() > TOLERANCE)
    }
}

impl Figure {
    /// How many times the target it is.
    fn excess(&self) -> f64 {
        self.target.map_or(0.0, |target| self.measured / target)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<38} {:>9} {:>8} {:>8}", "what", "measured", "target", "theirs")?;
        for figure in &self.0 {
            let shown = |number: Option<f64>| number.map(|number| figure.unit.show(number)).unwrap_or_default();
            let verdict = match figure.excess() {
                excess if excess <= 1.0 => "",
                excess if excess <= TOLERANCE => "missed",
                _ => "MISSED BY MORE THAN HALF",
            };
            let (measured, target, theirs) = (shown(Some(figure.measured)), shown(figure.target), shown(figure.theirs));
            let line = format!("{:<38} {measured:>9} {target:>8} {theirs:>8}  {verdict}", figure.what);
            writeln!(f, "{}", line.trim_end())?;
        }
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or_default();
        let processors = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        write!(f, "{processors} processors, load {load}; theirs: OVN-Kubernetes' own cluster manager")
    }
}

impl Unit {
    fn show(self, number: f64) -> String {
        match self {
            Self::Seconds => format!("{number:.2} s"),
            Self::Megabytes => format!("{number:.0} MB"),
            Self::Writes => format!("{number:.2}"),
        }
    }
}
