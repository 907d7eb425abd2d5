update pawl.ready r set seq = f.seq
  from (select s.id, nextval('pawl.ready_seq') as seq from (select id from pawl.ready where seq < 0 order by seq) s) f where r.id = f.id and r.seq < 0;
alter table pawl.gate drop column closed;
