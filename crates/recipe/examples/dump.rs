#![allow(missing_docs, clippy::all, clippy::pedantic, clippy::print_stdout, clippy::unwrap_used)]
fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let facts = recipe::assemble(vec![recipe::read(&path, &text)]);
        let base = path.rsplit('/').next().unwrap();
        for i in &facts.inputs { for p in &i.problems { println!("{base}\tPROBLEM\t{:?}\t{}\t{}", p.outcome, p.cause, p.detail); } }
        for d in &facts.deployments {
            for w in &d.workers {
                let s: Vec<String> = w.settings.iter().map(|s| format!("{}={}@{}", s.name, match &s.value { model::Value::Literal(v) => v.clone(), model::Value::Dynamic(v) => format!("<{v}>") }, s.place.line)).collect();
                println!("{base}\t{}\t{:?}\t{}\t{}\t{:?}\tgpu={:?} res={} claims={} caps={} priv={} hp={} ann={} nodes={} samehost={:?} opaque={:?}\t{}", d.name, w.role, w.name, w.container, w.engine, w.accelerators, w.resources.iter().map(|r| format!("{}={}", r.name, r.quantity)).collect::<Vec<_>>().join(","), w.claims.len(), w.capabilities.iter().map(|c| c.value.clone()).collect::<Vec<_>>().join("+"), w.privileged, w.host_paths.len(), w.annotations.len(), w.nodes, w.same_host.as_ref().map(|s| s.value.clone()), w.opaque, s.join("; "));
            }
        }
    }
}
