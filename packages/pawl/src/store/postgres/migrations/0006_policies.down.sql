drop table pawl.policy, pawl.policy_mark, pawl.lane_limit;
delete from pawl.pause where kind = 'tenant';
alter table pawl.pause drop constraint pause_kind_check;
alter table pawl.pause add constraint pause_kind_check check (kind in ('queue', 'task'));
