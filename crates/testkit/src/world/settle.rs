//! How a world comes to rest.

use super::stage::StageError;
use super::{World, cloud};

/// No scenario needs more than a handful of turns; a controller that is never content needs infinitely many.
const MOST_TURNS: usize = 32;

impl World<'_> {
    /// Starts a controller on what is stored.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(&mut self) -> Result<(), StageError> {
        self.stage.start()
    }

    /// Stops the controller; what it knew is gone.
    ///
    /// # Errors
    /// If it does not stop.
    pub fn stop(&mut self) -> Result<(), StageError> {
        self.stage.stop()
    }

    /// Takes what is stored so far as given, so that history begins here.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn begin(&mut self) -> Result<(), StageError> {
        self.read()?;
        self.take_history();
        Ok(())
    }

    /// Lets everything that is under way come to its end; with `rounds`, until a reachability round changes nothing either.
    ///
    /// # Errors
    /// If there is no end.
    pub fn settle(&mut self, rounds: bool) -> Result<(), StageError> {
        self.calm()?;
        self.probed = self.stage.targets();
        if !rounds {
            return Ok(());
        }
        for _ in 0..MOST_TURNS {
            let versions = self.history.versions.len();
            let raised = self.history.raised.len();
            let targets = self.round()?;
            self.calm()?;
            let quiet = versions == self.history.versions.len() && raised == self.history.raised.len();
            if quiet && targets == self.stage.targets() {
                self.probed = targets;
                return Ok(());
            }
        }
        Err(self.endless())
    }

    /// One reachability round. Returns whom it asked.
    ///
    /// # Errors
    /// If the controller is not there to hear the answers.
    pub fn round(&mut self) -> Result<std::collections::BTreeSet<egret_core::NodeName>, StageError> {
        let targets = self.stage.targets();
        self.stage.probe(&self.truth)?;
        Ok(targets)
    }

    /// The controller's watches list everything anew, and that comes to its end.
    ///
    /// # Errors
    /// If there is no end.
    pub fn relist(&mut self) -> Result<(), StageError> {
        self.stage.relist()?;
        self.calm()
    }

    /// Rests, and answers for the cloud, until there is nothing to answer.
    fn calm(&mut self) -> Result<(), StageError> {
        for _ in 0..MOST_TURNS {
            self.stage.rest()?;
            let begin = self.read()?;
            let requests = cloud::requests(&self.history.versions[begin..], &self.state);
            if requests.is_empty() || !self.confirms {
                return Ok(());
            }
            for (key, node) in requests {
                self.stage.edit(&key, &|config| cloud::answer(config, &node, true))?;
            }
        }
        Err(self.endless())
    }

    fn endless(&self) -> StageError {
        let last = self.history.by_controller().map(|version| version.key.to_string()).collect::<Vec<_>>();
        let last = last[last.len().saturating_sub(6)..].to_vec();
        StageError::Endless { turns: MOST_TURNS, last }
    }
}
