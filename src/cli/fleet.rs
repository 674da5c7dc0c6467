//! Command-line options of a fleet.

use super::{CliError, usage};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tuner_core::units::counted;
use tuner_engine::fleet::{Fleet, FleetView, PROTOCOL};
use tuner_engine::parse_budget;
use tuner_fleet::{Access, DEFAULT_NAME, Hub, HubSettings, Names};

/// A fleet with NATS credentials.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Fleet (docs/fleet.md)")]
pub(super) struct FleetOptions {
    /// NATS server of a fleet, nats://HOST:4222 or tls://HOST:4222
    #[arg(long, value_name = "URL")]
    pub(super) fleet: Option<String>,

    /// Name of the fleet on that server
    #[arg(long, visible_alias = "name", value_name = "NAME", default_value = DEFAULT_NAME)]
    fleet_name: String,

    /// Credentials file (JWT and NKey, as nsc writes it)
    #[arg(long, value_name = "FILE")]
    fleet_creds: Option<PathBuf>,

    /// File with an NKey's seed
    #[arg(long, value_name = "FILE")]
    fleet_nkey: Option<PathBuf>,

    /// File with a token
    #[arg(long, value_name = "FILE")]
    fleet_token: Option<PathBuf>,

    /// User, with the password in --fleet-password FILE
    #[arg(long, value_name = "USER", requires = "fleet_password")]
    fleet_user: Option<String>,

    /// File with the user's password
    #[arg(long, value_name = "FILE", requires = "fleet_user")]
    fleet_password: Option<PathBuf>,

    /// Certificate authorities for TLS [default: the system's]
    #[arg(long, value_name = "FILE")]
    fleet_ca: Option<PathBuf>,

    /// Client certificate for TLS, with its key in --fleet-key FILE
    #[arg(long, value_name = "FILE", requires = "fleet_key")]
    fleet_cert: Option<PathBuf>,

    /// Key of the client certificate
    #[arg(long, value_name = "FILE", requires = "fleet_cert")]
    fleet_key: Option<PathBuf>,
}

/// Options of a hub.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Fleet (docs/fleet.md)")]
pub(super) struct HubOptions {
    #[command(flatten)]
    pub(super) fleet: FleetOptions,

    /// Acknowledgement deadline: time without news from a worker before a candidate is redelivered
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_budget)]
    fleet_patience: Duration,

    /// Maximum size of compiled code on the server, MiB
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    fleet_cache: u64,
}

impl FleetOptions {
    /// Returns the server at this address and the fleet on it.
    pub(super) fn named(&self, url: &str) -> Result<(Access, Names), CliError> {
        let access = Access {
            url: url.to_owned(),
            credentials: self.fleet_creds.clone(),
            nkey: self.fleet_nkey.clone(),
            token: self.fleet_token.clone(),
            user: self.fleet_user.clone().zip(self.fleet_password.clone()),
            authorities: self.fleet_ca.clone(),
            certificate: self.fleet_cert.clone().zip(self.fleet_key.clone()),
        };
        Ok((access, Names::new(&self.fleet_name).map_err(usage)?))
    }
}

impl HubOptions {
    /// Connects to the fleet of the options; `None` without one.
    pub(super) fn connect(&self) -> Result<Option<Arc<dyn Fleet>>, CliError> {
        let Some(url) = &self.fleet.fleet else {
            return Ok(None);
        };
        let (access, names) = self.fleet.named(url)?;
        let settings = HubSettings {
            access,
            names,
            ack_wait: self.fleet_patience.max(Duration::from_millis(500)),
            presence: (self.fleet_patience / 2)
                .clamp(Duration::from_secs(1), tuner_fleet::PRESENCE),
            cubin_bytes: self.fleet_cache << 20,
        };
        let hub = Hub::connect(settings, &|text| say!("{text}"))?;
        Ok(Some(hub))
    }
}

/// Formats a fleet.
pub(super) fn show(view: &FleetView) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "fleet {} at {}: {}, {}, protocol {}",
        view.fleet,
        view.server,
        counted(view.workers.len(), "worker"),
        counted(view.hubs.len(), "run"),
        view.protocol
    );
    for worker in &view.workers {
        let what = if worker.device.is_empty() {
            "compiles only".to_owned()
        } else {
            format!("{} ({})", worker.device, worker.selector)
        };
        let rate = if worker.up_s > 0.0 {
            worker.judged as f64 / worker.up_s
        } else {
            0.0
        };
        let version = if worker.protocol == PROTOCOL {
            worker.version.clone()
        } else {
            format!("{}, protocol {}: left out", worker.version, worker.protocol)
        };
        let _ = writeln!(
            text,
            "  {}  {what}  {}  {:.0} % busy  {} judged ({rate:.1}/s)  {} compiled  tuner {version}",
            worker.name,
            worker.state,
            100.0 * worker.utilisation(),
            worker.judged,
            worker.compiled,
        );
        for doing in &worker.doing {
            let _ = writeln!(text, "    {doing}");
        }
    }
    for hub in &view.hubs {
        let _ = writeln!(
            text,
            "  run {} on {} (process {}): {} in flight, {} stored",
            hub.run, hub.host, hub.pid, hub.waiting, hub.stored
        );
    }
    for queue in &view.queues {
        let _ = writeln!(
            text,
            "  queue {}: {} waiting, {} in hand, {} handed out again",
            queue.name, queue.waiting, queue.in_hand, queue.redelivered
        );
    }
    let _ = writeln!(
        text,
        "  {} to be stored, {:.1} MiB of files and code",
        counted(view.results_waiting, "result"),
        view.object_bytes as f64 / f64::from(1 << 20)
    );
    text
}
