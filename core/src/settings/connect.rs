//! A client's credentials and options of its transport.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::set;
use crate::io::http::{HttpClientOptions, Proxy};
use crate::io::{Auth, Backoff, ClientCertificate, ConnectOptions};

/// A client's credentials and options of its transport; they are explained at [`ConnectOptions`] and
/// [`HttpClientOptions`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the options they set")]
pub struct ConnectSettings<T> {
    /// Names and values.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    pub auth: Option<AuthSettings>,
    pub connect_timeout: Option<T>,
    #[serde(default)]
    pub root_certificates: Vec<PemSource>,
    /// The certificate and its key.
    pub certificate: Option<(PemSource, PemSource)>,
    /// Silence on a WebSocket after which the server is pinged.
    pub heartbeat: Option<T>,
    pub protocols: Option<Vec<String>>,
    /// The URL of a proxy; empty for none.
    pub proxy: Option<String>,
    pub read_timeout: Option<T>,
    pub idle_timeout: Option<T>,
    pub max_redirects: Option<usize>,
    #[serde(default)]
    pub redirect_origins: Vec<String>,
    pub http2_prior_knowledge: Option<bool>,
    pub max_concurrent: Option<usize>,
    pub resume: Option<ResumeSettings<T>>,
    pub standing_stream: Option<bool>,
}

/// Credentials: see [`Auth`].
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the options they set")]
pub enum AuthSettings {
    Bearer {
        token: String,
    },
    Basic {
        user: String,
        password: String,
    },
    ApiKey {
        key: String,
        /// `X-API-Key` by default.
        header: Option<String>,
    },
}

/// Where a text in PEM is: `{"file": PATH}` or `{"text": TEXT}`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PemSource {
    /// In that file.
    File(PathBuf),
    /// Here.
    Text(String),
}

impl PemSource {
    fn read(self) -> io::Result<Vec<u8>> {
        match self {
            Self::File(path) => std::fs::read(path),
            Self::Text(text) => Ok(text.into_bytes()),
        }
    }
}

/// How soon and how often a broken stream is requested again: see [`Backoff`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the options they set")]
pub struct ResumeSettings<T> {
    pub first: T,
    pub longest: T,
    pub attempts: u32,
}

impl From<AuthSettings> for Auth {
    fn from(auth: AuthSettings) -> Self {
        match auth {
            AuthSettings::Bearer { token } => Self::Bearer(token),
            AuthSettings::Basic { user, password } => Self::Basic { user, password },
            AuthSettings::ApiKey { key, header: None } => Self::api_key(key),
            AuthSettings::ApiKey {
                key,
                header: Some(header),
            } => Self::ApiKey { header, key },
        }
    }
}

impl<T: Into<Duration>> ConnectSettings<T> {
    /// The options for any address.
    ///
    /// # Errors
    /// When a PEM file cannot be read.
    pub fn connect(self) -> io::Result<ConnectOptions> {
        let mut options = ConnectOptions {
            headers: self.headers,
            ..ConnectOptions::default()
        };
        set(&mut options.auth, self.auth);
        set(&mut options.connect_timeout, self.connect_timeout);
        set(
            &mut options.heartbeat,
            self.heartbeat.map(Into::into).map(Some),
        );
        set(&mut options.protocols, self.protocols);
        let certificates = self.root_certificates.into_iter().map(PemSource::read);
        options.root_certificates = certificates.collect::<io::Result<_>>()?;
        if let Some((certificates, key)) = self.certificate {
            options.certificate = Some(ClientCertificate {
                certificates: certificates.read()?,
                key: key.read()?,
            });
        }
        let http = &mut options.http;
        if let Some(url) = self.proxy {
            http.proxy = match url.is_empty() {
                true => Proxy::None,
                false => Proxy::At(url),
            };
        }
        set(
            &mut http.read_timeout,
            self.read_timeout.map(Into::into).map(Some),
        );
        set(&mut http.idle_timeout, self.idle_timeout);
        set(&mut http.max_redirects, self.max_redirects);
        http.redirect_origins = self.redirect_origins;
        set(&mut http.http2_prior_knowledge, self.http2_prior_knowledge);
        set(&mut http.max_concurrent, self.max_concurrent);
        set(&mut http.standing_stream, self.standing_stream);
        if let Some(resume) = self.resume {
            http.resume = Backoff {
                first: resume.first.into(),
                longest: resume.longest.into(),
                attempts: resume.attempts,
            };
        }
        Ok(options)
    }

    /// The options of HTTP alone.
    ///
    /// # Errors
    /// When a PEM file cannot be read.
    pub fn http(self) -> io::Result<HttpClientOptions> {
        let options = self.connect()?;
        Ok(HttpClientOptions {
            headers: options.headers,
            auth: options.auth,
            connect_timeout: options.connect_timeout,
            root_certificates: options.root_certificates,
            certificate: options.certificate,
            ..options.http
        })
    }
}
