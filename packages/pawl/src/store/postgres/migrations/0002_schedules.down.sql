drop table pawl.schedule, pawl.tick, pawl.tick_gap;
