//! Reads a line of a chain into values, and checks everything that does not depend on the chain before it.

use super::ImportReason;
use crate::protocol::{Block, Height, NetworkConfig, block::BlockDecodeError};
use serde_json::Value;

/// A value of a line.
pub(crate) enum LineValue {
    /// A block with its transactions in it.
    Block(Box<ReadBlock>),
    /// A block without its transactions, or a transaction.
    Apart(Value),
    /// Invalid JSON. The rest of the line is not read.
    Broken(serde_json::Error),
}

/// A block that was read; its signatures are verified.
pub(crate) struct ReadBlock {
    /// As found.
    pub id: Value,
    /// As found.
    pub height: Value,
    /// `None` where the height is none of a block above the genesis block.
    pub block: Option<Result<Block, ImportReason>>,
}

/// The values of a line in their order. Pages and lists are flattened.
pub(crate) fn read_line(text: &str, config: &NetworkConfig) -> Vec<LineValue> {
    let read = |value| match value {
        Ok(block @ Value::Object(_)) if block["transactions"].is_array() => {
            LineValue::Block(Box::new(read_block(block, config)))
        }
        Ok(other) => LineValue::Apart(other),
        Err(why) => LineValue::Broken(why),
    };
    values_of(text).into_iter().map(|(_, value)| read(value)).collect()
}

/// The blocks and transactions of a text, each with its line, counted from 1. Pages and lists are flattened. The first invalid JSON
/// ends the list with its error.
pub fn values_of(text: &str) -> Vec<(usize, serde_json::Result<Value>)> {
    let (mut values, mut line, mut counted) = (Vec::new(), 1, 0);
    let mut stream = serde_json::Deserializer::from_str(text).into_iter();
    loop {
        let begins =
            stream.byte_offset() + text[stream.byte_offset()..].bytes().take_while(u8::is_ascii_whitespace).count();
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..begins]).count();
        counted = begins;
        match stream.next() {
            Some(Ok(value)) => take_apart(line, value, &mut values),
            Some(Err(why)) => values.push((line, Err(why))),
            None => return values,
        }
    }
}

fn take_apart(line: usize, value: Value, values: &mut Vec<(usize, serde_json::Result<Value>)>) {
    match value {
        Value::Object(mut page) if page.contains_key("data") => take_apart(line, page["data"].take(), values),
        Value::Array(items) => items.into_iter().for_each(|item| take_apart(line, item, values)),
        other => values.push((line, Ok(other))),
    }
}

/// Makes a block from its members. Finds errors in its content and signatures here. The import reports them when it appends the block.
pub(crate) fn read_block(mut json: Value, config: &NetworkConfig) -> ReadBlock {
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
