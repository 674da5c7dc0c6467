use super::*;
use crate::evaluator::BoxError;
use crate::fleet::{FleetView, Offer, Session};

/// A fleet without workers.
#[derive(Debug)]
struct Empty;

impl Fleet for Empty {
    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }

    fn open(
        &self,
        _: &RunId,
        _: &Assignment,
        _: PackedFiles,
    ) -> Result<Arc<dyn Session>, BoxError> {
        Err("no run is expected".into())
    }

    fn view(&self) -> FleetView {
        FleetView::default()
    }
}

/// Returns the reason why a request is refused.
fn refusal(request: &Request) -> String {
    let prepared = prepare(request, Path::new("/"), Arc::new(Empty));
    prepared.err().map(|error| error.to_string()).unwrap()
}

#[test]
fn wrong_fields_of_a_request_are_refused_on_every_device_of_a_fleet() {
    for device in ["vgpu:h100", "cuda", "NVIDIA H200", "replay:absent.json.gz"] {
        let request = || Request {
            device: device.to_owned(),
            ..Request::default()
        };
        let prior = Request {
            prior: Some("foo".to_owned()),
            ..request()
        };
        assert!(
            refusal(&prior).contains("no prior is called `foo`"),
            "{device}"
        );
        let knowledge = Request {
            strategy: Some("random".to_owned()),
            knowledge: vec!["k.json".to_owned()],
            ..request()
        };
        assert!(
            refusal(&knowledge).contains("takes no knowledge"),
            "{device}"
        );
        let arch = Request {
            arch: Some("sm_x".to_owned()),
            ..request()
        };
        assert!(refusal(&arch).contains("sm_x"), "{device}");
    }
}

#[test]
fn a_device_may_have_the_name_that_its_workers_give_it() {
    let request = Request {
        device: "NVIDIA H200".to_owned(),
        objective: Some("time,registers".to_owned()),
        prior: Some("vgpu".to_owned()),
        ..Request::default()
    };
    let why = refusal(&request);
    assert!(
        why.contains("no worker of the fleet lends a device"),
        "{why}"
    );
}
