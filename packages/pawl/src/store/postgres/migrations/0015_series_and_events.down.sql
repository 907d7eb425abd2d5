alter table pawl.delta drop column restored;
drop table pawl.series;
drop table pawl.event;
drop sequence pawl.event_seq;
drop table pawl.watch;
