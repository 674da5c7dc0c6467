use super::super::Status;
use super::*;
use tuner_device::gpu::examine::ClockRange;
use tuner_judge::timing::calibration::Calibration;

fn healthy() -> Examination {
    Examination {
        calibration: Calibration::default(),
        idle: None,
        loaded: Some(Health {
            power_w: Some(60.0),
            power_limit_w: Some(72.0),
            temperature_c: Some(55),
            ..Health::default()
        }),
        load_s: 10.0,
        clock_mhz: Some(ClockRange {
            first: 2000.0,
            lowest: 1480.0,
            median: 1500.0,
            highest: 1510.0,
        }),
        spread: 0.01,
        null_us: [2.1, 2.3],
        queued_us: 40.0,
        window_us: 600.0,
        late: false,
    }
}

#[test]
fn each_trouble_is_its_own_row_and_tells_what_to_do() {
    let rows = |found: &Examination| -> Vec<(&str, Status)> {
        let all = [
            floor(found),
            clock(found),
            power(found),
            heat(found),
            window(found),
        ];
        all.iter().map(|row| (row.check, row.status)).collect()
    };
    assert!(
        rows(&healthy())
            .iter()
            .all(|(_, status)| *status == Status::Ok)
    );
    type Change = fn(&mut Examination);
    let troubles: [(&str, Status, Change); 6] = [
        ("floors", Status::Warn, |found| found.null_us = [9.0, 9.9]),
        ("clock", Status::Warn, |found| found.spread = 0.2),
        ("power", Status::Warn, |found| {
            found.loaded.as_mut().unwrap().power_capped = true;
        }),
        ("heat", Status::Fail, |found| {
            found.loaded.as_mut().unwrap().slowed = vec!["heat".to_owned()];
        }),
        ("spin window", Status::Warn, |found| found.queued_us = 400.0),
        ("spin window", Status::Fail, |found| found.late = true),
    ];
    for (check, status, change) in troubles {
        let mut found = healthy();
        change(&mut found);
        let bad: Vec<_> = rows(&found)
            .into_iter()
            .filter(|(_, status)| *status != Status::Ok)
            .collect();
        assert_eq!(bad, [(check, status)]);
    }
}
