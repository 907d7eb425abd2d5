alter table pawl.parcel reset (toast_tuple_target);
alter table pawl.parcel drop column inputs;
