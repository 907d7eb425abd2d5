-- oldest: 18
-- Jobs that waited at a gate and are let in go to the front of their lane: numbers of `ready` below zero, which processes of
-- before would not see. `closed`: when the gate was last looked at, nobody else could pass, so who comes in next has waited.
alter table pawl.gate add column closed bool not null default false;
