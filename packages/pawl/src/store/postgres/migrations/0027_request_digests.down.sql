alter table pawl.request drop column digest;
