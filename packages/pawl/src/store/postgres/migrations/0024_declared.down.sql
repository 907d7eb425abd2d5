alter table pawl.schedule drop column declared;
