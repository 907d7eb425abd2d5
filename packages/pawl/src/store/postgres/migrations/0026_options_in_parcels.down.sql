alter table pawl.parcel drop column facts;
