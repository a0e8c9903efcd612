//! The four networks of the family. Source: protocol.md 5.3.

use super::Network;

impl Network {
    /// ARK's mainnet. Addresses begin with `A`.
    pub fn mainnet() -> Self {
        Self {
            name: "mainnet".to_owned(),
            message_prefix: "ARK message:\n".to_owned(),
            pub_key_hash: 23,
            nethash: "6e84d08bd299ed97c212c886c98a57e36545c8f5d645ca7eeae63a8bd62d8988".to_owned(),
            slip44: 111,
            aip20: 0,
            token: "ARK".to_owned(),
            symbol: "\u{466}".to_owned(),
            explorer: "https://explorer.ark.io".to_owned(),
            ..Self::devnet()
        }
    }

    /// ARK's devnet. Addresses begin with `D`.
    pub fn devnet() -> Self {
        Self {
            name: "devnet".to_owned(),
            message_prefix: "DARK message:\n".to_owned(),
            bip32_public: 46_090_600,
            bip32_private: 46_089_520,
            pub_key_hash: 30,
            nethash: "2a44f340d76ffc3df204c5f38cd355b7496c9065a1ade2ef92071436bd72e867".to_owned(),
            wif: 170,
            slip44: 1,
            aip20: 1,
            token: "DARK".to_owned(),
            symbol: "D\u{466}".to_owned(),
            explorer: "https://dexplorer.ark.io".to_owned(),
        }
    }

    /// The reference's testnet. Addresses begin with `A`, as those of mainnet do.
    pub fn testnet() -> Self {
        Self {
            name: "testnet".to_owned(),
            message_prefix: "TEST message:\n".to_owned(),
            bip32_public: 70_617_039,
            bip32_private: 70_615_956,
            pub_key_hash: 23,
            nethash: "d9acd04bde4234a81addb8482333b4ac906bed7be5a9970ce8ada428bd083192".to_owned(),
            wif: 186,
            slip44: 1,
            aip20: 0,
            token: "TARK".to_owned(),
            symbol: "T\u{466}".to_owned(),
            explorer: "http://texplorer.ark.io".to_owned(),
        }
    }

    /// The network of the reference's unit tests. Its address byte and its version bytes of keys are those of testnet.
    pub fn unitnet() -> Self {
        Self {
            name: "unitnet".to_owned(),
            message_prefix: "UNIT message:\n".to_owned(),
            nethash: "a63b5a3858afbca23edefac885be74d59f1a26985548a4082f4f479e74fcc348".to_owned(),
            token: "UARK".to_owned(),
            symbol: "U\u{466}".to_owned(),
            explorer: "http://uexplorer.ark.io".to_owned(),
            ..Self::testnet()
        }
    }
}
