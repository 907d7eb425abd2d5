drop table pawl.purge;
drop table pawl.data_key;
