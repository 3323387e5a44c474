//! An authority of the scenario's own, and what it issues.

use std::io;
use std::sync::Arc;

use data_encoding::BASE64;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// The server's certificate, as clients see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Certificate {
    /// By the authority that the kubeconfig names, for 127.0.0.1 and localhost.
    #[default]
    Good,
    /// Its time is over.
    Expired,
    /// For another name.
    OtherName,
}

pub(crate) fn wrong(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

/// A certificate and its key.
pub(crate) struct Issued {
    pub(crate) der: Vec<u8>,
    key: Vec<u8>,
}

impl Issued {
    pub(crate) fn certificate_pem(&self) -> String {
        pem("CERTIFICATE", &self.der)
    }

    pub(crate) fn key_pem(&self) -> String {
        pem("PRIVATE KEY", &self.key)
    }
}

/// The authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: Vec<u8>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let key = KeyPair::generate().map_err(wrong)?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).map_err(wrong)?;
        Ok(Self {
            der: certificate.der().to_vec(),
            issuer: Issuer::new(params, key),
        })
    }

    pub(crate) fn pem(&self) -> String {
        pem("CERTIFICATE", &self.der)
    }

    fn issue(&self, mut params: CertificateParams, name: &str) -> io::Result<Issued> {
        let key = KeyPair::generate().map_err(wrong)?;
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).map_err(wrong)?;
        Ok(Issued {
            der: certificate.der().to_vec(),
            key: key.serialize_der(),
        })
    }

    pub(crate) fn server(&self, which: Certificate) -> io::Result<Issued> {
        let names = match which {
            Certificate::OtherName => vec!["elsewhere.example".to_owned()],
            _ => vec!["127.0.0.1".to_owned(), "localhost".to_owned()],
        };
        let mut params = CertificateParams::new(names).map_err(wrong)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        if which == Certificate::Expired {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        }
        self.issue(params, "stand-in")
    }

    pub(crate) fn client(&self, user: &str) -> io::Result<Issued> {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params, user)
    }

    /// TLS with this certificate; client certificates of the authority are taken and not asked for.
    pub(crate) fn acceptor(&self, server: &Issued) -> io::Result<TlsAcceptor> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from(self.der.clone()))
            .map_err(wrong)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .map_err(wrong)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![CertificateDer::from(server.der.clone())],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(server.key.clone())),
            )
            .map_err(wrong)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let mut out = format!("-----BEGIN {label}-----\n");
    let text = BASE64.encode(der);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out + &format!("-----END {label}-----\n")
}
