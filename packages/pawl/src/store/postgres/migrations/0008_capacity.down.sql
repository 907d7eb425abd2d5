drop table pawl.breaker;
drop table pawl.serving;
