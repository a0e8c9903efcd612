//! A line of a chain as values: all that can be said of it without the chain before it.

use super::ImportReason;
use crate::protocol::{Block, Height, NetworkConfig, block::BlockDecodeError};
use serde_json::Value;

/// A value of a line.
pub enum Read {
    /// A block with its transactions in it.
    Block(Box<ReadBlock>),
    /// A block without, or a transaction.
    Apart(Value),
    /// Not JSON, and with it the rest of the line.
    Broken(serde_json::Error),
}

/// A block that was read; its signatures are verified.
pub struct ReadBlock {
    /// As found.
    pub id: Value,
    /// As found.
    pub height: Value,
    /// `None` where the height is none of a block above the genesis block.
    pub block: Option<Result<Block, ImportReason>>,
}

/// The values of a line in their order. Pages are taken apart.
pub fn read_line(text: &str, config: &NetworkConfig) -> Vec<Read> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter() {
        match value {
            Ok(value) => read_value(value, config, &mut values),
            Err(why) => values.push(Read::Broken(why)),
        }
    }
    values
}

fn read_value(value: Value, config: &NetworkConfig, values: &mut Vec<Read>) {
    match value {
        Value::Object(mut page) if page.contains_key("data") => read_value(page["data"].take(), config, values),
        Value::Array(items) => items.into_iter().for_each(|item| read_value(item, config, values)),
        block if block["transactions"].is_array() => values.push(Read::Block(Box::new(read_block(block, config)))),
        other => values.push(Read::Apart(other)),
    }
}

/// A block of its members. What is wrong with its content and signatures is found out here, and told when it is put on top.
pub fn read_block(mut json: Value, config: &NetworkConfig) -> ReadBlock {
    let height = json["height"].as_u64().and_then(|height| u32::try_from(height).ok());
    let block = height.map(Height).filter(|height| *height > Height::GENESIS).map(|height| {
        let context = config.block_context();
        let block = Block::from_json(&json, &context).map_err(|why| match why {
            BlockDecodeError::Transaction { index, source } => {
                ImportReason::Transaction { height, index, why: source.to_string() }
            }
            why => ImportReason::Malformed { height, why: why.to_string() },
        })?;
        let _remembered = block.check_content(&context);
        Ok(block)
    });
    ReadBlock { id: json["id"].take(), height: json["height"].take(), block }
}
