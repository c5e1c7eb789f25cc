//! Any bytes as the input of the commands: nothing panics, every diagnostic can be shown, everything that was loaded can
//! be observed on both platforms.

#![no_main]

use egret_cli::input::{Diagnostic, Silent, Source, Style, load_from};
use egret_core::{Options, Platform};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let loaded = load_from(&[Source::Stdin], &mut &*input, &Silent);
    for diagnostic in &loaded.diagnostics {
        show(diagnostic);
    }
    for platform in [Platform::BareMetal, Platform::Cloud] {
        let observation = loaded.manifests.observe(&Options { platform, ..Options::default() });
        for (key, fault) in &observation.faults {
            let origin = loaded.origins.get(key).expect("what is observed was loaded from somewhere");
            show(&Diagnostic::of_fault(origin, fault));
        }
    }
});

fn show(diagnostic: &Diagnostic) {
    assert!(diagnostic.line() != Some(0) && diagnostic.column() != Some(0));
    let text = diagnostic.render(Style { colour: false, width: 60 });
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "a control character reaches the terminal: {text:?}");
}
