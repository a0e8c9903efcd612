//! Errors of transactions that cannot be applied.

use crate::protocol::{Nonce, PublicKey};

/// The reason why a transaction cannot be applied. The messages are the reference's. Source: consensus.md 4.4, 4.5.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[rustfmt::skip]
pub enum ApplyError {
    #[error("Version {0} not supported.")]
    UnsupportedVersion(u8),
    #[error("Transaction type {0} is deactivated.")]
    Deactivated(String),
    /// An error in the reference's own code: the text is the runtime's. Source: consensus.md 8 Q22.
    #[error("{0}")]
    TypeError(&'static str),
    #[error("Insufficient balance in database wallet. Wallet is not allowed to spend before funding is confirmed.")]
    ColdWallet,
    #[error("Cannot apply a transaction with nonce {found}: the sender {sender} has nonce {nonce}.")]
    UnexpectedNonce { found: Nonce, sender: PublicKey, nonce: Nonce },
    #[error("Insufficient balance in the wallet.")]
    InsufficientBalance,
    #[error("Failed to apply transaction, because the public key does not match the wallet.")]
    SenderWalletMismatch,
    #[error("Failed to apply transaction, because wallet does not allow second signatures.")]
    UnexpectedSecondSignature,
    #[error("Failed to apply transaction, because the second signature could not be verified.")]
    InvalidSecondSignature,
    #[error("Failed to apply transaction, because multi signatures are currently not supported.")]
    UnexpectedMultiSignature,
    #[error("Failed to apply transaction, because the multi signature could not be verified.")]
    InvalidMultiSignature,
    #[error("Failed to apply transaction, because legacy multi signature is no longer supported.")]
    LegacyMultiSignature,
    #[error("Failed to apply transaction, because second signature is already enabled.")]
    SecondSignatureAlreadyRegistered,
    #[error("Failed to apply transaction, because multi signature is enabled.")]
    NotSupportedForMultiSignatureWallet,
    #[error("Failed to apply transaction, because multi signature is already enabled.")]
    MultiSignatureAlreadyRegistered,
    #[error("Failed to apply transaction, because too few keys were provided.")]
    MultiSignatureMinimumKeys,
    #[error("Failed to apply transaction, because the number of provided keys does not match the number of signatures.")]
    MultiSignatureKeyCountMismatch,
    #[error("Failed to apply transaction, because the wallet is not a delegate.")]
    WalletNotADelegate,
    #[error("Failed to apply transaction, because the wallet already has a registered username.")]
    WalletIsAlreadyDelegate,
    #[error("Failed to apply transaction, because the username '{0}' is already registered.")]
    UsernameAlreadyRegistered(String),
    #[error("Failed to apply transaction, because the sender wallet has already voted.")]
    AlreadyVoted,
    #[error("Failed to apply transaction, because the sender wallet has {most} votes, and rules.ledger.votes.most allows no more.")]
    TooManyVotes { most: u32 },
    #[error("Failed to apply transaction, because it votes for a resigned delegate.")]
    VotedForResignedDelegate,
    #[error("Failed to apply transaction, because the wallet has not voted.")]
    NoVote,
    #[error("Failed to apply transaction, because the wallet vote does not match.")]
    UnvoteMismatch,
    #[error("Failed to apply transaction, because only delegates can be voted.")]
    VotedForNonDelegate,
    #[error("Failed to apply transaction, because the wallet already resigned as delegate.")]
    WalletAlreadyResigned,
    #[error("Failed to apply transaction, because not enough delegates to allow resignation.")]
    NotEnoughDelegates,
    #[error("Failed to apply transaction, because this IPFS hash is already registered on the blockchain.")]
    IpfsHashAlreadyExists,
    #[error("Failed to apply transaction, because the associated HTLC lock transaction could not be found.")]
    HtlcLockNotFound,
    #[error("Failed to apply transaction, because the associated HTLC lock transaction expired.")]
    HtlcLockExpired,
    #[error("Failed to apply transaction, because the associated HTLC lock transaction did not expire yet.")]
    HtlcLockNotExpired,
    #[error("Failed to apply transaction, because the secret provided does not match the associated HTLC lock transaction secret.")]
    HtlcSecretHashMismatch,
    #[error("Failed to apply transaction, because wallet was already registered as a business.")]
    BusinessAlreadyRegistered,
    #[error("Failed to apply transaction, because wallet is not a business.")]
    BusinessIsNotRegistered,
    #[error("Failed to apply transaction, because business is resigned.")]
    BusinessIsResigned,
    #[error("Failed to apply transaction, because the business bridgechain(s) are not resigned.")]
    BridgechainsAreNotResigned,
    #[error("Failed to apply transaction, because bridgechain is already registered.")]
    BridgechainAlreadyRegistered,
    #[error("Failed to apply transaction, because genesis hash is already registered by another bridgechain.")]
    GenesisHashAlreadyRegistered,
    #[error("Failed to apply transaction, because bridgechain is not registered by wallet.")]
    BridgechainIsNotRegistered,
    #[error("Failed to apply transaction, because bridgechain is resigned.")]
    BridgechainIsResigned,
    #[error("Failed to apply transaction, because the package name(s) defined in ports is not valid.")]
    PortKeyMustBeValidPackageName,
}
