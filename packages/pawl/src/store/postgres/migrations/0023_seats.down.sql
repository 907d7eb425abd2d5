drop table pawl.seat;
drop sequence pawl.seat_seq;
