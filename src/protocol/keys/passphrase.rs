//! New passphrases: 12 English words of BIP39, its only use here. Source: protocol.md 1.

/// Twelve words for 128 bits of entropy; the caller draws those bits.
///
/// ```
/// let words = dposlab::protocol::keys::generate_passphrase([0; 16]);
/// assert!(words.starts_with("abandon abandon") && words.ends_with("about"));
/// ```
pub fn generate_passphrase(entropy: [u8; 16]) -> String {
    bip39::Mnemonic::from_entropy(&entropy).expect("16 bytes are an allowed amount of entropy").to_string()
}
