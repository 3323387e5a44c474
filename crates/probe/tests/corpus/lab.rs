//! Dumps and outputs of the same machine in the same state say the same.
