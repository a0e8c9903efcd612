//! A network directory: `genesisBlock.json`, `milestones.json`, `network.json`, `exceptions.json`.

use super::{Exceptions, Genesis, Network, NetworkConfig};
use crate::{
    files::{self, TEXT_LIMIT},
    protocol::{Milestones, block::BlockDecodeError, milestones::MilestoneError},
};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The reason why a network directory is refused: always the file, mostly the key, what was found and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("{}: {source}", file.display())]
    Read { file: PathBuf, source: std::io::Error },
    #[error("{}: not JSON: {source}", file.display())]
    Json { file: PathBuf, source: serde_json::Error },
    #[error("{file}: `{key}` is {found}, allowed is {allowed}")]
    Wrong { file: &'static str, key: String, found: String, allowed: String },
    #[error("milestones.json: {0}")]
    Milestones(#[from] MilestoneError),
    #[error("genesisBlock.json: {0}")]
    Genesis(#[from] BlockDecodeError),
    #[error("genesisBlock.json: `blockSignature` does not hold for `generatorPublicKey`")]
    GenesisSignature,
}

impl NetworkConfig {
    /// The network a directory describes. The files are read whole; everything is checked before it returns.
    pub fn load(directory: &Path) -> Result<Self, NetworkError> {
        Self::of(|name| read(&directory.join(name)))
    }

    /// The network of its four files, each asked for by its name.
    ///
    /// # Errors
    /// As [`NetworkConfig::load`].
    pub fn of(file: impl Fn(&str) -> Result<Value, NetworkError>) -> Result<Self, NetworkError> {
        let network = Network::from_json(&file("network.json")?)?;
        let milestones = Milestones::from_json(&file("milestones.json")?)?;
        let exceptions = Exceptions::from_json(&file("exceptions.json")?)
            .map_err(|error| wrong("exceptions.json", &error.key, error.found, error.allowed))?;
        let genesis = Genesis::from_json(&file("genesisBlock.json")?, &network, &milestones, &exceptions)?;
        Self::new(network, milestones, exceptions, genesis)
    }

    /// A network of parts that must belong together: the hash of the genesis payload is the name of the network.
    pub fn new(
        network: Network,
        milestones: Milestones,
        exceptions: Exceptions,
        genesis: Genesis,
    ) -> Result<Self, NetworkError> {
        let payload = hex::encode(genesis.block.header.payload_hash);
        if network.nethash != payload {
            let allowed = format!("\"{payload}\", the payloadHash of genesisBlock.json");
            return Err(wrong("network.json", "nethash", format!("{:?}", network.nethash), allowed));
        }
        Ok(Self { network, milestones, exceptions, genesis })
    }
}

fn read(path: &Path) -> Result<Value, NetworkError> {
    let file = path.to_owned();
    let text =
        files::read_text(path, TEXT_LIMIT).map_err(|source| NetworkError::Read { file: file.clone(), source })?;
    serde_json::from_str(&text).map_err(|source| NetworkError::Json { file, source })
}

fn wrong(file: &'static str, key: &str, found: String, allowed: impl Into<String>) -> NetworkError {
    NetworkError::Wrong { file, key: key.to_owned(), found, allowed: allowed.into() }
}

impl Network {
    /// From the object of a `network.json`.
    pub fn from_json(json: &Value) -> Result<Self, NetworkError> {
        let read = Reader(json);
        Ok(Self {
            name: read.text("name")?,
            message_prefix: read.text("messagePrefix")?,
            bip32_public: read.number("bip32.public", 0, u32::MAX)?,
            bip32_private: read.number("bip32.private", 0, u32::MAX)?,
            // The reference takes 0 for "not set". Source: protocol.md 7 item 24.
            pub_key_hash: read.number("pubKeyHash", 1, 255)? as u8,
            nethash: read.nethash()?,
            wif: read.number("wif", 0, 255)? as u8,
            slip44: read.number("slip44", 0, u32::MAX)?,
            aip20: read.number("aip20", 0, u32::MAX)?,
            token: read.text("client.token")?,
            symbol: read.text("client.symbol")?,
            explorer: read.text("client.explorer")?,
        })
    }
}

struct Reader<'a>(&'a Value);

impl Reader<'_> {
    fn text(&self, key: &str) -> Result<String, NetworkError> {
        self.read(key, "a string".to_owned(), |value| value.as_str().map(str::to_owned))
    }

    fn number(&self, key: &str, min: u32, max: u32) -> Result<u32, NetworkError> {
        let range = u64::from(min)..=u64::from(max);
        self.read(key, format!("a whole number from {min} to {max}"), |value| {
            value.as_u64().filter(|number| range.contains(number)).map(|number| number as u32)
        })
    }

    fn nethash(&self) -> Result<String, NetworkError> {
        let is_hash = |text: &&str| text.len() == 64 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        self.read("nethash", "64 lower-case hex digits".to_owned(), |value| {
            value.as_str().filter(is_hash).map(str::to_owned)
        })
    }

    fn read<T>(&self, key: &str, allowed: String, get: impl FnOnce(&Value) -> Option<T>) -> Result<T, NetworkError> {
        let found = key.split('.').try_fold(self.0, |value, part| value.get(part));
        found.and_then(get).ok_or_else(|| {
            let found = found.map_or("missing".to_owned(), |value| value.to_string().chars().take(80).collect());
            wrong("network.json", key, found, allowed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_survives_its_json() {
        for network in [Network::mainnet(), Network::devnet(), Network::testnet(), Network::unitnet()] {
            assert_eq!(Network::from_json(&network.to_json()).unwrap(), network);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut json = Network::testnet().to_json();
        json["client"]["token"] = Value::Null;
        let error = Network::from_json(&json).unwrap_err().to_string();
        assert_eq!(error, "network.json: `client.token` is null, allowed is a string");
        let mut json = Network::testnet().to_json();
        json["pubKeyHash"] = 0.into();
        let error = Network::from_json(&json).unwrap_err().to_string();
        assert_eq!(error, "network.json: `pubKeyHash` is 0, allowed is a whole number from 1 to 255");
    }

    #[test]
    fn a_missing_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let error = NetworkConfig::load(directory.path()).unwrap_err().to_string();
        assert!(error.contains("network.json"), "{error}");
        std::fs::write(directory.path().join("network.json"), "{").unwrap();
        let error = NetworkConfig::load(directory.path()).unwrap_err().to_string();
        assert!(error.contains("network.json: not JSON"), "{error}");
    }
}
