//! Address of a NATS server and the credentials for it.

use async_nats::ConnectOptions;
use std::path::{Path, PathBuf};
use tuner_core::files;

/// A server address with NATS credentials.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// `nats://HOST:4222` or `tls://HOST:4222`; a list separated by commas is a cluster. May
    /// contain a user and a password.
    pub url: String,
    /// JWT file with its NKey, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// File with an NKey seed.
    pub nkey: Option<PathBuf>,
    /// File with a token.
    pub token: Option<PathBuf>,
    /// User, with the file of the password.
    pub user: Option<(String, PathBuf)>,
    /// Certificate authorities that verify the server's certificate.
    pub authorities: Option<PathBuf>,
    /// Client certificate and key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// An invalid part of an [`Access`].
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A file cannot be read.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// System error.
        why: std::io::Error,
    },
    /// A file has invalid content.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Error and expected content.
        what: String,
    },
    /// The address is invalid.
    #[error("`{url}` is not a NATS server address ({why}); type nats://HOST:4222")]
    Address {
        /// The address, without secrets.
        url: String,
        /// Error.
        why: String,
    },
}

impl Access {
    /// Creates access to a server without credentials.
    #[must_use]
    pub fn open(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            ..Self::default()
        }
    }

    /// Parses the addresses.
    ///
    /// # Errors
    /// An address is invalid.
    pub(crate) fn servers(&self) -> Result<Vec<async_nats::ServerAddr>, AccessError> {
        let wrong = |why: String| AccessError::Address {
            url: self.shown(),
            why,
        };
        let parse = |one: &str| {
            let url = one.trim();
            if url.is_empty() {
                return Err(wrong("it is empty".to_owned()));
            }
            if url
                .split_once("://")
                .is_some_and(|(_, host)| host.is_empty())
            {
                return Err(wrong("the host is missing".to_owned()));
            }
            url.parse()
                .map_err(|why: std::io::Error| wrong(why.to_string()))
        };
        self.url.split(',').map(parse).collect()
    }

    /// Returns the address without its password.
    #[must_use]
    pub fn shown(&self) -> String {
        let one = |url: &str| match (url.find("://"), url.rfind('@')) {
            (Some(scheme), Some(at)) if at > scheme => {
                format!("{}://…{}", &url[..scheme], &url[at..])
            }
            _ => url.to_owned(),
        };
        self.url.split(',').map(one).collect::<Vec<_>>().join(",")
    }

    /// Builds the connection options from all settings.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn options(&self) -> Result<ConnectOptions, AccessError> {
        let mut options = ConnectOptions::new();
        if let Some(path) = &self.credentials {
            // The whole text: the library searches for the line break after the last line.
            let text = text(path)?;
            let with = options.credentials(&text);
            options = with.map_err(|why| unreadable(path, why))?;
        }
        if let Some(path) = &self.nkey {
            options = options.nkey(seed(path)?);
        }
        if let Some(path) = &self.token {
            options = options.token(secret(path)?);
        }
        if let Some((user, path)) = &self.user {
            options = options.user_and_password(user.clone(), secret(path)?);
        }
        if let Some(path) = &self.authorities {
            readable(path)?;
            options = options
                .add_root_certificates(path.clone())
                // Without TLS the credentials would be sent in clear text.
                .require_tls(true);
        }
        if let Some((certificate, key)) = &self.certificate {
            readable(certificate)?;
            readable(key)?;
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        Ok(options)
    }
}

fn unreadable(path: &Path, why: std::io::Error) -> AccessError {
    AccessError::File {
        path: path.to_owned(),
        why,
    }
}

/// Checks a file that the library reads itself, without limits.
fn readable(path: &Path) -> Result<(), AccessError> {
    files::read(path, files::MAX_TEXT_BYTES)
        .map(drop)
        .map_err(|why| unreadable(path, why))
}

/// Reads a user's NKey seed. An invalid one would otherwise fail only when the server requests a signature.
fn seed(path: &Path) -> Result<String, AccessError> {
    let seed = secret(path)?;
    match nkeys::KeyPair::from_seed(&seed) {
        Ok(_) => Ok(seed),
        Err(why) => Err(AccessError::Content {
            path: path.to_owned(),
            what: format!("no seed of an NKey ({why}); it is one line that begins with SU"),
        }),
    }
}

fn secret(path: &Path) -> Result<String, AccessError> {
    Ok(text(path)?.trim().to_owned())
}

fn text(path: &Path) -> Result<String, AccessError> {
    files::read_text(path, files::MAX_TEXT_BYTES).map_err(|why| unreadable(path, why))
}

#[cfg(test)]
mod tests;
