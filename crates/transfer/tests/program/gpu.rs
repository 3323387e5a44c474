//! GPU memory, with a stand-in for the CUDA driver.

use std::process::Command as Process;

use transfer::{LegRecord, Measurement, Memory};

use crate::pair::{With, can, measured, plan};

/// A folder with a libcuda.so.1; none where it cannot be built.
fn driver() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/fake_cuda.c");
    let built = Process::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(folder.path().join("libcuda.so.1"))
        .arg(source)
        .status();
    match built {
        Ok(status) if status.success() => Some(folder),
        _ => {
            eprintln!("skipped: no C compiler");
            None
        }
    }
}

fn with_driver(settings: &[(&str, &str)]) -> Option<Measurement> {
    if !can() {
        return None;
    }
    let folder = driver()?;
    let path = folder.path().display().to_string();
    let mut all = vec![("LD_LIBRARY_PATH", path.as_str())];
    all.extend(settings);
    Some(measured(
        &plan(&[Memory::Host, Memory::Gpu]),
        With {
            prefill: &all,
            decode: &all,
        },
    ))
}

fn gpu_legs(measured: &Measurement) -> usize {
    measured
        .legs
        .iter()
        .filter(|record| record.leg.local == Memory::Gpu)
        .count()
}

#[test]
fn moves_memory_of_the_driver() {
    let Some(measured) = with_driver(&[]) else {
        return;
    };
    assert_eq!(measured.stop, None);
    assert_eq!(gpu_legs(&measured), 2);
    assert!(measured.legs.iter().all(LegRecord::complete));
    assert_eq!(measured.ends.prefill.gpu.as_deref(), Some("Stand-in GPU"));
    assert_eq!(measured.ends.prefill.gpu_error, None);
}

#[test]
fn any_error_of_the_driver_means_no_gpu_memory() {
    for call in [
        "cuInit",
        "cuDeviceGetCount",
        "cuDeviceGet",
        "cuDeviceGetName",
        "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent",
        "cuMemGetInfo_v2",
        "cuMemAlloc_v2",
        "cuPointerGetAttribute",
        "cuMemcpyHtoD_v2",
        "cuMemcpyDtoH_v2",
        "cuCtxSynchronize",
    ] {
        let fault = format!("{call}:2");
        let Some(measured) = with_driver(&[("UCX_FAKE_CUDA", &fault)]) else {
            return;
        };
        assert_eq!(measured.stop, None, "{call}");
        assert_eq!(gpu_legs(&measured), 0, "{call}");
        // Host memory is measured all the same.
        assert_eq!(measured.legs.len(), 2, "{call}");
        let error = measured.ends.prefill.gpu_error.expect("it is told");
        assert!(
            error.contains(call) && error.contains("CUDA_ERROR_OUT_OF_MEMORY (2)"),
            "{error}"
        );
        assert_eq!(measured.ends.prefill.gpu, None, "{call}");
    }
}

#[test]
fn memory_that_is_not_the_gpu_s_is_never_reported() {
    for (settings, word) in [
        (("UCX_FAKE_CUDA_HOST", "1"), "not on the device"),
        (("UCX_FAKE_CUDA_FULL", "1"), "are free"),
        (("UCX_FAKE_FAULT", "no-vram"), "detected as host"),
    ] {
        let Some(measured) = with_driver(&[settings]) else {
            return;
        };
        assert_eq!(gpu_legs(&measured), 0, "{word}");
        let error = measured.ends.decode.gpu_error.expect("it is told");
        assert!(error.contains(word), "{error}");
        assert_eq!(measured.ends.decode.gpu, None);
    }
}

#[test]
fn without_a_driver_host_memory_is_measured() {
    if !can() {
        return;
    }
    let measured = measured(&plan(&[Memory::Host, Memory::Gpu]), With::default());
    assert_eq!(measured.stop, None);
    assert_eq!(measured.legs.len(), 2 + gpu_legs(&measured));
    if gpu_legs(&measured) == 0 {
        assert!(measured.ends.decode.gpu_error.is_some());
    }
}
