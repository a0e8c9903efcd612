//! A network directory: `genesisBlock.json`, `milestones.json`, `network.json`, `exceptions.json`.

use super::{Exceptions, Genesis, Network, NetworkConfig};
use crate::{
    files::{self, TEXT_LIMIT},
    protocol::{Milestones, block::BlockDecodeError, coercion, crypto::CryptoMode, milestones::MilestoneError},
};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The reason why a network directory is rejected. It always names the file, and mostly the key, the value found and the values allowed.
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
    /// The network that a directory describes, with this treatment of signatures. The files are read whole; everything
    /// is checked before it returns.
    pub fn load(directory: &Path, crypto: CryptoMode) -> Result<Self, NetworkError> {
        Self::of(|name| read(&directory.join(name)), crypto)
    }

    /// Reads a network from its four files, each requested by its name.
    ///
    /// # Errors
    /// As [`NetworkConfig::load`].
    pub fn of(file: impl Fn(&str) -> Result<Value, NetworkError>, crypto: CryptoMode) -> Result<Self, NetworkError> {
        let network = Network::from_json(&file("network.json")?)?;
        let milestones = Milestones::from_json(&file("milestones.json")?)?;
        let exceptions = Exceptions::from_json(&file("exceptions.json")?)
            .map_err(|error| wrong("exceptions.json", &error.key, error.found, error.allowed))?;
        let genesis = Genesis::from_json(&file("genesisBlock.json")?, &network, &milestones, &exceptions, crypto)?;
        Self::new(network, milestones, exceptions, genesis, crypto)
    }

    /// A network of parts that must belong together: the network's `nethash` must be the hash of the genesis payload.
    pub fn new(
        network: Network,
        milestones: Milestones,
        exceptions: Exceptions,
        genesis: Genesis,
        crypto: CryptoMode,
    ) -> Result<Self, NetworkError> {
        let payload = hex::encode(genesis.block.header.payload_hash);
        if network.nethash != payload {
            let allowed = format!("\"{payload}\", the payloadHash of genesisBlock.json");
            return Err(wrong("network.json", "nethash", format!("{:?}", network.nethash), allowed));
        }
        let milestones = milestones.of_network(&network.name);
        Ok(Self { network, milestones, exceptions, genesis, crypto })
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
    /// Reads the object of a `network.json`. Members that only wallets and the API read may be missing, and a number may be a text.
    /// Source: protocol.md 5.5.
    pub fn from_json(json: &Value) -> Result<Self, NetworkError> {
        let read = Reader(json);
        Ok(Self {
            name: read.text("name"),
            message_prefix: read.text("messagePrefix"),
            bip32_public: read.number("bip32.public", u32::MAX)?,
            bip32_private: read.number("bip32.private", u32::MAX)?,
            pub_key_hash: read.address_byte()?,
            nethash: read.nethash()?,
            wif: read.wif()?,
            slip44: read.number("slip44", u32::MAX)?,
            aip20: read.number("aip20", u32::MAX)?,
            token: read.text("client.token"),
            symbol: read.text("client.symbol"),
            explorer: read.text("client.explorer"),
        })
    }
}

struct Reader<'a>(&'a Value);

impl Reader<'_> {
    /// The text of a member; empty if it is missing.
    fn text(&self, key: &str) -> String {
        self.get(key).filter(|found| !found.is_null()).map(coercion::text).unwrap_or_default()
    }

    /// A number without its fraction; 0 if it is missing.
    fn number(&self, key: &str, max: u32) -> Result<u32, NetworkError> {
        let Some(found) = self.get(key) else { return Ok(0) };
        let number = coercion::number(Some(found)).trunc();
        let is_allowed = (0.0..=f64::from(max)).contains(&number);
        if is_allowed { Ok(number as u32) } else { Err(self.wrong(key, format!("a number from 0 to {max}"))) }
    }

    /// The reference compares it with a byte without conversion to a number, so a value given as text would match no address.
    fn address_byte(&self) -> Result<u8, NetworkError> {
        let number = self.get("pubKeyHash").and_then(Value::as_f64).filter(|number| number.fract() == 0.0);
        let byte = number.filter(|number| (0.0..=255.0).contains(number)).map(|number| number as u8);
        byte.ok_or_else(|| self.wrong("pubKeyHash", "a whole number from 0 to 255, not as text".to_owned()))
    }

    fn wif(&self) -> Result<u8, NetworkError> {
        let byte = self.get("wif").and_then(Value::as_f64).filter(|number| (0.0..=255.0).contains(number));
        byte.map(|byte| byte as u8).ok_or_else(|| self.wrong("wif", "a number from 0 to 255, not as text".to_owned()))
    }

    fn nethash(&self) -> Result<String, NetworkError> {
        let is_hash = |text: &&str| text.len() == 64 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        let hash = self.get("nethash").and_then(Value::as_str).filter(is_hash).map(str::to_owned);
        hash.ok_or_else(|| self.wrong("nethash", "64 lower-case hex digits".to_owned()))
    }

    fn get(&self, key: &str) -> Option<&Value> {
        key.split('.').try_fold(self.0, |value, part| value.get(part))
    }

    fn wrong(&self, key: &str, allowed: String) -> NetworkError {
        let found = self.get(key).map_or("missing".to_owned(), |value| value.to_string().chars().take(80).collect());
        wrong("network.json", key, found, allowed)
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
        for (key, value, allowed) in [
            ("pubKeyHash", Value::Null, "`pubKeyHash` is null, allowed is a whole number from 0 to 255, not as text"),
            ("pubKeyHash", "23".into(), "`pubKeyHash` is \"23\", allowed is a whole number from 0 to 255, not as text"),
            ("wif", 256.into(), "`wif` is 256, allowed is a number from 0 to 255, not as text"),
            ("nethash", "AB".into(), "`nethash` is \"AB\", allowed is 64 lower-case hex digits"),
        ] {
            let mut json = Network::testnet().to_json();
            json[key] = value;
            let error = Network::from_json(&json).unwrap_err().to_string();
            assert_eq!(error, format!("network.json: {allowed}"));
        }
    }

    #[test]
    fn what_only_wallets_look_at_may_be_missing_or_a_text() {
        let mut json = Network::testnet().to_json();
        json["slip44"] = "186".into();
        json["pubKeyHash"] = 0.into();
        json["client"] = Value::Null;
        for key in ["name", "messagePrefix", "bip32", "aip20"] {
            json.as_object_mut().unwrap().remove(key);
        }
        let network = Network::from_json(&json).unwrap();
        assert_eq!((network.slip44, network.pub_key_hash, network.aip20, network.token.as_str()), (186, 0, 0, ""));
    }

    #[test]
    fn a_missing_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let error = NetworkConfig::load(directory.path(), CryptoMode::Real).unwrap_err().to_string();
        assert!(error.contains("network.json"), "{error}");
        std::fs::write(directory.path().join("network.json"), "{").unwrap();
        let error = NetworkConfig::load(directory.path(), CryptoMode::Real).unwrap_err().to_string();
        assert!(error.contains("network.json: not JSON"), "{error}");
    }
}
