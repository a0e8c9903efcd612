//! Snapshots in a checkpoint: their descriptions, and where in the log their inputs lie.

use super::{
    InputLog, Inputs, MOMENTS_MAX, SnapshotId, SnapshotInfo, Snapshots, StoredSnapshot, inputs::InputReference,
};
use crate::{
    ledger::{codec::saved, settled_chain::SettledError},
    sim::Plan,
};
use std::{collections::BTreeMap, sync::Arc};

/// All of [`Snapshots`] but their moments.
pub struct NamedSnapshots {
    all: Vec<NamedSnapshot>,
    next: u64,
    last: SnapshotId,
    since: Vec<InputReference>,
}

struct NamedSnapshot {
    info: SnapshotInfo,
    before: SnapshotId,
    inputs: Vec<InputReference>,
    is_deleted: bool,
}

saved!(struct NamedSnapshots { all, next, last, since });
saved!(struct NamedSnapshot { info, before, inputs, is_deleted });

impl Snapshots {
    /// The descriptions of the snapshots and the places of their inputs in the log. `None` if the log lacks an input.
    pub fn named(&self) -> Option<NamedSnapshots> {
        let name = |kept: &StoredSnapshot| {
            let StoredSnapshot { info, before, inputs, is_deleted, moment: _, bytes: _ } = kept;
            let (info, before, is_deleted) = (info.clone(), *before, *is_deleted);
            Some(NamedSnapshot { info, before, inputs: inputs.named()?, is_deleted })
        };
        let all = self.all.values().map(name).collect::<Option<_>>()?;
        Some(NamedSnapshots { all, next: self.next, last: self.last, since: self.since.named()? })
    }
}

impl NamedSnapshots {
    /// The snapshots of a run of this plan, without moments. The faults that came in are read from the log.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn in_log(&self, plan: &Plan, log: &Arc<dyn InputLog>) -> Result<Snapshots, SettledError> {
        let kept = |NamedSnapshot { info, before, inputs, is_deleted }: &NamedSnapshot| {
            let (inputs, info) = (Inputs::from_named(inputs, log)?, info.clone());
            let (before, is_deleted) = (*before, *is_deleted);
            Ok((info.id, StoredSnapshot { info, before, inputs, moment: None, bytes: 0, is_deleted }))
        };
        let all: BTreeMap<_, _> = self.all.iter().map(kept).collect::<Result<_, _>>()?;
        let deleted: Vec<_> = all.iter().filter(|(_, kept)| kept.is_deleted).map(|(id, _)| *id).collect();
        let mut snapshots = Snapshots {
            plan: plan.clone(),
            after: all.iter().map(|(id, kept)| (kept.before, *id)).collect(),
            all,
            next: self.next,
            last: self.last,
            since: Inputs::from_named(&self.since, log)?,
            log: Some(log.clone()),
            room: MOMENTS_MAX,
        };
        // Earlier versions of the program kept deleted snapshots.
        deleted.into_iter().for_each(|id| snapshots.forget_unused(id));
        Ok(snapshots)
    }
}
