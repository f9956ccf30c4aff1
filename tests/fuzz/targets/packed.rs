#![no_main]

mediakeep_fuzz::target!("packed");
