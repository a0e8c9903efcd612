//! The state that a cut chain is computed from.
//!
//! Where blocks have settled, the tree retains no state below the cut but the base: the state after the highest settled block. All later
//! states follow from it. A process that starts again reads the base instead of applying every block from genesis on.
//!
//! Thousands of full blocks may lie between the base and the tips. So a start reads a second state with it, ahead of the base. The
//! blocks between are applied only when a caller asks for their states.

use super::{
    BlockTree, Link,
    codec::saved,
    state::{Applied, Notable},
};
#[cfg(feature = "cli")]
use super::{
    codec::{LoadError, Loader, Save, Saver},
    state::State,
};
use crate::protocol::{BlockId, Height, hashing::IdHash};
use indexmap::IndexMap;
use std::sync::Arc;

/// The state after the highest settled block.
#[derive(Clone, Debug)]
pub struct Base {
    pub height: Height,
    pub id: BlockId,
    pub applied: Arc<Applied>,
}

/// A state above the base, and the consequences of the blocks up to it.
#[derive(Debug)]
pub struct StateAbove {
    pub id: BlockId,
    pub applied: Arc<Applied>,
    /// The notable consequences of each block above the base and not above this state, on all forks.
    pub notable: IndexMap<BlockId, Option<Arc<Notable>>, IdHash>,
}

/// The states that a start begins with.
#[cfg(feature = "cli")]
#[derive(Debug)]
pub(crate) struct StartStates {
    pub base: Base,
    pub ahead: Option<StateAbove>,
}

saved!(struct Base { height, id, applied });

impl Base {
    /// Returns true if it is the state after this block.
    pub fn is_of(&self, link: &Link) -> bool {
        self.height == link.height() && self.id == link.id()
    }
}

impl StateAbove {
    /// The state after a block of a tree that stands on its base. `blocks` are those of the tree that have not settled.
    pub fn of(link: &Arc<Link>, tree: &BlockTree, blocks: impl IntoIterator<Item = BlockId>) -> Self {
        let up_to = blocks.into_iter().filter_map(|id| tree.link(&id)).filter(|one| one.height() <= link.height());
        let notable = up_to.map(|one| (one.id(), one.notable().cloned())).collect();
        Self { id: link.id(), applied: tree.applied(link), notable }
    }
}

/// The state ahead is written with only those wallets that differ from the base.
#[cfg(feature = "cli")]
impl Save for StartStates {
    fn save(&self, out: &mut Saver) {
        let Self { base, ahead } = self;
        base.save(out);
        ahead.is_some().save(out);
        if let Some(StateAbove { id, applied, notable }) = ahead {
            id.save(out);
            applied.state.save_since(&base.applied.state, out);
            applied.senders.save(out);
            notable.save(out);
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let base = Base::load(from)?;
        if !bool::load(from)? {
            return Ok(Self { base, ahead: None });
        }
        let id = Save::load(from)?;
        let state = State::load_since(&base.applied.state, from)?;
        let applied = Arc::new(Applied { state, senders: Save::load(from)? });
        Ok(Self { base, ahead: Some(StateAbove { id, applied, notable: Save::load(from)? }) })
    }
}
