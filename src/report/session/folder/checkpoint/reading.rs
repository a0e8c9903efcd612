//! Reading a checkpoint, and the part of the log before it that a start needs.

use super::{
    super::{BLOCK, FolderError, RecordPlace, Settling, facts::LogFacts, inputs::LoggedInputs, is_of_beginning},
    BASE_MAGIC, Beside, Body, FILE_MAX, HEAD, MAGIC, all, network,
};
use crate::{
    files::segments::{Reader, Records, SEGMENT_HEAD, Spot},
    ledger::{
        BlockTree, Link,
        base::StartStates,
        codec::{LoadError, Save},
        tree::ReapplyError,
    },
    protocol::{Block, BlockId, Height, crypto::sha256},
    sim::{
        Intervention, Plan,
        fault::AddedFault,
        snapshots::{CameIn, Snapshots},
        world::Moment,
    },
};
use rayon::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
};

/// A testnet at a position in the log, restored without playing the inputs before it.
pub(in crate::report::session::folder) struct RestoredTestnet {
    pub records: Records,
    pub known: LogFacts,
    /// The height of the base that it began with; 0 for none.
    pub base: Height,
    /// `None` at the beginning.
    pub moment: Option<Moment>,
    pub snapshots: Snapshots,
}

impl RestoredTestnet {
    /// The beginning, from which the whole log is played.
    pub fn nothing(records: Records, plan: &Plan) -> Self {
        let (known, snapshots) = (LogFacts::default(), Snapshots::new(plan));
        Self { records, known, base: Height(0), moment: None, snapshots }
    }
}

/// Returns the newest valid checkpoint. Reports the errors of newer ones.
///
/// # Errors
/// The log is damaged.
pub(in crate::report::session::folder) fn newest(
    folder: &Path,
    plan: &Plan,
    inputs: &LoggedInputs,
    beside: &Beside,
    settling: &mut Settling,
    tell: &mut Vec<String>,
) -> Result<Option<RestoredTestnet>, FolderError> {
    for (_, file) in all(folder, "checkpoint") {
        match read(folder, &file, plan, inputs, beside, settling, tell)? {
            Ok(restored) => return Ok(Some(restored)),
            Err(why) => tell.push(format!("{} is passed over: {why}", file.display())),
        }
    }
    Ok(None)
}

/// Reads a checkpoint, and the log up to its place.
fn read(
    folder: &Path,
    file: &Path,
    plan: &Plan,
    inputs: &LoggedInputs,
    beside: &Beside,
    settling: &mut Settling,
    tell: &mut Vec<String>,
) -> Result<Result<RestoredTestnet, String>, FolderError> {
    let body = match opened(folder, file, plan) {
        Ok(body) => body,
        Err(why) => return Ok(Err(why)),
    };
    let log = folder.join("log");
    check_emptied(&log, file, &body.known)?;
    if let Err(why) = (beside.go_on)(&body.numbers) {
        return Ok(Err(why));
    }
    let begun = match Quick::read(folder, &log, &body, plan) {
        Ok(Some(quick)) => quick.begin(&log, plan, settling)?,
        Ok(None) => None,
        Err(why) => {
            tell.push(format!("the start from {} reads the whole log: {why}", file.display()));
            None
        }
    };
    let begun = match begun {
        Some(begun) => Ok(begun),
        None => read_whole(&log, &body.known, plan, settling)?.map(|records| (records, Height(0))),
    };
    let (records, base) = match begun {
        Ok(begun) => begun,
        Err(why) => return Ok(Err(why)),
    };
    let restored = || -> Result<(Moment, Snapshots), String> {
        for bytes in &body.blocks {
            put(&plan.tree, bytes).map_err(|why| format!("a block in it: {why}"))?;
        }
        let snapshots = body.snapshots.in_log(plan, &inputs.shared()).map_err(|why| why.to_string())?;
        let added: Vec<AddedFault> = snapshots.inputs().faults().filter_map(added_fault).collect();
        let moment = Moment::from_bytes(body.moment, plan, &added).map_err(text)?;
        if moment.tips().all().any(|tip| plan.tree.link(&tip.id()).is_none()) {
            return Err("a node stands on a block that is not there".to_owned());
        }
        let mut digest = plan.loader(body.digest);
        beside.digest.go_on(&mut digest).map_err(text)?;
        Ok((moment, snapshots))
    };
    Ok(restored().map(|(moment, snapshots)| {
        let (known, moment) = (body.known, Some(moment));
        RestoredTestnet { records, known, base, moment, snapshots }
    }))
}

fn text(why: LoadError) -> String {
    why.to_string()
}

fn added_fault(came: &CameIn) -> Option<AddedFault> {
    match &came.what {
        Intervention::AddFault(added) | Intervention::Restart(added) => Some((**added).clone()),
        _ => None,
    }
}

/// Reads the body of a checkpoint. The file must be whole, and of this version and network.
fn opened(folder: &Path, file: &Path, plan: &Plan) -> Result<Body, String> {
    let (_, body) = body_of(file, MAGIC)?;
    let mut from = plan.loader(body);
    let body = Body::load(&mut from).and_then(|body| from.finish().map(|()| body)).map_err(text)?;
    if body.version != env!("CARGO_PKG_VERSION") {
        return Err(format!("it is of version {}, this is {}", body.version, env!("CARGO_PKG_VERSION")));
    }
    if network(folder).map_err(|why| why.to_string())? != body.network {
        return Err("it is of another network.json".to_owned());
    }
    Ok(body)
}

/// Returns the checksum and the body of a file, which must be whole and begin with `magic`.
fn body_of(file: &Path, magic: &[u8; 8]) -> Result<([u8; 32], Vec<u8>), String> {
    let length = fs::metadata(file).map_err(|why| why.to_string())?.len();
    if length > FILE_MAX {
        return Err(format!("{length} bytes, allowed are {FILE_MAX}"));
    }
    let mut bytes = fs::read(file).map_err(|why| why.to_string())?;
    if bytes.len() < HEAD {
        return Err("it ends too early".to_owned());
    }
    let body = bytes.split_off(HEAD);
    if bytes[..MAGIC.len()] != *magic {
        return Err("it does not begin as one of this version does".to_owned());
    }
    let sum = sha256(&body);
    match bytes[MAGIC.len()..] == sum {
        true => Ok((sum, body)),
        false => Err("it is damaged: it does not match its checksum".to_owned()),
    }
}

/// All that a start from a base reads, before it changes anything.
struct Quick {
    states: StartStates,
    /// The rest of the log.
    records: Records,
    /// The blocks that have not settled, by height.
    blocks: Vec<(Arc<Block>, Spot)>,
}

impl Quick {
    /// Reads the base, the blocks and the rest of the log. Returns `None` if the checkpoint has no base, or if the log is another one.
    ///
    /// # Errors
    /// Something cannot be read.
    fn read(folder: &Path, log: &Path, body: &Body, plan: &Plan) -> Result<Option<Self>, String> {
        let Some(name) = &body.base else { return Ok(None) };
        let Some(records) = body.known.rest(log).map_err(|why| why.to_string())? else { return Ok(None) };
        let (states, blocks) = rayon::join(
            || Self::states(&name.file(folder), name.sum, plan),
            || Self::blocks(log, &body.places.0, plan),
        );
        let (states, mut blocks) = (states?, blocks?);
        // A run that went back may have logged a block again, after its descendants.
        blocks.sort_by_key(|(block, _)| block.header.height);
        let mut there = BTreeSet::from([states.base.id]);
        let begins_there = is_of_beginning(&plan.tip, states.base.height, states.base.id);
        for (block, _) in &blocks {
            let below = Height(block.header.height.0.saturating_sub(1));
            let is_given = |before: &BlockId| begins_there && is_of_beginning(&plan.tip, below, *before);
            let is_there = |before: &BlockId| there.contains(before) || is_given(before);
            if !block.header.previous.as_ref().is_some_and(is_there) {
                return Err(format!("the log lacks the block before {} at height {}", block.id, block.header.height));
            }
            there.insert(block.id);
        }
        Ok(Some(Self { states, records, blocks }))
    }

    fn states(file: &Path, wanted: [u8; 32], plan: &Plan) -> Result<StartStates, String> {
        let named = |why: String| format!("{}: {why}", file.display());
        let (sum, body) = body_of(file, BASE_MAGIC).map_err(named)?;
        if sum != wanted {
            return Err(named("it is of another checkpoint".to_owned()));
        }
        let mut from = plan.loader(body);
        StartStates::load(&mut from).and_then(|states| from.finish().map(|()| states)).map_err(text)
    }

    fn blocks(log: &Path, spots: &[Spot], plan: &Plan) -> Result<Vec<(Arc<Block>, Spot)>, String> {
        let (reader, context) = (Reader::new(log), plan.tree.config().block_context());
        let block = |spot: &Spot| {
            let record = reader.read(*spot).map_err(|why| why.to_string())?;
            let bytes = record.strip_prefix(&[BLOCK]).ok_or("found no block")?;
            let block = Block::from_bytes(bytes, &context).map_err(|why| why.to_string())?;
            Ok((Arc::new(block), *spot))
        };
        spots.par_iter().map(block).collect()
    }

    /// Begins the run at the base. Returns the rest of the log and the height of the base, or `None` if the index lacks settled
    /// blocks.
    ///
    /// # Errors
    /// The log is damaged.
    fn begin(self, log: &Path, plan: &Plan, settling: &mut Settling) -> Result<Option<(Records, Height)>, FolderError> {
        let Self { states: StartStates { base, ahead }, records, blocks } = self;
        let height = base.height;
        if !settling.begin_at(base)? {
            return Ok(None);
        }
        let (blocks, spots): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
        let links = plan.tree.extend_all_again(&blocks, ahead.as_ref());
        let links = links.map_err(|(index, why)| RecordPlace::of(log, spots[index]).wrong(why.to_string()))?;
        for (link, spot) in links.iter().zip(spots) {
            settling.is_logged(link.height(), link.id(), spot);
        }
        Ok(Some((records, height)))
    }
}

/// Adds a block of the log to the tree.
fn put(tree: &BlockTree, bytes: &[u8]) -> Result<Arc<Link>, String> {
    let block = Block::from_bytes(bytes, &tree.config().block_context()).map_err(|why| why.to_string())?;
    tree.extend_again(&Arc::new(block)).map_err(|why| why.to_string())
}

/// Reads a log up to the position of `until` and adds its blocks to the tree. Leaves out blocks whose parents the log lacks: a caller
/// that needs them notices. Returns the rest of the log, or the reason why it does not fit: it ends before that position, or its
/// records up to there differ.
///
/// # Errors
/// The log is damaged.
fn read_whole(
    log: &Path,
    until: &LogFacts,
    plan: &Plan,
    settling: &mut Settling,
) -> Result<Result<Records, String>, FolderError> {
    let other = || Ok(Err("the log does not come to where it was taken, or says other things before".to_owned()));
    let Some(mut records) = Records::open(log)? else { return other() };
    let mut found = LogFacts::default();
    // Blocks that wait for their parents, which a later start wrote after them.
    let mut waiting: BTreeMap<Option<BlockId>, Vec<(Arc<Block>, Spot)>> = BTreeMap::new();
    let context = plan.tree.config().block_context();
    while records.number_and_byte() < until.place() {
        let (file, at) = records.place();
        let Some(record) = records.next_record()? else { return other() };
        let spot = records.spot().expect("a record was read");
        found.record(spot, &record);
        let Some(bytes) = record.strip_prefix(&[BLOCK]) else { continue };
        let block = Block::from_bytes(bytes, &context).map_err(|why| RecordPlace { file, at }.wrong(why))?;
        let mut ready = vec![(Arc::new(block), spot)];
        while let Some((block, spot)) = ready.pop() {
            match plan.tree.extend_again(&block) {
                Ok(link) => {
                    settling.is_logged(link.height(), link.id(), spot);
                    ready.extend(waiting.remove(&Some(link.id())).unwrap_or_default());
                }
                Err(ReapplyError::NoParent(_)) => waiting.entry(block.header.previous).or_default().push((block, spot)),
                Err(why) => return Err(RecordPlace::of(log, spot).wrong(why)),
            }
        }
    }
    if found.sums == until.sums { Ok(Ok(records)) } else { other() }
}

/// Refuses a log that lost everything, which would continue as another testnet. A log that lost its end continues from the rest.
///
/// # Errors
/// The log holds no record, though the checkpoint was taken after some.
fn check_emptied(log: &Path, checkpoint: &Path, known: &LogFacts) -> Result<(), FolderError> {
    let is_empty = match Records::open(log)? {
        Some(mut records) => records.next_record()?.is_none(),
        None => true,
    };
    let records = known.sums.iter().map(|segment| segment.bytes - SEGMENT_HEAD).sum();
    match is_empty && records > 0 {
        true => Err(FolderError::Emptied { log: log.to_owned(), checkpoint: checkpoint.to_owned(), records }),
        false => Ok(()),
    }
}
