drop table pawl.task;
