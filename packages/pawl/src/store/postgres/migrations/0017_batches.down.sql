drop table pawl.batch;
