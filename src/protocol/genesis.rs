//! Building a genesis block with real signatures. Source: protocol.md 6.
