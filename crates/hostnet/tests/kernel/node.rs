//! A kernel to speak to.

use std::path::PathBuf;

use egret_hostmodel::{Settings, State, Step, diff};
use egret_hostnet::{Files, Kernel, Observed};

pub(crate) struct Node {
    pub(crate) kernel: Kernel,
}

impl Node {
    pub(crate) fn open() -> Self {
        let files = Files {
            state: PathBuf::from("/run/egret"),
            table_names: vec![PathBuf::from("/run/rt_tables")],
            ..Files::default()
        };
        Self { kernel: Kernel::open(&Settings::default(), &files).unwrap() }
    }

    pub(crate) async fn observe(&self) -> Observed {
        self.kernel.observe().await.unwrap()
    }

    pub(crate) async fn found(&self) -> State {
        self.observe().await.found
    }

    pub(crate) async fn apply(&self, steps: &[Step]) {
        let applied = self.kernel.apply(steps).await;
        let at = steps.get(applied.done).map(ToString::to_string);
        assert!(applied.failed.is_none(), "{:?} at {at:?}", applied.failed);
        assert_eq!(applied.done, steps.len());
    }

    /// From whatever is there to `wanted`; it must be there afterwards, and nothing be left to do.
    pub(crate) async fn become_like(&self, wanted: &State) {
        let steps = diff(&self.found().await, wanted);
        self.apply(&steps).await;
        let found = self.found().await;
        assert_eq!(&found, wanted, "after {}", steps.iter().map(|step| format!("\n  {step}")).collect::<String>());
    }
}
