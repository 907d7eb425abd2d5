-- oldest: 18
-- What the code of its application says of a schedule that was changed at run time. Null: what it is.
alter table pawl.schedule add column declared json;
