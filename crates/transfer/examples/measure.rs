//! Measures between two workers that are reached by command prefixes: `measure PREFIX_OF_PREFILL :: PREFIX_OF_DECODE`.
//! The environment of this program is the engines'; `PREFILL=NAME=VALUE` is a setting of the first one alone. `LARGEST`, `REPEATS`, `START` and `CONTROL` change the plan, `SAVE` keeps the
//! measurement in a file, `SHOW` prints it.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::print_stderr)]

use std::collections::BTreeMap;

use transfer::{Both, Command, Engine, Memory, Plan, attribute, faults, local, measure, pace};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut halves = arguments.split(|a| a == "::");
    let prefixes = [
        halves.next().unwrap_or_default().to_vec(),
        halves.next().unwrap_or_default().to_vec(),
    ];
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let engine = Engine {
        environment,
        ..Engine::default()
    };
    let mut first_engine = engine.clone();
    if let Ok(text) = std::env::var("PREFILL") {
        let (name, value) = text.split_once('=').unwrap();
        first_engine
            .environment
            .insert(name.to_owned(), value.to_owned());
    }
    let mut plan = Plan::both_ways_of_engines(&[Memory::Host]);
    if let Ok(largest) = std::env::var("LARGEST") {
        let largest: u64 = largest.parse().unwrap();
        plan.legs.retain(|leg| leg.bytes <= largest);
        plan.start_seconds = 100;
    }
    if let Ok(seconds) = std::env::var("START") {
        plan.start_seconds = seconds.parse().unwrap();
    }
    if let Ok(repeats) = std::env::var("REPEATS") {
        let repeats: u32 = repeats.parse().unwrap();
        for leg in &mut plan.legs {
            leg.repeats = repeats;
        }
    }
    let control = std::env::var("CONTROL").is_ok();
    if control {
        plan = plan.control();
    }
    println!("{}", plan.sentence());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let measured = runtime.block_on(async {
        let start = |prefix: &Vec<String>, engine: &Engine| {
            let command = if control {
                Command::control(engine, plan.seconds)
            } else {
                Command::new(engine, plan.seconds)
            };
            let argv: Vec<String> = prefix.iter().chain(&command.argv).cloned().collect();
            local::spawn(&argv).unwrap()
        };
        let (one, first) = start(&prefixes[0], &first_engine);
        let (two, second) = start(&prefixes[1], &engine);
        let engines = Both {
            prefill: first_engine.clone(),
            decode: engine.clone(),
        };
        let measured = measure(&plan, &engines, first, second, plan.end()).await;
        drop((one, two));
        measured
    });
    println!("stop: {:?}", measured.stop);
    for (answer, record) in attribute(&measured, None).iter().zip(&measured.legs) {
        println!("{}", answer.sentence());
        if let Some(pace) = pace(&measured, record, &answer.carrier) {
            println!("    {:.3} GB/s", pace.bytes_per_second / 1e9);
        }
        for evidence in &answer.evidence {
            println!(
                "    {:?} {:?}: {}",
                evidence.kind, evidence.finding, evidence.text
            );
        }
        for note in &answer.notes {
            println!("    note: {note}");
        }
    }
    for (side, result) in faults(&measured) {
        println!(
            "{} {:?} {} {:?}: {}",
            side.as_str(),
            result.status,
            result.name,
            result.cause,
            result.detail
        );
    }
    if let Ok(file) = std::env::var("SAVE") {
        std::fs::write(file, serde_json::to_string_pretty(&measured).unwrap()).unwrap();
    }
    if std::env::var("SHOW").is_ok() {
        println!("{}", serde_json::to_string_pretty(&measured).unwrap());
        println!("{}", measured.ends.prefill.output);
        println!("=====\n{}", measured.ends.decode.output);
    }
}
