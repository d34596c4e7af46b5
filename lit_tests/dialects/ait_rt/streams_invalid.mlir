// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait_rt.program @p arena (0) {
  // expected-error@+1 {{stream 16, expected a number from 0 to 15}}
  ait_rt.record event 0 stream 16
}

// -----

ait_rt.program @p arena (0) {
  // expected-error@+1 {{event -1, expected a number from 0 to 65535}}
  ait_rt.wait event -1 stream 0
}

// -----

ait_rt.program @p arena (0) {
  ait_rt.loop step to (4) {
    // expected-error@+1 {{is in a loop, the launches of which are all on stream 0}}
    ait_rt.record event 0 stream 0
  }
}

// -----

// expected-error@+1 {{Expected 'recorded'}}
ait_rt.program @p arena (0) streams if {
}
